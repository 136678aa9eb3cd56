"""What the application itself says about its runs, where guessing fails.

Whatever is not said is guessed as ever.
"""

from __future__ import annotations

import logging
from typing import Any

from langchain_ragaliq.reading import READER
from ragaliq import ConfigurationError, Passage
from ragaliq.capture import (
    ANSWER_KEYS,
    Extract,
    Found,
    LogOnce,
    RunLog,
    extract_parts,
    named,
    require_function,
    unreadable,
)

logger = logging.getLogger("ragaliq.langchain")

STATE_ANSWER_KEYS = frozenset((*ANSWER_KEYS, "structured_response"))
"""Where a graph's state may hold an answer, apart from its messages."""


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
        require_function(extract)
        self._keys = {"question": question_key, "answer": answer_key, "context": context_key}
        for name, key in self._keys.items():
            if key is not None and (not isinstance(key, str) or not key):
                raise ConfigurationError(f"{name}_key must be the name of a key, got {key!r}")
        self.extract = extract
        self.answer_keys = STATE_ANSWER_KEYS | ({answer_key} if answer_key else frozenset())
        self._log_once = LogOnce(logger)

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
            self._log_once.message("context_key", f"context_key {key!r}: {unreadable(held)}")
        return passages

    def apply(self, log: RunLog, inputs: Any, outputs: Any, fresh: Any) -> bool:
        """Note what the application says of a run that ended; False if its function failed.

        Its function goes before the events it sent, and those before the keys it named. Its answer
        is looked up in `fresh`, the outputs without answers of earlier turns.
        """
        if self.extract is not None and not extract_parts(
            self.extract, inputs, outputs, log=log, reader=READER, log_once=self._log_once
        ):
            return False
        if not log.answer.text:
            log.answer = named(READER.answer_text(self._under("answer", fresh))) or log.answer
        if log.passages is None:
            log.passages = self.passages(outputs)
        return True

    def _under(self, name: str, value: Any) -> Any:
        key = self._keys[name]
        fields = READER.fields(value) if key is not None else None
        return fields.get(key) if fields is not None else None
