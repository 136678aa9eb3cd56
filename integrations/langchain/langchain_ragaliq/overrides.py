"""What the application itself says about its runs, where guessing fails.

Whatever is not said is guessed as ever.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
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


Keys = str | Sequence[str]
"""A key, or a path such as `data.answer`, or several of them."""


class Overrides:
    """Where a chain keeps what cannot be guessed.

    Args:
        extract: A function that reads it off a run's inputs and outputs.
        question_key: Key of the question among the inputs; the first of several counts.
        answer_key: Key of the answer in the output; several are all of it.
        context_key: Key of the context in the output, the inputs or a prompt's variables.

    Raises:
        ConfigurationError: One of them cannot be used.
    """

    def __init__(
        self,
        *,
        extract: Extract | None = None,
        question_key: Keys | None = None,
        answer_key: Keys | None = None,
        context_key: Keys | None = None,
    ) -> None:
        require_function(extract)
        given = {"question": question_key, "answer": answer_key, "context": context_key}
        self._paths = {name: _paths(name, keys) for name, keys in given.items()}
        self.extract = extract
        kept = (path.partition(".")[0] for path in self._paths["answer"])
        self.answer_keys = STATE_ANSWER_KEYS | frozenset(kept)
        self._log_once = LogOnce(logger)

    def question(self, inputs: Any) -> Found | None:
        """The question under the key the application named."""
        found = (READER.question(held, f"input.{k}") for k, held in self._at("question", inputs))
        return next(filter(None, found), None)

    def passages(self, value: Any) -> list[Passage] | None:
        """The context under the keys the application named; None if it is not there."""
        found: list[Passage] | None = None
        for path, held in self._at("context", value):
            listed = [held] if isinstance(held, str) else held
            passages = READER.listed(listed)
            if passages is None:
                self._log_once.message("context_key", f"context_key {path!r}: {unreadable(listed)}")
            else:
                found = [*(found or ()), *(each for each in passages if each.text.strip())]
        return found

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
            held = dict(self._at("answer", fresh))
            said = next(iter(held.values()), None) if len(held) < 2 else held
            log.answer = named(READER.answer_text(said)) or log.answer
        if log.passages is None:
            log.passages = self.passages(outputs)
        return True

    def _at(self, name: str, value: Any) -> list[tuple[str, Any]]:
        """What is there under the paths of a part, each with its path."""
        found = [(path, READER.at(value, path)) for path in self._paths[name]]
        return [(path, held) for path, held in found if held is not None]


def _paths(name: str, keys: Keys | None) -> tuple[str, ...]:
    paths = () if keys is None else (keys,) if isinstance(keys, str) else tuple(keys)
    if keys is not None and not (paths and all(isinstance(each, str) and each for each in paths)):
        raise ConfigurationError(
            f"{name}_key must be the name of a key, a path such as 'data.{name}', or a list of "
            f"them, got {keys!r}"
        )
    return paths
