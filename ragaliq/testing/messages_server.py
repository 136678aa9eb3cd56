"""A Messages API on the loopback interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ragaliq.judges.base import LLMJudge
from ragaliq.testing.messages import MessagesRequest, api_error, message
from ragaliq.testing.protocol import TokenMeter, fault_of
from ragaliq.testing.replies import Json, Reply, Stop
from ragaliq.testing.server import LoopbackServer

__all__ = ["MessagesServer"]

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
