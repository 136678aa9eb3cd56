"""What the loopback servers have in common: planned replies, recorded requests, a judge behind."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import ClassVar, Generic, Protocol, Self, TypeVar

from ragaliq.errors import JudgeError, JudgeRefusalError
from ragaliq.judges.base import LLMJudge
from ragaliq.testing.answering import UnknownFormError, answer
from ragaliq.testing.faults import refusal
from ragaliq.testing.loopback import Getter, Loopback
from ragaliq.testing.replies import Json, Reply, Stop
from ragaliq.testing.scripted import ScriptedJudge

__all__ = ["LoopbackServer"]


class _Request(Protocol):
    @property
    def text(self) -> str: ...

    @property
    def form(self) -> frozenset[str] | None: ...


Q = TypeVar("Q", bound=_Request)


class LoopbackServer(ABC, Generic[Q]):
    """Answers requests on the loopback interface; a context manager.

    Structured requests made from ragaliq's prompts get an answer decided by `judge`; a request the
    API would refuse gets its error.

    Args:
        judge: Who decides; when None, a `ScriptedJudge` that goes by wording.
        respond: Answers in the judge's place; a `Reply` without a body stands for the judge's
            answer. Called from several threads.
    """

    _base_path: ClassVar[str] = ""
    _getter: Getter | None = None

    def __init__(
        self, judge: LLMJudge | None = None, *, respond: Callable[[Q], Reply] | None = None
    ) -> None:
        self._judge = judge or ScriptedJudge()
        self._respond = respond or (lambda _: Reply())
        self._lock = threading.Lock()
        self._requests: list[Q] = []
        self._queue: deque[Reply] = deque()
        self._every: Reply | None = None
        self._http: Loopback | None = None

    @abstractmethod
    def _request(self, path: str, headers: Mapping[str, str], body: Json) -> Q:
        """A request as the protocol reads it."""

    @abstractmethod
    def _refused(self, request: Q) -> Reply | None:
        """The error for a request the API would refuse."""

    @abstractmethod
    def _body(self, request: Q, text: str, stop: Stop | None) -> Json:
        """The body of a reply that says `text`."""

    @abstractmethod
    def _error(self, status: int, text: str) -> Reply:
        """An error as the protocol words it."""

    @property
    def url(self) -> str:
        """What to pass as `base_url`."""
        if self._http is None:
            raise RuntimeError("the server is not running; use it in a with statement")
        return self._http.url + self._base_path

    @property
    def requests(self) -> list[Q]:
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
        self._http = Loopback(self._handle, name=f"ragaliq-{type(self).__name__}", get=self._getter)
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

    def _handle(self, path: str, headers: Mapping[str, str], body: Json | None) -> Reply:
        if body is None:
            return self._error(400, "the body is not a JSON object")
        return self._answer_to(self._request(path, headers, body))

    def _answer_to(self, request: Q) -> Reply:
        with self._lock:
            self._requests.append(request)
            planned = self._queue.popleft() if self._queue else self._every
        if planned is None:
            planned = self._refused(request) or self._respond(request)
        if planned.body is None:
            planned = self._filled(request, planned)
        if planned.edit is not None and isinstance(planned.body, dict) and planned.status == 200:
            planned = replace(planned, body=planned.edit(planned.body))
        return planned

    def _filled(self, request: Q, planned: Reply) -> Reply:
        """A planned reply with the body the server would have sent."""
        if planned.status >= 400:
            usual = self._error(planned.status, "a planned failure")
            headers = {**usual.headers, **planned.headers}
            return replace(planned, body=usual.body, headers=headers)
        stop = planned.stop
        try:
            text = asyncio.run(answer(request.text, request.form, self._judge))
        except UnknownFormError as error:
            return self._error(400, str(error))
        except JudgeRefusalError:
            text, stop = "", stop or refusal().stop
        except JudgeError as error:
            return self._error(500, type(error).__name__)
        if planned.text is not None:
            text = planned.text(text)
        return replace(planned, body=self._body(request, text, stop))
