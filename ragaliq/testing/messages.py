"""Requests and replies of the Messages API, as the loopback server sees them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from ragaliq.testing.replies import Json, Reply, Stop, retry_headers

__all__ = ["MessagesRequest", "api_error", "message"]

_numbers = itertools.count(1)

_STOP_REASONS: Mapping[Stop, str] = {
    "refusal": "refusal",
    "max_tokens": "max_tokens",
    "context_window": "model_context_window_exceeded",
}


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
    def form(self) -> frozenset[str] | None:
        """The fields the reply has to have, if any."""
        return None if self.schema is None else frozenset(self.schema.get("properties", {}))

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


def message(text: str, *, model: str, usage: Mapping[str, int], stop: Stop | None = None) -> Json:
    """The body of a successful reply.

    Args:
        text: What the model said.
        model: The model's name.
        usage: Its tokens.
        stop: Why it stopped, unless it came to the end.
    """
    body: Json = {
        "id": f"msg_{next(_numbers):08d}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": text}] if text else [],
        "stop_reason": "end_turn" if stop is None else _STOP_REASONS[stop],
        "stop_sequence": None,
        "usage": dict(usage),
    }
    if stop == "refusal":
        body["stop_details"] = {"type": "refusal", "category": None, "explanation": None}
    return body


def api_error(status: int, kind: str, text: str, *, retry_after: float | None = None) -> Reply:
    """A failure as the API words it.

    Args:
        status: HTTP status.
        kind: Such as `rate_limit_error`.
        text: The message.
        retry_after: Seconds the client is told to wait.
    """
    request_id = f"req_{next(_numbers):08d}"
    waiting = {} if retry_after is None else retry_headers(retry_after)
    body = {"type": "error", "error": {"type": kind, "message": text}, "request_id": request_id}
    return Reply(status=status, body=body, headers={"request-id": request_id, **waiting})
