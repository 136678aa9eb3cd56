"""What the application itself says about its runs, where guessing fails.

Whatever is not said is guessed as ever.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Any

from langchain_ragaliq.reading import READER
from ragaliq import CaseDraft, ConfigurationError, Passage
from ragaliq.capture import Found

__all__ = ["Extract", "Facts", "Overrides"]

logger = logging.getLogger("ragaliq.langchain")

Extract = Callable[[Any, Any], Mapping[str, Any] | CaseDraft | None]
"""Takes a run's inputs and outputs; gives any of `question`, `contexts` and `answer`."""

_NAMES = ("question", "contexts", "answer")


class Facts:
    """Question, passages and answer of a run, each of them None while nobody has named it."""

    __slots__ = ("answer", "passages", "question")

    def __init__(self) -> None:
        self.question: str | None = None
        self.passages: list[Passage] | None = None
        self.answer: str | None = None

    def name(self, what: str, value: Any) -> None:
        """Take over one of them; contexts that are named piece by piece are added up.

        Raises:
            TypeError: The value is of the wrong kind.
        """
        if value is None:
            return
        if what == "contexts":
            self.passages = (self.passages or []) + _passages(value)
        elif what == "question":
            found = READER.question(value)
            self.question = None if found is None else found.text
        else:
            found = READER.answer_text(value)
            self.answer = None if found is None else found.text


class Overrides:
    """Where a chain keeps what cannot be guessed.

    Args:
        extract: A function that reads it off a run's inputs and outputs.
        question_key: Key of the question among the inputs.
        answer_key: Key of the answer in the output.
        context_key: Key of the context in the output, the inputs or a prompt's variables.

    Raises:
        ConfigurationError: One of them cannot be used.
    """

    __slots__ = ("_answer_key", "_context_key", "_failed", "_question_key", "extract")

    def __init__(
        self,
        *,
        extract: Extract | None = None,
        question_key: str | None = None,
        answer_key: str | None = None,
        context_key: str | None = None,
    ) -> None:
        if extract is not None and (not callable(extract) or inspect.iscoroutinefunction(extract)):
            raise ConfigurationError(
                "extract must be a plain function of a run's inputs and outputs, "
                f"got {type(extract).__name__}"
            )
        keys = {"question": question_key, "answer": answer_key, "context": context_key}
        for name, key in keys.items():
            if key is not None and (not isinstance(key, str) or not key):
                raise ConfigurationError(f"{name}_key must be the name of a key, got {key!r}")
        self.extract = extract
        self._failed = False
        self._question_key = question_key
        self._answer_key = answer_key
        self._context_key = context_key

    def question(self, inputs: Any) -> Found | None:
        """The question under the key the application named."""
        key = self._question_key
        return READER.question(_under(key, inputs), f"input.{key}") if key else None

    def answer(self, outputs: Any) -> Found | None:
        """The answer under the key the application named."""
        key = self._answer_key
        return READER.answer_text(_under(key, outputs), f"output.{key}") if key else None

    def passages(self, value: Any) -> list[Passage] | None:
        """The context under the key the application named; None if it is not there."""
        held = _under(self._context_key, value) if self._context_key else None
        if isinstance(held, str):
            return [Passage(held)] if held.strip() else []
        return READER.listed(held)

    def complain(self, error: Exception) -> None:
        """Log the first failure of the function; its message may quote the application's text."""
        if not self._failed:
            self._failed = True
            logger.warning(
                "extract failed (%s); such runs are counted `extract_failed`", type(error).__name__
            )

    def facts(self, inputs: Any, outputs: Any) -> Facts:
        """What the application's function reads off a run.

        Raises:
            Exception: Whatever the function raises.
            TypeError: It returned something else than it should.
        """
        facts = Facts()
        found = self.extract(inputs, outputs) if self.extract is not None else None
        if isinstance(found, CaseDraft):
            # What a draft leaves empty is not said.
            facts.question, facts.answer = found.query or None, found.response or None
            facts.passages = list(found.passages or ()) or None
        elif isinstance(found, Mapping):
            if unknown := sorted(str(key) for key in found if key not in _NAMES):
                raise TypeError(f"extract may return question, contexts and answer, not {unknown}")
            for what, value in found.items():
                facts.name(what, value)
        elif found is not None:
            raise TypeError(f"extract must return a mapping, not {type(found).__name__}")
        return facts


def _under(key: str, value: Any) -> Any:
    fields = READER.fields(value)
    return fields.get(key) if fields is not None else None


def _passages(value: Any) -> list[Passage]:
    passages = READER.listed([value] if isinstance(value, str) else value)
    if passages is None:
        raise TypeError(
            f"contexts must be a list of texts or documents, not {type(value).__name__}"
        )
    return passages
