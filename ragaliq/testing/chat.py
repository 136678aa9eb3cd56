"""Requests and replies of the chat-completions protocol, as the loopback server sees them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragaliq.judges.wire import ClaimsReply, GradedReply, ScoreReply, VerdictsReply, form_of
from ragaliq.testing.replies import Json, Reply, Stop

__all__ = ["ChatRequest", "chat_error", "completion"]

_numbers = itertools.count(1)

_FINISH_REASONS: Mapping[Stop, str] = {
    "refusal": "stop",
    "max_tokens": "length",
    "context_window": "length",
}
_OUR_REPLIES = (ClaimsReply, VerdictsReply, GradedReply, ScoreReply)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request as it arrived.

    Attributes:
        path: Such as `/v1/chat/completions`.
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
    def format(self) -> Json:
        """The `response_format`; empty where none is asked for."""
        found = self.body.get("response_format")
        return found if isinstance(found, dict) else {}

    @property
    def schema(self) -> Json | None:
        """The JSON schema the reply has to have, if any."""
        schema = (self.format.get("json_schema") or self.format).get("schema")
        return schema if isinstance(schema, dict) else None

    @property
    def form(self) -> frozenset[str] | None:
        """The fields the reply has to have: by the schema, else by the form the text describes."""
        if self.schema is not None:
            return frozenset(self.schema.get("properties", {}))
        # The last one: the texts that are judged may describe forms too.
        places = {self.text.rfind(form_of(reply)): reply for reply in _OUR_REPLIES}
        last = max(places)
        return frozenset(places[last].model_fields) if last >= 0 else None

    @property
    def messages(self) -> list[tuple[str, str]]:
        """Role and text of each message."""
        return [
            (str(item.get("role")), _text(item.get("content")))
            for item in self.body.get("messages", [])
        ]

    @property
    def text(self) -> str:
        """The text of all messages but the system prompt."""
        return "".join(text for role, text in self.messages if role != "system")

    @property
    def system(self) -> str:
        """The system prompt's text."""
        return "".join(text for role, text in self.messages if role == "system")


def completion(text: str, *, model: str, usage: Json, stop: Stop | None = None) -> Json:
    """The body of a successful reply.

    Args:
        text: What the model said.
        model: The model's name.
        usage: Its tokens.
        stop: Why it stopped, unless it came to the end.
    """
    declined = stop == "refusal"
    said: Json = {"role": "assistant", "content": None if declined else text}
    said["refusal"] = (text or "I cannot do that.") if declined else None
    reason = "stop" if stop is None else _FINISH_REASONS[stop]
    return {
        "id": f"chatcmpl-{next(_numbers):08d}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": model,
        "choices": [{"index": 0, "message": said, "logprobs": None, "finish_reason": reason}],
        "usage": usage,
    }


def chat_error(status: int, text: str, *, kind: str = "invalid_request_error") -> Reply:
    """A failure as such servers word it.

    Args:
        status: HTTP status.
        text: The message.
        kind: Such as `invalid_request_error`.
    """
    body = {"error": {"message": text, "type": kind, "param": None, "code": None}}
    headers = {"x-request-id": f"req_{next(_numbers):08d}"}
    return Reply(status=status, body=body, headers=headers)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content if isinstance(content, str) else ""
