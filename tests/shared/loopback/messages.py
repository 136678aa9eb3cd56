"""A Messages API on the loopback interface."""

from __future__ import annotations

import hashlib
import itertools
import json
import threading

from loopback.protocol import LoopbackServer, Reply, Request, tokens

# --- Requests and replies ---------------------------------------------------------------------

_numbers = itertools.count(1)

_STOP_REASONS = {
    "refusal": "refusal",
    "max_tokens": "max_tokens",
    "context_window": "model_context_window_exceeded",
}


class MessagesRequest(Request):
    """One request as it arrived."""

    @property
    def schema(self):
        schema = (self.body.get("output_config") or {}).get("format", {}).get("schema")
        return schema if isinstance(schema, dict) else None

    @property
    def blocks(self):
        """The content blocks of all messages, in order."""
        found = []
        for item in self.body.get("messages", []):
            content = item["content"]
            found += [{"type": "text", "text": content}] if isinstance(content, str) else content
        return found

    @property
    def text(self):
        return "".join(block.get("text", "") for block in self.blocks)

    @property
    def system(self):
        system = self.body.get("system", "")
        if isinstance(system, str):
            return system
        return "".join(block["text"] for block in system)


def api_error(status, kind, text):
    """A failure as the API words it; `kind` is such as `rate_limit_error`."""
    request_id = f"req_{next(_numbers):08d}"
    body = {"type": "error", "error": {"type": kind, "message": text}, "request_id": request_id}
    return Reply(status=status, body=body, headers={"request-id": request_id})


# --- What the API demands of a request and counts of it ------------------------------------------

_MIN_CACHEABLE = 512
"""Tokens below which the API caches nothing (Claude Sonnet 5.5)."""
_MAX_BREAKPOINTS = 4
_GONE = ("temperature", "top_p", "top_k")


def _faults(request):
    """Why the API would answer 400, the first reason first."""
    body = request.body
    for name, kind in (("model", str), ("max_tokens", int), ("messages", list)):
        if not isinstance(body.get(name), kind) or not body[name]:
            yield f"{name}: Field required"
    for name in _GONE:
        if name in body:
            yield f"{name}: not supported by this model"
    if body.get("stream"):
        yield "stream: not supported by this test server"
    texts = [block["text"] for block in request.blocks if block.get("type") == "text"]
    if not texts or not all(text.strip() for text in texts):
        yield "messages: text content blocks must be non-empty"
    if sum("cache_control" in block for block in request.blocks) > _MAX_BREAKPOINTS:
        yield "cache_control: at most 4 blocks"
    if request.schema is not None and open_object_in(request.schema):
        yield "output_config.format.schema: 'additionalProperties' must be false for objects"


def open_object_in(value):
    """Whether a schema leaves some object open to further fields; strict forms may not."""
    if isinstance(value, list):
        return any(map(open_object_in, value))
    if not isinstance(value, dict):
        return False
    is_open = value.get("type") == "object" and value.get("additionalProperties") is not False
    return is_open or any(map(open_object_in, value.values()))


def has_key(headers):
    """Whether a request carries a key or a token."""
    return bool(headers.get("authorization") or headers.get("x-api-key"))


class _TokenMeter:
    """Counts tokens, four characters each, and keeps a prompt cache as the API does.

    A prefix is everything up to a block with `cache_control`. As with the API, the model and the
    reply's schema belong to it, and prefixes that are too short are not cached.
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._cached = set()

    def usage(self, request, text):
        """The `usage` of a reply with this text."""
        schema = json.dumps(request.schema) if request.schema is not None else ""
        prefix = f"{request.model}{schema}{request.system}"
        total = tokens(prefix + request.text)
        read = written = 0
        for block in request.blocks:
            prefix += block.get("text", "")
            size = tokens(prefix)
            if "cache_control" not in block or size < _MIN_CACHEABLE:
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


# --- The server -------------------------------------------------------------------------------

_PATH = "/v1/messages"
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class MessagesServer(LoopbackServer):
    """Answers `POST /v1/messages` as the Claude API does; a context manager.

        with MessagesServer() as server:
            judge = ClaudeJudge(api_key="test", base_url=server.url)

    A request the API would refuse gets its 400 or 401.
    """

    _request_kind, _meter_kind = MessagesRequest, _TokenMeter

    def _refused(self, request):
        if request.path != _PATH:
            return self._error(404, "Not found")
        if not has_key(request.headers):
            return self._error(401, "invalid x-api-key")
        fault = next(_faults(request), None)
        return self._error(400, fault) if fault else None

    def _body(self, request, text, stop):
        body = {
            "id": f"msg_{next(_numbers):08d}",
            "type": "message",
            "role": "assistant",
            "model": request.model,
            "content": [{"type": "text", "text": text}] if text else [],
            "stop_reason": "end_turn" if stop is None else _STOP_REASONS[stop],
            "stop_sequence": None,
            "usage": self._meter.usage(request, text),
        }
        if stop == "refusal":
            body["stop_details"] = {"type": "refusal", "category": None, "explanation": None}
        return body

    def _error(self, status, text):
        return api_error(status, _KINDS.get(status, "api_error"), text)
