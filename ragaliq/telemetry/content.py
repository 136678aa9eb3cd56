"""Whether text of the application may leave in telemetry, and how long it may be.

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
# By what a variable says: into spans, into events.
_MODES = {
    **dict.fromkeys(_FALSE, (False, False)),
    **dict.fromkeys(_TRUE, (True, True)),
    "span_only": (True, False),
    "event_only": (False, True),
    "span_and_event": (True, True),
}


@dataclass(frozen=True, kw_only=True)
class ContentPolicy:
    """Where content may go.

    Attributes:
        on_spans: Into span attributes.
        on_events: Into log events.
        redact: Called with each text and its kind before it is shortened; what it returns is
            emitted. If it raises or returns None, the text is dropped.
    """

    on_spans: bool = False
    on_events: bool = False
    redact: Redactor | None = None

    @property
    def on_sinks(self) -> bool:
        """Into sinks: only where it may go everywhere, as a store keeps what it gets."""
        return self.on_spans and self.on_events

    @classmethod
    def resolve(
        cls,
        *,
        capture_content: bool | None = None,
        redact: Redactor | None = None,
    ) -> ContentPolicy:
        """The policy from an explicit choice, else from the environment, else off.

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
        """The same, without the text of chunks and what quotes it: evidence and explanations."""
        mine = self.redact

        def redact(text: str, kind: ContentKind) -> str | None:
            if kind in ("chunk", "evidence", "explanation"):
                return None
            return text if mine is None else mine(text, kind)

        return replace(self, redact=redact)

    def text(self, text: str, kind: ContentKind, limit: int) -> str | None:
        """`text` as it may be emitted: redacted, then cut to `limit` characters; None to drop."""
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
    """`text` with a sign in the place of what receivers stumble on; as long as before.

    That is half a surrogate pair, which has no UTF-8 form, and NUL, which databases behind
    receivers refuse, and with it all that was sent along.
    """
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def identifier(text: str) -> str:
    """`text`, a name or an id, as it may be emitted: of bounded length."""
    return sendable(text[: names.MAX_NAME_LENGTH])
