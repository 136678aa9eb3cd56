"""A chat-completions server on the loopback interface."""

from __future__ import annotations

import hashlib
import itertools
import threading

from loopback.messages import open_object_in
from loopback.protocol import CHARACTERS_PER_TOKEN, LoopbackServer, Reply, Request, tokens
from ragaliq.judges.wire import ClaimsReply, GradedReply, ScoreReply, VerdictsReply, form_of

# --- What a server accepts --------------------------------------------------------------------

_ROLES = {"system", "developer", "user", "assistant", "tool"}
_FORMATS = {"text", "json_object", "json_schema"}
# Characters: prompts are cached from 1,024 tokens on, in steps of 128.
_CACHED_FROM = 1024 * CHARACTERS_PER_TOKEN
_CACHED_STEP = 128 * CHARACTERS_PER_TOKEN


def _faults(request):
    """Why a server would answer 400, the first reason first."""
    body, form = request.body, request.format
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "you must provide a model parameter"
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        yield "'messages' must be a non-empty list"
    if any(role not in _ROLES or not text.strip() for role, text in request.messages):
        yield "each message needs a role and a text"
    if body.get("stream"):
        yield "'stream' is not supported by this test server"
    kind = form.get("type", "text")
    if kind not in _FORMATS:
        yield "invalid value for 'response_format.type'"
    if kind == "json_object" and "json" not in (request.system + request.text).lower():
        yield "'messages' must contain the word 'json' to use 'response_format' 'json_object'"
    if kind == "json_schema":
        named = form.get("json_schema") or {}
        if not named.get("name") or not isinstance(named.get("schema"), dict):
            yield "'response_format.json_schema' needs a name and a schema"
        if named.get("strict") and open_object_in(named["schema"]):
            yield "'response_format.json_schema': 'additionalProperties' must be false for objects"


class _ChatMeter:
    """Counts tokens, four characters each, and caches prompts by their beginnings on its own."""

    def __init__(self):
        self._lock = threading.Lock()
        self._cached = set()

    def usage(self, request, text):
        """The `usage` of a reply with this text."""
        prompt = f"{request.model}{request.system}{request.text}"
        digest = hashlib.sha256(prompt[:_CACHED_FROM].encode())
        cached = 0
        with self._lock:
            for end in range(_CACHED_FROM, len(prompt) + 1, _CACHED_STEP):
                if digest.digest() in self._cached:
                    cached = end
                self._cached.add(digest.digest())
                digest.update(prompt[end : end + _CACHED_STEP].encode())
        spent, said = tokens(prompt), tokens(text)
        return {
            "prompt_tokens": spent,
            "completion_tokens": said,
            "total_tokens": spent + said,
            "prompt_tokens_details": {"cached_tokens": cached // CHARACTERS_PER_TOKEN},
        }


# --- Requests and replies ---------------------------------------------------------------------

_numbers = itertools.count(1)

_FINISH_REASONS = {"refusal": "stop", "max_tokens": "length", "context_window": "length"}
_OUR_REPLIES = (ClaimsReply, VerdictsReply, GradedReply, ScoreReply)


class ChatRequest(Request):
    """One request as it arrived."""

    @property
    def format(self):
        """The `response_format`; empty where none is asked for."""
        found = self.body.get("response_format")
        return found if isinstance(found, dict) else {}

    @property
    def schema(self):
        schema = (self.format.get("json_schema") or self.format).get("schema")
        return schema if isinstance(schema, dict) else None

    @property
    def form(self):
        """The fields the reply has to have: by the schema, else by the form the text describes."""
        if self.schema is not None:
            return frozenset(self.schema.get("properties", {}))
        # The last one: the texts that are judged may describe forms too.
        places = {self.text.rfind(form_of(reply)): reply for reply in _OUR_REPLIES}
        last = max(places)
        return frozenset(places[last].model_fields) if last >= 0 else None

    @property
    def messages(self):
        """Role and text of each message."""
        return [
            (str(item.get("role")), _text(item.get("content")))
            for item in self.body.get("messages", [])
        ]

    @property
    def text(self):
        return "".join(text for role, text in self.messages if role != "system")

    @property
    def system(self):
        return "".join(text for role, text in self.messages if role == "system")


def chat_error(status, text, *, kind="invalid_request_error"):
    """A failure as such servers word it; `kind` is such as `invalid_request_error`."""
    body = {"error": {"message": text, "type": kind, "param": None, "code": None}}
    headers = {"x-request-id": f"req_{next(_numbers):08d}"}
    return Reply(status=status, body=body, headers=headers)


def _text(content):
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content if isinstance(content, str) else ""


# --- The server -------------------------------------------------------------------------------

_KINDS = {429: "rate_limit_error", 500: "server_error", 529: "server_error"}


class ChatCompletionsServer(LoopbackServer):
    """Answers `POST /v1/chat/completions`, with or without a key; a context manager.

        with ChatCompletionsServer() as server:
            judge = OpenAICompatibleJudge(base_url=server.url, model="any")

    The judge's answer comes whether it is asked for with a schema or in words.
    """

    _base_path = "/v1"
    _request_kind, _meter_kind = ChatRequest, _ChatMeter

    def _refused(self, request):
        if request.path != f"{self._base_path}/chat/completions":
            return self._error(404, "Not found")
        fault = next(_faults(request), None)
        return self._error(400, fault) if fault else None

    def _body(self, request, text, stop):
        declined = stop == "refusal"
        said = {"role": "assistant", "content": None if declined else text}
        said["refusal"] = (text or "I cannot do that.") if declined else None
        reason = "stop" if stop is None else _FINISH_REASONS[stop]
        return {
            "id": f"chatcmpl-{next(_numbers):08d}",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": request.model,
            "choices": [{"index": 0, "message": said, "logprobs": None, "finish_reason": reason}],
            "usage": self._meter.usage(request, text),
        }

    def _error(self, status, text):
        return chat_error(status, text, kind=_KINDS.get(status, "invalid_request_error"))
