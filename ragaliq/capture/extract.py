"""Parts of a run that the application provides, where inference fails.

Other parts are inferred.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ragaliq.capture.run import RunLog
from ragaliq.capture.texts import Found, Reader
from ragaliq.core.log_once import LogOnce
from ragaliq.core.passages import Passage
from ragaliq.errors import ConfigurationError

Extract = Callable[[Any, Any], Mapping[str, Any] | None]
"""Takes a run's inputs and outputs; gives any of `question`, `contexts` and `answer`."""
Keys = str | Sequence[str]
"""A key, or a path such as `data.answer`, or several of them."""


class _UnreadableError(TypeError):
    """The application provided a value of the wrong type; the message holds none of its texts."""


def name_part(log: RunLog, what: str, value: Any, *, reader: Reader) -> None:
    """Record a part that the application provides; contexts provided one by one are added up.

    Raises:
        TypeError: The value is of the wrong kind.
    """
    if value is None:
        return
    if what == "question":
        log.question = named(reader.question(value)) or log.question
    elif what == "answer":
        log.answer = named(reader.answer_text(value)) or log.answer
    elif what == "contexts":
        is_some = isinstance(value, Iterable) and not isinstance(value, str | Mapping)
        held = list(value) if is_some else [value] if isinstance(value, str) else value
        passages = reader.listed(held)
        if passages is None:
            raise _UnreadableError(f"contexts: {unreadable(held)}")
        log.passages = [*(log.passages or ()), *passages]
    else:
        raise _UnreadableError(f"it may return question, contexts and answer, not {what!r}")


class Overrides:
    """Application's own settings for parts that cannot be inferred: a function, and keys.

    Args:
        reader: Reads the framework's objects.
        logger: Logs unreadable values.
        extract: A function that extracts parts from a run's inputs and outputs.
        question_key: Key of the question among the inputs; the first existing one of several.
        answer_key: Key of the answer in the output; several make one answer.
        context_key: Key of the context in the output, the inputs or a prompt's variables.

    Attributes:
        extract: See above.
        answer_keys: First key of each path of the answer.
        is_empty: Whether nothing is set.

    Raises:
        ConfigurationError: One of them cannot be used.
    """

    def __init__(
        self,
        reader: Reader,
        logger: logging.Logger,
        *,
        extract: Extract | None = None,
        question_key: Keys | None = None,
        answer_key: Keys | None = None,
        context_key: Keys | None = None,
    ) -> None:
        if extract is not None and (not callable(extract) or inspect.iscoroutinefunction(extract)):
            raise ConfigurationError(
                "extract must be a plain function of a run's inputs and outputs, "
                f"got {type(extract).__name__}"
            )
        given = {"question": question_key, "answer": answer_key, "context": context_key}
        self._paths = {name: _paths(name, keys) for name, keys in given.items()}
        self.extract = extract
        self.is_empty = extract is None and not any(self._paths.values())
        self.answer_keys = frozenset(path.partition(".")[0] for path in self._paths["answer"])
        self._reader, self._log_once = reader, LogOnce(logger)

    def question(self, inputs: Any) -> Found | None:
        """Question under the application's key."""
        if not self._paths["question"]:
            return None
        held = self._at("question", inputs)
        found = (self._reader.question(each, f"input.{path}") for path, each in held)
        return next(filter(None, found), None)

    def passages(self, value: Any) -> list[Passage] | None:
        """Context under the application's keys; None if it is not there."""
        found: list[Passage] | None = None
        for path, held in self._at("context", value) if self._paths["context"] else ():
            listed = [held] if isinstance(held, str) else held
            passages = self._reader.listed(listed)
            if passages is None:
                self._log_once.message("context_key", f"context_key {path!r}: {unreadable(listed)}")
            else:
                found = [*(found or ()), *(each for each in passages if each.text.strip())]
        return found

    def apply(self, log: RunLog, inputs: Any, outputs: Any, fresh: Any) -> bool:
        """Record the parts that the application provides; False if its function failed.

        Its function takes precedence over its events, and those over its keys. The answer is looked
        up in `fresh`, the outputs without answers of earlier turns.
        """
        if self.is_empty:
            return True
        try:
            self._name_extracted(log, inputs, outputs)
        except _UnreadableError as error:
            self._log_once.message("extract", f"extract failed: {error}; further ones are counted")
            return False
        except Exception as error:  # noqa: BLE001 - the application's own code may do anything
            self._log_once.failure("extract failed", error, in_application=True)
            return False
        if not log.answer.text:
            held = dict(self._at("answer", fresh))
            answer = next(iter(held.values()), None) if len(held) < 2 else held
            log.answer = named(self._reader.answer_text(answer)) or log.answer
        if log.passages is None:
            log.passages = self.passages(outputs)
        return True

    def _name_extracted(self, log: RunLog, inputs: Any, outputs: Any) -> None:
        """Record the parts that the application's function extracts."""
        parts = self.extract(inputs, outputs) if self.extract is not None else None
        if parts is not None and not isinstance(parts, Mapping):
            raise _UnreadableError(f"it must return a mapping, not {type(parts).__name__}")
        for what, value in (parts or {}).items():
            if what == "contexts" and value is not None:
                log.passages, log.replaces = None, True
            name_part(log, what, value, reader=self._reader)

    def _at(self, name: str, value: Any) -> list[tuple[str, Any]]:
        """Values under the paths of a part, each with its path."""
        found = [(path, self._reader.at(value, path)) for path in self._paths[name]]
        return [(path, held) for path, held in found if held is not None]


def _paths(name: str, keys: Keys | None) -> tuple[str, ...]:
    paths = () if keys is None else (keys,) if isinstance(keys, str) else tuple(keys)
    if keys is not None and not (paths and all(isinstance(each, str) and each for each in paths)):
        raise ConfigurationError(
            f"{name}_key must be the name of a key, a path such as 'data.{name}', or a list of "
            f"them, got {keys!r}"
        )
    return paths


def named(found: Found | None) -> Found | None:
    """Mark a found text as provided by the application."""
    return None if found is None else Found(found.text, "application")


def unreadable(held: Any) -> str:
    """Message for a context that cannot be read, with the remedy; none of its texts."""
    kind = type(held).__name__
    if isinstance(held, list | tuple):
        kind = f"a list of {' and '.join(sorted({type(each).__name__ for each in held}))}"
    return (
        f"cannot read {kind}; give a list of texts, documents, or dictionaries with the text "
        "under page_content, text or content"
    )
