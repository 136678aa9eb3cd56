"""A Messages API on the loopback interface."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from dataclasses import replace
from types import TracebackType
from typing import Self

from ragaliq.errors import JudgeError, JudgeRefusalError
from ragaliq.judges.base import LLMJudge
from ragaliq.testing.answering import UnknownFormError, answer
from ragaliq.testing.faults import refusal
from ragaliq.testing.loopback import Loopback, Responder
from ragaliq.testing.messages import MessagesRequest, Reply, api_error, message
from ragaliq.testing.protocol import TokenMeter, fault_of
from ragaliq.testing.scripted import ScriptedJudge

__all__ = ["MessagesServer"]

_PATH = "/v1/messages"


class MessagesServer:
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

    def __init__(self, judge: LLMJudge | None = None, *, respond: Responder | None = None) -> None:
        self._judge = judge or ScriptedJudge()
        self._respond = respond or (lambda _: Reply())
        self._meter = TokenMeter()
        self._lock = threading.Lock()
        self._requests: list[MessagesRequest] = []
        self._queue: deque[Reply] = deque()
        self._every: Reply | None = None
        self._http: Loopback | None = None

    @property
    def url(self) -> str:
        """What to pass as `base_url`."""
        if self._http is None:
            raise RuntimeError("the server is not running; use it in a with statement")
        return self._http.url

    @property
    def requests(self) -> list[MessagesRequest]:
        """Every request so far, retries included, in order of arrival."""
        with self._lock:
            return list(self._requests)

    def enqueue(self, *replies: Reply) -> None:
        """Answer the next requests with these replies, one each."""
        with self._lock:
            self._queue.extend(replies)

    def always(self, reply: Reply | None) -> None:
        """Answer every request that finds the queue empty with `reply`; None ends that."""
        with self._lock:
            self._every = reply

    def start(self) -> Self:
        """Listen on a free port of the loopback interface."""
        self._http = Loopback(self._handle)
        threading.Thread(
            target=self._http.serve_forever,
            kwargs={"poll_interval": 0.01},
            name="ragaliq-messages-server",
            daemon=True,
        ).start()
        return self

    def close(self) -> None:
        """Break all connections and stop listening."""
        if self._http is not None:
            self._http.stop()
            self._http = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _handle(self, request: MessagesRequest) -> Reply:
        with self._lock:
            self._requests.append(request)
            planned = self._queue.popleft() if self._queue else self._every
        if planned is None:
            planned = self._refused(request) or self._respond(request)
        if planned.body is None:
            usual = self._answer(request)
            planned = replace(planned, status=usual.status, body=usual.body)
            if usual.edit is not None and planned.edit is None:
                planned = replace(planned, edit=usual.edit)
        if planned.edit is not None and isinstance(planned.body, dict) and planned.status == 200:
            planned = replace(planned, body=planned.edit(planned.body))
        return planned

    def _refused(self, request: MessagesRequest) -> Reply | None:
        if request.path != _PATH:
            return api_error(404, "not_found_error", "Not found")
        if not request.headers.get("authorization") and not request.headers.get("x-api-key"):
            return api_error(401, "authentication_error", "invalid x-api-key")
        fault = fault_of(request)
        return api_error(400, "invalid_request_error", fault) if fault else None

    def _answer(self, request: MessagesRequest) -> Reply:
        reply = Reply()
        try:
            text = asyncio.run(answer(request, self._judge))
        except UnknownFormError as error:
            return api_error(400, "invalid_request_error", str(error))
        except JudgeRefusalError:
            text, reply = "", refusal()
        except JudgeError as error:
            return api_error(500, "api_error", type(error).__name__)
        usage = self._meter.usage(request, text)
        return replace(reply, body=message(text, model=request.model, usage=usage))
