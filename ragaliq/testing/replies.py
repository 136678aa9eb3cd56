"""What a loopback server is told to answer, whichever protocol it speaks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Json", "Reply", "Stop", "retry_headers"]

Json = dict[str, Any]

Stop = Literal["refusal", "max_tokens", "context_window"]
"""Why a reply is none, in no protocol's words."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server answers.

    Attributes:
        status: HTTP status. With an error status and no body, the protocol's own error is sent.
        body: JSON, or bytes to send as they are; None for what the server would answer anyway.
        text: Applied to the text of the usual answer.
        stop: Why the model stopped, unless it came to the end of the usual answer.
        edit: Applied to a JSON body before it is sent.
        headers: Further headers.
        delay: Seconds to wait before the reply.
        cut_after: Bytes of the body after which the connection breaks; None to send it whole.
    """

    status: int = 200
    body: Json | bytes | None = None
    text: Callable[[str], str] | None = None
    stop: Stop | None = None
    edit: Callable[[Json], Json] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut_after: int | None = None


def retry_headers(seconds: float) -> dict[str, str]:
    """The headers that tell a client how long to wait."""
    return {"retry-after-ms": f"{seconds * 1000:g}", "retry-after": f"{seconds:g}"}
