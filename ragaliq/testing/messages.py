"""Requests and replies of the Messages API, as the loopback server sees them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Json", "MessagesRequest", "Reply", "api_error", "message"]

Json = dict[str, Any]

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class MessagesRequest:
    """One request as it arrived.

    Attributes:
        path: Such as `/v1/messages`.
        headers: By lower-case name.
        body: The JSON body.
    """

    path: str
    headers: Mapping[str, str]
    body: Json

    @property
    def model(self) -> str:
        """The model that was asked for."""
        return str(self.body.get("model", ""))

    @property
    def schema(self) -> Json | None:
        """The JSON schema the reply has to have, if any."""
        schema = (self.body.get("output_config") or {}).get("format", {}).get("schema")
        return schema if isinstance(schema, dict) else None

    @property
    def blocks(self) -> list[Json]:
        """The content blocks of all messages, in order."""
        found: list[Json] = []
        for item in self.body.get("messages", []):
            content = item["content"]
            found += [{"type": "text", "text": content}] if isinstance(content, str) else content
        return found

    @property
    def text(self) -> str:
        """The text of all messages."""
        return "".join(block.get("text", "") for block in self.blocks)

    @property
    def system(self) -> str:
        """The system prompt's text."""
        system = self.body.get("system", "")
        if isinstance(system, str):
            return system
        return "".join(block["text"] for block in system)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server answers.

    Attributes:
        status: HTTP status.
        body: JSON, or bytes to send as they are; None for what the server would answer anyway.
        edit: Applied to a JSON body before it is sent.
        headers: Further headers.
        delay: Seconds to wait before the reply.
        cut_after: Bytes of the body after which the connection breaks; None to send it whole.
    """

    status: int = 200
    body: Json | bytes | None = None
    edit: Callable[[Json], Json] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut_after: int | None = None


def message(
    text: str, *, model: str, usage: Mapping[str, int], stop_reason: str = "end_turn"
) -> Json:
    """The body of a successful reply."""
    return {
        "id": f"msg_{next(_numbers):08d}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": text}],
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": dict(usage),
    }


def api_error(status: int, kind: str, text: str, *, retry_after: float | None = None) -> Reply:
    """A failure as the API words it.

    Args:
        status: HTTP status.
        kind: Such as `rate_limit_error`.
        text: The message.
        retry_after: Seconds the client is told to wait.
    """
    request_id = f"req_{next(_numbers):08d}"
    headers = {"request-id": request_id}
    if retry_after is not None:
        headers["retry-after-ms"] = f"{retry_after * 1000:g}"
        headers["retry-after"] = f"{retry_after:g}"
    body = {"type": "error", "error": {"type": kind, "message": text}, "request_id": request_id}
    return Reply(status=status, body=body, headers=headers)
