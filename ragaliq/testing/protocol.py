"""What the loopback servers share: HTTP, planned replies, recorded requests, a judge behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import socketserver
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from ragaliq.errors import JudgeError, JudgeRefusalError
from ragaliq.judges.base import BatchingJudge, ClaimVerdict, LLMJudge
from ragaliq.judges.wire import (
    ClaimReply,
    ClaimsReply,
    GradedReply,
    ScoreReply,
    StatementReply,
    VerdictsReply,
    claim_id,
    reply_fields,
)
from ragaliq.testing.faults import refusal
from ragaliq.testing.replies import Json, Reply, Stop
from ragaliq.testing.scripted import ScriptedJudge

__all__ = [
    "Getter",
    "Handler",
    "Loopback",
    "LoopbackServer",
    "PromptReader",
    "UnknownFormError",
    "answer",
]


# --- HTTP -------------------------------------------------------------------------------------

Handler = Callable[[str, Mapping[str, str], Json | None], Reply]
"""Gives the reply to a path, headers by lower-case name, and a body; None for one without JSON."""

Getter = Callable[[str, Mapping[str, str]], Reply]
"""Gives the reply to a GET request: its path, with what is asked behind `?`, and headers."""

_CLOSING_TIME = 5.0


class Loopback(socketserver.ThreadingTCPServer):
    """A threaded HTTP server on a free port of the loopback interface.

    Args:
        handle: Gives the reply to a request; called from several threads.
        name: Of the thread that listens.
        get: Gives the reply to a GET request; None where the protocol has none.
    """

    # Not HTTPServer, which looks up the name of the machine before it listens.
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, handle: Handler, *, name: str, get: Getter | None = None) -> None:
        self.handle_post, self.handle_get = handle, get
        self.closing = threading.Event()
        self._connections: set[socket.socket] = set()
        self._changed = threading.Condition()
        super().__init__(("127.0.0.1", 0), _Connection)
        threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.01}, name=name, daemon=True
        ).start()

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Note the connection and serve it in a thread of its own."""
        with self._changed:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close the connection and forget it."""
        super().shutdown_request(request)
        with self._changed:
            self._connections.discard(request)
            self._changed.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away; that is what time limits do."""

    def stop(self) -> None:
        """Break all connections and stop listening."""
        self.closing.set()
        self.shutdown()
        self.server_close()
        with self._changed:
            for connection in self._connections:
                # Wakes the thread that waits for the connection's next request.
                with contextlib.suppress(OSError):  # the client has just gone
                    connection.shutdown(socket.SHUT_RD)
            self._changed.wait_for(lambda: not self._connections, timeout=_CLOSING_TIME)


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Loopback

    def do_POST(self) -> None:
        """Read one request and send the reply to it."""
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            content = json.loads(body)
        except ValueError:
            content = None
        path = self.path.partition("?")[0]
        self._send(
            self.server.handle_post(path, headers, content if isinstance(content, dict) else None)
        )

    def do_GET(self) -> None:
        """Send the reply to a request without a body."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        if self.server.handle_get is None:
            self.send_error(501)
        else:
            self._send(self.server.handle_get(self.path, headers))

    def _send(self, reply: Reply) -> None:
        if reply.delay and self.server.closing.wait(reply.delay):
            self.close_connection = True
            return
        body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        headers = {"content-type": "application/json", **reply.headers}
        self.send_response(reply.status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: reply.cut_after])
        if reply.cut_after is not None:
            self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Write nothing: requests hold the texts that are judged."""


# --- Answers of a judge to prompts of ours ----------------------------------------------------

_SECTION = re.compile(
    r"<(?P<tag>question|answer|context|claims|chunk)(?P<number>(?:-\d+)?)>\n"
    r"(?P<text>.*?)\n</(?P=tag)(?P=number)>",
    re.DOTALL,
)


class UnknownFormError(Exception):
    """The request asks for something no judge of ours is asked for."""


class PromptReader:
    """The application's texts, taken back out of a prompt.

    Args:
        text: The request's text, with sections as `ragaliq.judges.prompting` writes them.
    """

    def __init__(self, text: str) -> None:
        self._sections: dict[str, tuple[str, str]] = {}
        for match in _SECTION.finditer(text):
            self._sections.setdefault(match["tag"], (match["number"], match["text"]))

    def __contains__(self, tag: str) -> bool:
        return tag in self._sections

    def text(self, tag: str) -> str:
        """One text; empty where the prompt has no such section."""
        return self._sections.get(tag, ("", ""))[1]

    def texts(self, tag: str, item_tag: str) -> list[str]:
        """The texts of a list."""
        number, body = self._sections.get(tag, ("", ""))
        item = re.compile(
            rf'<{item_tag}{number} id="\w+">\n(.*?)\n</{item_tag}{number}>', re.DOTALL
        )
        return item.findall(body)


async def answer(text: str, form: frozenset[str] | None, judge: LLMJudge) -> str:
    """The reply's text, in the form the request asks for.

    Args:
        text: A request made from ragaliq's prompts, or any other without a form.
        form: The fields of the reply; None where the request asks for no form.
        judge: Who decides.

    Raises:
        UnknownFormError: The form is none of ragaliq's.
        JudgeError: The judge failed.
    """
    if form is None:
        return "OK."
    try:
        reply = _FORMS[form]
    except KeyError:
        raise UnknownFormError(
            f"no answer for a schema with {sorted(form)}; use respond="
        ) from None
    return await reply(PromptReader(text), judge)


async def _claims(prompt: PromptReader, judge: LLMJudge) -> str:
    if isinstance(judge, BatchingJudge):
        found = await judge.extract_statements(prompt.text("question"), prompt.text("answer"))
    else:
        found = await judge.extract_claims(prompt.text("answer"))
    return ClaimsReply(claims=found.claims).model_dump_json()


async def _verdicts(prompt: PromptReader, judge: LLMJudge) -> str:
    claims = prompt.texts("claims", "claim")
    context = prompt.texts("context", "chunk")
    decided: Iterable[tuple[int | None, ClaimVerdict]]
    if isinstance(judge, BatchingJudge):
        verdicts = (await judge.verify_claims(claims, context)).verdicts
        decided = ((verdict.index, verdict) for verdict in verdicts)
    else:
        decided = enumerate([await judge.verify_claim(claim, context) for claim in claims])
    items = [
        ClaimReply(claim_id="" if index is None else claim_id(index), **reply_fields(verdict))
        for index, verdict in decided
    ]
    return VerdictsReply(verdicts=items).model_dump_json()


async def _graded(prompt: PromptReader, judge: LLMJudge) -> str:
    question, response = prompt.text("question"), prompt.text("answer")
    context = prompt.texts("context", "chunk")
    graded: list[tuple[str, ClaimVerdict]]
    if isinstance(judge, BatchingJudge):
        found = await judge.grade_statements(question, response, context)
        graded = [(item.statement, item) for item in found.verdicts]
    else:
        claims = (await judge.extract_claims(response)).claims
        graded = [(claim, await judge.verify_claim(claim, context)) for claim in claims]
    items = [StatementReply(statement=text, **reply_fields(verdict)) for text, verdict in graded]
    return GradedReply(statements=items).model_dump_json()


async def _score(prompt: PromptReader, judge: LLMJudge) -> str:
    question = prompt.text("question")
    if "chunk" in prompt:
        result = await judge.evaluate_context_relevance(question, prompt.text("chunk"))
    else:
        result = await judge.evaluate_relevance(question, prompt.text("answer"))
    return ScoreReply(score=result.score, reasoning=result.reasoning).model_dump_json()


_FORMS: dict[frozenset[str], Callable[[PromptReader, LLMJudge], Awaitable[str]]] = {
    frozenset(ClaimsReply.model_fields): _claims,
    frozenset(VerdictsReply.model_fields): _verdicts,
    frozenset(GradedReply.model_fields): _graded,
    frozenset(ScoreReply.model_fields): _score,
}


# --- The server -------------------------------------------------------------------------------


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
