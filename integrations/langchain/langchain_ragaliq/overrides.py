"""What the application itself says about its runs, where guessing fails.

Whatever is not said is guessed as ever.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Any

from langchain_ragaliq.reading import READER
from ragaliq import ConfigurationError, Passage
from ragaliq.capture import ANSWER_KEYS, Complaints, Found, RunLog

logger = logging.getLogger("ragaliq.langchain")

STATE_ANSWER_KEYS = frozenset((*ANSWER_KEYS, "structured_response"))
"""Where a graph's state may hold an answer, apart from its messages."""

Extract = Callable[[Any, Any], Mapping[str, Any] | None]
"""Takes a run's inputs and outputs; gives any of `question`, `contexts` and `answer`."""


class _UnreadableError(TypeError):
    """What the application names is of the wrong kind; the message holds none of its texts."""


def name_part(log: RunLog, what: str, value: Any) -> None:
    """Take over what the application names; contexts that are named piece by piece are added up.

    Raises:
        TypeError: The value is of the wrong kind.
    """
    if value is None:
        return
    if what == "question":
        log.question = _named(READER.question(value)) or log.question
    elif what == "answer":
        log.answer = _named(READER.answer_text(value)) or log.answer
    elif what == "contexts":
        passages = READER.listed([value] if isinstance(value, str) else value)
        if passages is None:
            raise _UnreadableError(f"contexts: {_unreadable(value)}")
        log.passages = [*(log.passages or ()), *passages]
    else:
        raise _UnreadableError(f"it may return question, contexts and answer, not {what!r}")


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
        self._keys = {"question": question_key, "answer": answer_key, "context": context_key}
        for name, key in self._keys.items():
            if key is not None and (not isinstance(key, str) or not key):
                raise ConfigurationError(f"{name}_key must be the name of a key, got {key!r}")
        self.extract = extract
        self.answer_keys = STATE_ANSWER_KEYS | ({answer_key} if answer_key else frozenset())
        self._complaints = Complaints(logger)

    def question(self, inputs: Any) -> Found | None:
        """The question under the key the application named."""
        return READER.question(self._under("question", inputs), f"input.{self._keys['question']}")

    def passages(self, value: Any) -> list[Passage] | None:
        """The context under the key the application named; None if it is not there."""
        held = self._under("context", value)
        if isinstance(held, str):
            return [Passage(held)] if held.strip() else []
        passages = READER.listed(held)
        if passages is None and held is not None:
            key = self._keys["context"]
            self._complaints.once("context_key", f"context_key {key!r}: {_unreadable(held)}")
        return passages

    def apply(self, log: RunLog, inputs: Any, outputs: Any, fresh: Any) -> bool:
        """Note what the application says of a run that ended; False if its function failed.

        Its function goes before the events it sent, and those before the keys it named. Its answer
        is looked up in `fresh`, the outputs without answers of earlier turns.
        """
        try:
            said = self.extract(inputs, outputs) if self.extract is not None else None
            if said is not None and not isinstance(said, Mapping):
                kind = type(said).__name__
                raise _UnreadableError(f"it must return a mapping, not {kind}")  # noqa: TRY301 - as what it names
            for what, value in said.items() if said is not None else ():
                if what == "contexts" and value is not None:
                    log.passages = None
                name_part(log, what, value)
        except _UnreadableError as error:
            self._complaints.once("extract", f"extract failed: {error}; further ones are counted")
            return False
        except Exception as error:  # noqa: BLE001 - the application's own code may do anything
            self._complaints.add("extract failed", error, in_application=True)
            return False
        if not log.answer.text:
            log.answer = _named(READER.answer_text(self._under("answer", fresh))) or log.answer
        if log.passages is None:
            log.passages = self.passages(outputs)
        return True

    def _under(self, name: str, value: Any) -> Any:
        key = self._keys[name]
        fields = READER.fields(value) if key is not None else None
        return fields.get(key) if fields is not None else None


def _unreadable(held: Any) -> str:
    kind = type(held).__name__
    if isinstance(held, list | tuple):
        kind = f"a list of {' and '.join(sorted({type(each).__name__ for each in held}))}"
    return (
        f"cannot read {kind}; give a list of texts, documents, or dictionaries with the text "
        "under page_content, text or content"
    )


def _named(found: Found | None) -> Found | None:
    return None if found is None else Found(found.text, "application")
