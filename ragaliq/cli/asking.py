"""`ragaliq evaluate QUESTIONS --app MODULE:NAME`: an application's answers, kept in a file."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, TextIO

from ragaliq.cli.console import errors, progress, stopped_by_sigterm
from ragaliq.core.files import file_errors, owner_only, replace_file
from ragaliq.core.results import JudgeUsage
from ragaliq.core.test_case import RAGTestCase
from ragaliq.datasets.opening import read_cases, read_questions
from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.offline.app import NoAnswer, answers


def ask_application(
    app: Any,
    sources: Sequence[str],
    kept: Path,
    *,
    fields: Mapping[str, str],
    encoding: str | None,
    resume: bool,
    concurrency: int,
) -> list[NoAnswer]:
    """Ask an application the questions of files, and save each answer as a case at once.

    Args:
        app: The application; see `ragaliq.evaluate`.
        sources: The files of questions.
        kept: The file of answers; with `resume`, questions with an answer in it are skipped.
        fields: See `read_cases`.
        encoding: Encoding of the questions.
        resume: Whether to continue an existing file.
        concurrency: Questions asked concurrently.

    Returns:
        The questions without an answer.

    Raises:
        DatasetError: No question got an answer, or a file cannot be read.
        ConfigurationError: The file exists already, or the application cannot be asked.
    """
    if len(sources) > 1:
        raise ConfigurationError("--app goes with one file of questions")
    questions = list(read_questions(sources[0], fields=fields, encoding=encoding))
    earlier: dict[str, RAGTestCase] = {}
    if kept.exists() and kept.stat().st_size:
        if not resume:
            raise ConfigurationError(
                f"{kept} already holds answers; continue it with --resume, delete it, or name "
                "another file with --answers"
            )
        earlier = {case.id: case for case in read_cases(kept)}
    asked = {question.id: question.query for question in questions}
    answered = {name: case for name, case in earlier.items() if asked.get(name) == case.query}
    todo = [question for question in questions if question.id not in answered]
    unanswered: list[NoAnswer] = []

    async def ask(file: TextIO) -> None:
        with stopped_by_sigterm():
            async with aclosing(answers(app, todo, concurrency=concurrency)) as found:
                async for answer in found:
                    show(JudgeUsage())
                    if isinstance(answer, NoAnswer):
                        unanswered.append(answer)
                        continue
                    answered[answer.id] = answer
                    await asyncio.to_thread(_append, file, answer)

    with (
        file_errors(kept),
        open(kept, "a", encoding="utf-8", opener=owner_only) as file,
        progress(len(questions), len(answered)) as show,
    ):
        asyncio.run(ask(file))
    if not answered:
        raise DatasetError(f"the application answered no question: {_reasons(unanswered)}")
    if unanswered:
        errors.print(f"{len(unanswered):,} questions have no answer: {_reasons(unanswered)}")
    ordered = [answered[question.id] for question in questions if question.id in answered]
    replace_file(kept, "".join(map(_line, ordered)))
    return unanswered


def _append(file: TextIO, case: RAGTestCase) -> None:
    file.write(_line(case))
    file.flush()


def _line(case: RAGTestCase) -> str:
    row = case.model_dump(exclude_defaults=True, exclude={"sources"}) | {"id": case.id}
    return json.dumps(row, default=str) + "\n"


def _reasons(unanswered: Iterable[NoAnswer]) -> str:
    counted = Counter(
        f"{each.reason} ({each.place})" if each.place else each.reason for each in unanswered
    )
    return ", ".join(f"{count:,} {reason}" for reason, count in counted.most_common())
