"""What the Messages API demands of a request and counts of it, as far as judges are concerned."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from typing import Any

from ragaliq.testing.messages import MessagesRequest
from ragaliq.testing.replies import Json
from ragaliq.testing.wording import tokens

__all__ = ["TokenMeter", "fault_of", "open_object_in"]

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
