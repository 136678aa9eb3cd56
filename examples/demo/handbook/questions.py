"""The questions, with the prerecorded answers the demo's model plays back."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from handbook.errors import DemoError

__all__ = ["QUESTIONS", "Kind", "Question", "load_questions"]

QUESTIONS = Path(__file__).resolve().parent.parent / "questions.json"

Kind = Literal[
    "faithful",
    "invented_number",
    "invented_feature",
    "contradiction",
    "judge_gets_wrong",
    "refusal",
    "no_claims",
]


class Question(BaseModel):
    """A question with its prerecorded answer.

    Attributes:
        id: Names it in the output.
        kind: What is special about the answer.
        question: What is asked.
        answer: What the model plays back.
        sources: Sections (chunk ids) that answer the question; empty where none does.
        grounded: Whether a careful reader finds the whole answer in the handbook; None where
            there is nothing to check. Compared with the verdicts afterwards; no judge sees it.
        note: What to look at.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    kind: Kind
    question: str
    answer: str
    sources: tuple[str, ...]
    grounded: bool | None
    note: str


class _QuestionFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    about: str
    questions: tuple[Question, ...]


def load_questions(path: Path = QUESTIONS) -> tuple[Question, ...]:
    """Read the question file.

    Raises:
        DemoError: The file is missing or malformed.
    """
    try:
        return _QuestionFile.model_validate_json(path.read_bytes()).questions
    except OSError as error:
        raise DemoError(f"cannot read {path.name}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise DemoError(f"{path.name} is malformed at {place}: {first['msg']}") from error
