"""What the application itself says about its runs, where guessing fails.

Whatever is not said is guessed as ever.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ragaliq.capture.run import RunLog
from ragaliq.capture.texts import Found, Reader
from ragaliq.core.log_once import LogOnce
from ragaliq.errors import ConfigurationError

Extract = Callable[[Any, Any], Mapping[str, Any] | None]
"""Takes a run's inputs and outputs; gives any of `question`, `contexts` and `answer`."""


class _UnreadableError(TypeError):
    """What the application names is of the wrong kind; the message holds none of its texts."""


def require_function(extract: Extract | None) -> None:
    """Refuse what cannot be called with a run's inputs and outputs.

    Raises:
        ConfigurationError: It is no plain function.
    """
    if extract is not None and (not callable(extract) or inspect.iscoroutinefunction(extract)):
        raise ConfigurationError(
            "extract must be a plain function of a run's inputs and outputs, "
            f"got {type(extract).__name__}"
        )


def extract_parts(
    extract: Extract,
    inputs: Any,
    outputs: Any,
    *,
    log: RunLog,
    reader: Reader,
    log_once: LogOnce,
) -> bool:
    """Note what the application's function says of a run; False, and a complaint, if it failed."""
    try:
        said = extract(inputs, outputs)
        if said is not None and not isinstance(said, Mapping):
            kind = type(said).__name__
            raise _UnreadableError(f"it must return a mapping, not {kind}")  # noqa: TRY301 - as what it names
        for what, value in (said or {}).items():
            if what == "contexts" and value is not None:
                log.passages, log.replaces = None, True
            name_part(log, what, value, reader=reader)
    except _UnreadableError as error:
        log_once.message("extract", f"extract failed: {error}; further ones are counted")
        return False
    except Exception as error:  # noqa: BLE001 - the application's own code may do anything
        log_once.failure("extract failed", error, in_application=True)
        return False
    return True


def name_part(log: RunLog, what: str, value: Any, *, reader: Reader) -> None:
    """Take over what the application names; contexts that are named piece by piece are added up.

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


def named(found: Found | None) -> Found | None:
    """What was found, as what the application named."""
    return None if found is None else Found(found.text, "application")


def unreadable(held: Any) -> str:
    """Why a context cannot be read, and what to give; none of its texts."""
    kind = type(held).__name__
    if isinstance(held, list | tuple):
        kind = f"a list of {' and '.join(sorted({type(each).__name__ for each in held}))}"
    return (
        f"cannot read {kind}; give a list of texts, documents, or dictionaries with the text "
        "under page_content, text or content"
    )
