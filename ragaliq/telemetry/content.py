"""Content policy: whether text of the application is emitted, and how long it may be.

Off unless the user opted in. Questions, answers, chunks, claims and everything a judge wrote about
them count as content; scores, verdicts, counts and ids do not.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from ragaliq.errors import ConfigurationError
from ragaliq.telemetry import names

ContentKind = Literal["claim", "evidence", "explanation", "question", "answer", "chunk"]
Redactor = Callable[[str, ContentKind], str | None]

_VARIABLES = (names.ENV_CAPTURE_CONTENT, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT")
_HIDE_PREFIX = "OPENINFERENCE_HIDE_"
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("", "0", "false", "no", "off", "no_content")
# By the variable's value: content in spans, content in events.
_MODES = {
    **dict.fromkeys(_FALSE, (False, False)),
    **dict.fromkeys(_TRUE, (True, True)),
    "span_only": (True, False),
    "event_only": (False, True),
    "span_and_event": (True, True),
}


@dataclass(frozen=True, kw_only=True)
class ContentPolicy:
    """Places where content may go.

    Attributes:
        on_spans: Content may go into span attributes.
        on_events: Content may go into log events.
        redact: Called with each text and its kind before the text is shortened; its return value is
            emitted. If it raises or returns None, the text is dropped.
    """

    on_spans: bool = False
    on_events: bool = False
    redact: Redactor | None = None

    @property
    def on_sinks(self) -> bool:
        """Content may go into sinks: only if it may go everywhere, since a store keeps it."""
        return self.on_spans and self.on_events

    @classmethod
    def resolve(
        cls,
        *,
        capture_content: bool | None = None,
        redact: Redactor | None = None,
    ) -> ContentPolicy:
        """Policy from an explicit choice, else from the environment, else off.

        Any `OPENINFERENCE_HIDE_*` variable set to true forces content off: it asks for text to
        stay inside.

        Raises:
            ConfigurationError: A variable holds a value that is neither on nor off, or `redact` is
                not a function.
        """
        if redact is not None and not callable(redact):
            raise ConfigurationError(
                f"redact must be a function of a text and its kind, got {type(redact).__name__}"
            )
        hiding = [name for name in os.environ if name.startswith(_HIDE_PREFIX)]
        said = {
            name: os.environ[name].strip().lower()
            for name in (*hiding, *_VARIABLES)
            if name in os.environ
        }
        if any(said[name] in _TRUE for name in hiding):
            return cls(redact=redact)
        if capture_content is not None:
            return cls(on_spans=capture_content, on_events=capture_content, redact=redact)
        for name in _VARIABLES:
            if name in said:
                if said[name] not in _MODES:
                    raise ConfigurationError(
                        f"{name} must be true, false, NO_CONTENT, SPAN_ONLY, EVENT_ONLY or "
                        "SPAN_AND_EVENT"
                    )
                on_spans, on_events = _MODES[said[name]]
                return cls(on_spans=on_spans, on_events=on_events, redact=redact)
        return cls(redact=redact)

    def without_chunks(self) -> ContentPolicy:
        """The same policy without the text of chunks and what quotes it: evidence, explanations."""
        mine = self.redact

        def redact(text: str, kind: ContentKind) -> str | None:
            if kind in ("chunk", "evidence", "explanation"):
                return None
            return text if mine is None else mine(text, kind)

        return replace(self, redact=redact)

    def text(self, text: str, kind: ContentKind, limit: int) -> str | None:
        """Redact a text, then cut it to `limit` characters; None if it may not be emitted."""
        allowed: object = text
        if self.redact is not None:
            try:
                allowed = self.redact(text, kind)
            except Exception:  # noqa: BLE001 - a failing redactor must never let text through
                return None
        if not isinstance(allowed, str):
            return None
        return sendable(allowed if len(allowed) <= limit else allowed[: limit - 1] + "…")


def sendable(text: str) -> str:
    """Replace characters that receivers refuse; the length stays the same.

    These are half surrogate pairs, which have no UTF-8 form, and NUL, which databases behind
    receivers refuse together with the whole batch.
    """
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def identifier(text: str) -> str:
    """Cut a name or an id to a bounded length."""
    return sendable(text[: names.MAX_NAME_LENGTH])
