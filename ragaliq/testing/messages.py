"""A Messages API on the loopback interface."""

from __future__ import annotations

import hashlib
import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ragaliq.judges.base import LLMJudge
from ragaliq.testing.protocol import LoopbackServer
from ragaliq.testing.replies import Json, Reply, Stop, retry_headers
from ragaliq.testing.scripted import tokens

__all__ = ["MessagesRequest", "MessagesServer", "api_error", "message", "open_object_in"]


# --- Requests and replies ---------------------------------------------------------------------

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


# --- What the API demands of a request and counts of it ------------------------------------------

_MIN_CACHEABLE = 512
"""Tokens below which the API caches nothing (Claude Sonnet 5.5)."""
_MAX_BREAKPOINTS = 4
_GONE = ("temperature", "top_p", "top_k")


def fault_of(request: MessagesRequest) -> str | None:
    """Why the API would answer 400, or None."""
    body = request.body
    for name, kind in (("model", str), ("max_tokens", int), ("messages", list)):
        if not isinstance(body.get(name), kind) or not body[name]:
            return f"{name}: Field required"
    for name in _GONE:
        if name in body:
            return f"{name}: not supported by this model"
    if body.get("stream"):
        return "stream: not supported by this test server"
    texts = [block["text"] for block in request.blocks if block.get("type") == "text"]
    if not texts or not all(text.strip() for text in texts):
        return "messages: text content blocks must be non-empty"
    if sum("cache_control" in block for block in request.blocks) > _MAX_BREAKPOINTS:
        return "cache_control: at most 4 blocks"
    return _schema_fault(request.schema) if request.schema is not None else None


def _schema_fault(schema: Json) -> str | None:
    if open_object_in(schema):
        return "output_config.format.schema: 'additionalProperties' must be false for objects"
    return None


def open_object_in(schema: Json) -> bool:
    """Whether a schema leaves some object open to further fields; strict forms may not."""
    return any(part.get("additionalProperties") is not False for part in _objects(schema))


def _objects(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        if value.get("type") == "object":
            yield value
        for part in value.values():
            yield from _objects(part)
    elif isinstance(value, list):
        for part in value:
            yield from _objects(part)


class TokenMeter:
    """Counts tokens, four characters each, and keeps a prompt cache as the API does.

    A prefix is everything up to a block with `cache_control`. As with the API, the model and the
    reply's schema belong to it, and prefixes that are too short are not cached.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cached: set[str] = set()

    def usage(self, request: MessagesRequest, text: str) -> dict[str, int]:
        """The `usage` of a reply with this text."""
        total = tokens(_opening(request) + request.text)
        read = written = 0
        for prefix in _prefixes(request):
            size = tokens(prefix)
            if size < _MIN_CACHEABLE:
                continue
            digest = hashlib.sha256(prefix.encode()).hexdigest()
            with self._lock:
                if digest in self._cached:
                    read, written = size, 0
                else:
                    self._cached.add(digest)
                    written = size - read
        return {
            "input_tokens": total - read - written,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "output_tokens": tokens(text),
        }


def _opening(request: MessagesRequest) -> str:
    schema = json.dumps(request.schema) if request.schema is not None else ""
    return f"{request.model}{schema}{request.system}"


def _prefixes(request: MessagesRequest) -> Iterator[str]:
    prefix = _opening(request)
    for block in request.blocks:
        prefix += block.get("text", "")
        if "cache_control" in block:
            yield prefix


# --- The server -------------------------------------------------------------------------------

_PATH = "/v1/messages"
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class MessagesServer(LoopbackServer[MessagesRequest]):
    """Answers `POST /v1/messages` as the Claude API does; a context manager.

        with MessagesServer() as server:
            judge = ClaudeJudge(api_key="test", base_url=server.url)

    Structured requests made from ragaliq's prompts get an answer decided by `judge`; a request the
    API would refuse gets its 400 or 401.

    Args:
        judge: Who decides; when None, a `ScriptedJudge` that goes by wording.
        respond: Answers in the judge's place; a `Reply` without a body stands for the judge's
            answer. Called from several threads.
    """

    def __init__(
        self,
        judge: LLMJudge | None = None,
        *,
        respond: Callable[[MessagesRequest], Reply] | None = None,
    ) -> None:
        super().__init__(judge, respond=respond)
        self._meter = TokenMeter()

    def _request(self, path: str, headers: Mapping[str, str], body: Json) -> MessagesRequest:
        return MessagesRequest(path, headers, body)

    def _refused(self, request: MessagesRequest) -> Reply | None:
        if request.path != _PATH:
            return self._error(404, "Not found")
        if not request.headers.get("authorization") and not request.headers.get("x-api-key"):
            return self._error(401, "invalid x-api-key")
        fault = fault_of(request)
        return self._error(400, fault) if fault else None

    def _body(self, request: MessagesRequest, text: str, stop: Stop | None) -> Json:
        usage = self._meter.usage(request, text)
        return message(text, model=request.model, usage=usage, stop=stop)

    def _error(self, status: int, text: str) -> Reply:
        return api_error(status, _KINDS.get(status, "api_error"), text)
