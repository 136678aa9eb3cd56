"""What a chat-completions server demands of a request and counts of it, as far as judges go."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator

from ragaliq.testing.chat import ChatRequest
from ragaliq.testing.protocol import open_object_in
from ragaliq.testing.replies import Json
from ragaliq.testing.wording import CHARACTERS_PER_TOKEN, tokens

__all__ = ["ChatMeter", "chat_fault_of"]

_ROLES = {"system", "developer", "user", "assistant", "tool"}
_FORMATS = {"text", "json_object", "json_schema"}
# Characters: prompts are cached from 1,024 tokens on, in steps of 128.
_CACHED_FROM = 1024 * CHARACTERS_PER_TOKEN
_CACHED_STEP = 128 * CHARACTERS_PER_TOKEN


def chat_fault_of(request: ChatRequest) -> str | None:
    """Why a server would answer 400, or None."""
    body = request.body
    if not isinstance(body.get("model"), str) or not body["model"]:
        return "you must provide a model parameter"
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        return "'messages' must be a non-empty list"
    for role, text in request.messages:
        if role not in _ROLES or not text.strip():
            return "each message needs a role and a text"
    if body.get("stream"):
        return "'stream' is not supported by this test server"
    return _format_fault(request) if request.format else None


def _format_fault(request: ChatRequest) -> str | None:
    kind = request.format.get("type")
    if kind not in _FORMATS:
        return "invalid value for 'response_format.type'"
    if kind == "json_object" and "json" not in (request.system + request.text).lower():
        return "'messages' must contain the word 'json' to use 'response_format' 'json_object'"
    if kind != "json_schema":
        return None
    named = request.format.get("json_schema") or {}
    if not named.get("name") or not isinstance(named.get("schema"), dict):
        return "'response_format.json_schema' needs a name and a schema"
    if named.get("strict") and open_object_in(named["schema"]):
        return "'response_format.json_schema': 'additionalProperties' must be false for objects"
    return None


class ChatMeter:
    """Counts tokens, four characters each, and caches prompts by their beginnings on its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cached: set[bytes] = set()

    def usage(self, request: ChatRequest, text: str) -> Json:
        """The `usage` of a reply with this text."""
        prompt = f"{request.model}{request.system}{request.text}"
        cached = 0
        with self._lock:
            for size, digest in _beginnings(prompt):
                if digest in self._cached:
                    cached = size
                self._cached.add(digest)
        spent, said = tokens(prompt), tokens(text)
        return {
            "prompt_tokens": spent,
            "completion_tokens": said,
            "total_tokens": spent + said,
            "prompt_tokens_details": {"cached_tokens": cached // CHARACTERS_PER_TOKEN},
        }


def _beginnings(prompt: str) -> Iterator[tuple[int, bytes]]:
    digest = hashlib.sha256(prompt[:_CACHED_FROM].encode())
    for end in range(_CACHED_FROM, len(prompt) + 1, _CACHED_STEP):
        yield end, digest.digest()
        digest.update(prompt[end : end + _CACHED_STEP].encode())
