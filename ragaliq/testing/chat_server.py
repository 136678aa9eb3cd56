"""A chat-completions server on the loopback interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from ragaliq.judges.base import LLMJudge
from ragaliq.testing.chat import ChatRequest, chat_error, completion
from ragaliq.testing.chat_protocol import ChatMeter, chat_fault_of
from ragaliq.testing.replies import Json, Reply, Stop
from ragaliq.testing.server import LoopbackServer

__all__ = ["ChatCompletionsServer"]

_KINDS = {429: "rate_limit_error", 500: "server_error", 529: "server_error"}


class ChatCompletionsServer(LoopbackServer[ChatRequest]):
    """Answers `POST /v1/chat/completions`, with or without a key; a context manager.

        with ChatCompletionsServer() as server:
            judge = OpenAICompatibleJudge(base_url=server.url, model="any")

    Requests made from ragaliq's prompts get an answer decided by `judge`, whether they ask for it
    with a schema or in words; a request that is wrong gets a 400.

    Args:
        judge: Who decides; when None, a `ScriptedJudge` that goes by wording.
        respond: Answers in the judge's place; a `Reply` without a body stands for the judge's
            answer. Called from several threads.
    """

    _base_path: ClassVar[str] = "/v1"

    def __init__(
        self,
        judge: LLMJudge | None = None,
        *,
        respond: Callable[[ChatRequest], Reply] | None = None,
    ) -> None:
        super().__init__(judge, respond=respond)
        self._meter = ChatMeter()

    def _request(self, path: str, headers: Mapping[str, str], body: Json) -> ChatRequest:
        return ChatRequest(path, headers, body)

    def _refused(self, request: ChatRequest) -> Reply | None:
        if request.path != f"{self._base_path}/chat/completions":
            return self._error(404, "Not found")
        fault = chat_fault_of(request)
        return self._error(400, fault) if fault else None

    def _body(self, request: ChatRequest, text: str, stop: Stop | None) -> Json:
        usage = self._meter.usage(request, text)
        return completion(text, model=request.model, usage=usage, stop=stop)

    def _error(self, status: int, text: str) -> Reply:
        return chat_error(status, text, kind=_KINDS.get(status, "invalid_request_error"))
