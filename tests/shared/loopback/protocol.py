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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

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
from ragaliq.testing import ScriptedJudge

__all__ = [
    "CHARACTERS_PER_TOKEN",
    "Json",
    "LoopbackServer",
    "PromptReader",
    "Reply",
    "Request",
    "Stop",
    "tokens",
]

Json = dict[str, Any]

Stop = Literal["refusal", "max_tokens", "context_window"]
"""Why a reply is none, in no protocol's words."""

CHARACTERS_PER_TOKEN = 4


def tokens(text: str) -> int:
    """The tokens of a text, as the servers count them."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a loopback server answers.

    Attributes:
        status: HTTP status. With an error status and no body, the protocol's own error is sent.
        body: JSON, or bytes to send as they are; None for what the server would answer anyway.
        text: Applied to the text of the usual answer.
        stop: Why the model stopped, unless it came to the end of the usual answer.
        edit: Applied to a JSON body before it is sent.
        headers: Further headers.
        delay: Seconds to wait before the reply.
        cut_after: Bytes of the body after which the connection breaks; None to send it whole.
    """

    status: int = 200
    body: Json | bytes | None = None
    text: Callable[[str], str] | None = None
    stop: Stop | None = None
    edit: Callable[[Json], Json] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut_after: int | None = None


@dataclass(frozen=True, slots=True)
class Request(ABC):
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
    @abstractmethod
    def schema(self) -> Json | None:
        """The JSON schema the reply has to have, if any."""

    @property
    def form(self) -> frozenset[str] | None:
        """The fields the reply has to have, if any."""
        return None if self.schema is None else frozenset(self.schema.get("properties", {}))

    @property
    @abstractmethod
    def text(self) -> str:
        """The text of all messages but the system prompt."""

    @property
    @abstractmethod
    def system(self) -> str:
        """The system prompt's text."""


# --- HTTP -------------------------------------------------------------------------------------

_CLOSING_TIME = 5.0


class _Loopback(socketserver.ThreadingTCPServer):
    """A threaded HTTP server on a free port of the loopback interface."""

    # Not HTTPServer, which looks up the name of the machine before it listens.
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, owner: LoopbackServer[Any]) -> None:
        self.owner = owner
        self.closing = threading.Event()
        self._connections: set[socket.socket] = set()
        self._changed = threading.Condition()
        super().__init__(("127.0.0.1", 0), _Connection)
        threading.Thread(
            target=self.serve_forever,
            kwargs={"poll_interval": 0.01},
            name=f"ragaliq-{type(owner).__name__}",
            daemon=True,
        ).start()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._changed:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self._changed:
            self._connections.discard(request)
            self._changed.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away; that is what time limits do."""

    def stop(self) -> None:
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
    server: _Loopback

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            content = json.loads(body)
        except ValueError:
            content = None
        path = self.path.partition("?")[0]
        content = content if isinstance(content, dict) else None
        self._send(self.server.owner._post(path, self._lower_headers(), content))

    def do_GET(self) -> None:
        self._send(self.server.owner._get(self.path, self._lower_headers()))

    def _lower_headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items()}

    def _send(self, reply: Reply) -> None:
        if reply.delay and self.server.closing.wait(reply.delay):
            self.close_connection = True
            return
        body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        self.send_response(reply.status)
        for name, value in {"content-type": "application/json", **reply.headers}.items():
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


class _UnknownFormError(Exception):
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


async def _answer(text: str, form: frozenset[str] | None, judge: LLMJudge) -> str:
    """The reply's text, in the form the request asks for; "OK." where it asks for none.

    Raises:
        _UnknownFormError: The form is none of ragaliq's.
        JudgeError: The judge failed.
    """
    if form is None:
        return "OK."
    prompt = PromptReader(text)
    question, response = prompt.text("question"), prompt.text("answer")
    context = prompt.texts("context", "chunk")
    if form == ClaimsReply.model_fields.keys():
        found = await (
            judge.extract_statements(question, response)
            if isinstance(judge, BatchingJudge)
            else judge.extract_claims(response)
        )
        return ClaimsReply(claims=found.claims).model_dump_json()
    if form == VerdictsReply.model_fields.keys():
        claims = prompt.texts("claims", "claim")
        if isinstance(judge, BatchingJudge):
            verdicts = (await judge.verify_claims(claims, context)).verdicts
        else:
            verdicts = await _decided(judge, claims, context)
        ids = ["" if each.index is None else claim_id(each.index) for each in verdicts]
        rows = [
            ClaimReply(claim_id=name, **reply_fields(each))
            for name, each in zip(ids, verdicts, strict=True)
        ]
        return VerdictsReply(verdicts=rows).model_dump_json()
    if form == GradedReply.model_fields.keys():
        if isinstance(judge, BatchingJudge):
            graded = (await judge.grade_statements(question, response, context)).verdicts
        else:
            graded = await _decided(judge, (await judge.extract_claims(response)).claims, context)
        items = [StatementReply(statement=each.statement, **reply_fields(each)) for each in graded]
        return GradedReply(statements=items).model_dump_json()
    if form != ScoreReply.model_fields.keys():
        raise _UnknownFormError(f"no answer for a schema with {sorted(form)}; use respond=")
    if "chunk" in prompt:
        result = await judge.evaluate_context_relevance(question, prompt.text("chunk"))
    else:
        result = await judge.evaluate_relevance(question, response)
    return ScoreReply(score=result.score, reasoning=result.reasoning).model_dump_json()


async def _decided(judge: LLMJudge, claims: list[str], context: list[str]) -> list[ClaimVerdict]:
    verdicts = [await judge.verify_claim(claim, context) for claim in claims]
    return [
        verdict.model_copy(update={"index": index, "statement": claims[index]})
        for index, verdict in enumerate(verdicts)
    ]


# --- The server -------------------------------------------------------------------------------

Q = TypeVar("Q", bound=Request)


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

    def __init__(
        self, judge: LLMJudge | None = None, *, respond: Callable[[Q], Reply] | None = None
    ) -> None:
        self._judge = judge or ScriptedJudge()
        self._respond = respond or (lambda _: Reply())
        self._lock = threading.Lock()
        self._requests: list[Q] = []
        self._queue: deque[Reply] = deque()
        self._every: Reply | None = None
        self._http: _Loopback | None = None

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
        host, port = self._http.server_address[:2]
        return f"http://{host!s}:{port}{self._base_path}"

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
        self._http = _Loopback(self)
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

    def _get(self, path: str, headers: Mapping[str, str]) -> Reply:
        return self._error(404, "Not found")

    def _post(self, path: str, headers: Mapping[str, str], body: Json | None) -> Reply:
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
            text = asyncio.run(_answer(request.text, request.form, self._judge))
        except _UnknownFormError as error:
            return self._error(400, str(error))
        except JudgeRefusalError:
            text, stop = "", stop or "refusal"
        except JudgeError as error:
            return self._error(500, type(error).__name__)
        if planned.text is not None:
            text = planned.text(text)
        return replace(planned, body=self._body(request, text, stop))
