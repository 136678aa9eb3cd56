"""What the loopback servers share: HTTP, planned replies, recorded requests, a judge behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import socketserver
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from typing import Any

from ragaliq.errors import JudgeError, JudgeRefusalError
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

CHARACTERS_PER_TOKEN = 4


def tokens(text):
    """The tokens of a text, as the servers count them."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a loopback server answers.

    Attributes:
        status: HTTP status. With an error status and no body, the protocol's own error is sent.
        body: JSON, or bytes to send as they are; None for what the server would answer anyway.
        text: Applied to the text of the usual answer.
        stop: Why the model stopped, unless it came to the end of the usual answer: "refusal",
            "max_tokens" or "context_window".
        edit: Applied to a JSON body before it is sent.
        headers: Further headers.
        delay: Seconds to wait before the reply.
        cut_after: Bytes of the body after which the connection breaks; None to send it whole.
    """

    status: int = 200
    body: dict[str, Any] | bytes | None = None
    text: Callable[[str], str] | None = None
    stop: str | None = None
    edit: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut_after: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it arrived: such as `/v1/messages`, headers in lower case, the JSON.

    A protocol's own class adds `schema`, the JSON schema of the reply or None, and the texts of
    the messages: `system` and, of all others, `text`.
    """

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def model(self):
        return str(self.body.get("model", ""))

    @property
    def form(self):
        """The fields the reply has to have, if any."""
        return None if self.schema is None else frozenset(self.schema.get("properties", {}))


# --- HTTP -------------------------------------------------------------------------------------

_CLOSING_TIME = 5.0


class _Loopback(socketserver.ThreadingTCPServer):
    """A threaded HTTP server on a free port of the loopback interface."""

    # Not HTTPServer, which looks up the name of the machine before it listens.
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, owner):
        self.owner = owner
        self.closing = threading.Event()
        self._connections = set()
        self._changed = threading.Condition()
        super().__init__(("127.0.0.1", 0), _Connection)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def process_request(self, request, client_address):
        with self._changed:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request):
        super().shutdown_request(request)
        with self._changed:
            self._connections.discard(request)
            self._changed.notify_all()

    def handle_error(self, request, client_address):
        """Say nothing of clients that went away; that is what time limits do."""

    def stop(self):
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

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        self._send(self.server.owner._post(self.path.partition("?")[0], self._headers(), body))

    def do_GET(self):
        self._send(self.server.owner._get(self.path, self._headers()))

    def _headers(self):
        return {name.lower(): value for name, value in self.headers.items()}

    def _send(self, reply):
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

    def log_message(self, *_):
        """Write nothing: requests hold the texts that are judged."""


# --- Answers of a judge to prompts of ours ----------------------------------------------------

_SECTION = re.compile(
    r"<(?P<tag>question|answer|context|claims|chunk)(?P<number>(?:-\d+)?)>\n"
    r"(?P<text>.*?)\n</(?P=tag)(?P=number)>",
    re.DOTALL,
)


class _Prompt:
    """The application's texts, taken back out of a prompt."""

    def __init__(self, text):
        self._sections = {}
        for match in _SECTION.finditer(text):
            self._sections.setdefault(match["tag"], (match["number"], match["text"]))

    def __contains__(self, tag):
        return tag in self._sections

    def text(self, tag):
        """One text; empty where the prompt has no such section."""
        return self._sections.get(tag, ("", ""))[1]

    def texts(self, tag, item_tag):
        """The texts of a list."""
        number, body = self._sections.get(tag, ("", ""))
        item = rf'<{item_tag}{number} id="\w+">\n(.*?)\n</{item_tag}{number}>'
        return re.findall(item, body, re.DOTALL)


async def _answer(text, form, judge):
    """The reply's text, in the form the request asks for; "OK." where it asks for none of ours."""
    prompt = _Prompt(text)
    question, response = prompt.text("question"), prompt.text("answer")
    context = prompt.texts("context", "chunk")
    if form == ClaimsReply.model_fields.keys():
        claims = (await judge.extract_statements(question, response)).claims
        return ClaimsReply(claims=claims).model_dump_json()
    if form == VerdictsReply.model_fields.keys():
        verdicts = (await judge.verify_claims(prompt.texts("claims", "claim"), context)).verdicts
        ids = ["" if each.index is None else claim_id(each.index) for each in verdicts]
        rows = [
            ClaimReply(claim_id=name, **reply_fields(each))
            for name, each in zip(ids, verdicts, strict=True)
        ]
        return VerdictsReply(verdicts=rows).model_dump_json()
    if form == GradedReply.model_fields.keys():
        graded = (await judge.grade_statements(question, response, context)).verdicts
        items = [StatementReply(statement=each.statement, **reply_fields(each)) for each in graded]
        return GradedReply(statements=items).model_dump_json()
    if form != ScoreReply.model_fields.keys():
        return "OK."
    if "chunk" in prompt:
        result = await judge.evaluate_context_relevance(question, prompt.text("chunk"))
    else:
        result = await judge.evaluate_relevance(question, response)
    return ScoreReply(score=result.score, reasoning=result.reasoning).model_dump_json()


# --- The server -------------------------------------------------------------------------------


class LoopbackServer:
    """Answers requests on the loopback interface; a context manager.

    Structured requests made from ragaliq's prompts get an answer decided by `judge`; a request the
    API would refuse gets its error. A protocol's own class says what it takes of both:
    `_request_kind`, `_refused`, `_body` and `_error`.

    Args:
        judge: Who decides, a `BatchingJudge`; when None, a `ScriptedJudge` that goes by wording.
        respond: Answers in the judge's place; a `Reply` without a body stands for the judge's
            answer. Called from several threads.
    """

    _base_path = ""
    _request_kind = _meter_kind = None

    def __init__(self, judge=None, *, respond=None):
        self._judge = judge or ScriptedJudge()
        self._respond = respond or (lambda _: Reply())
        self._lock = threading.Lock()
        self._requests = []
        self._queue = deque()
        self._every = None
        self._http = None
        self._meter = self._meter_kind()

    @property
    def url(self):
        """What to pass as `base_url`."""
        host, port = self._http.server_address[:2]
        return f"http://{host}:{port}{self._base_path}"

    @property
    def requests(self):
        """Every request so far, retries included, in order of arrival."""
        with self._lock:
            return list(self._requests)

    def enqueue(self, *replies):
        """Answer the next requests with these replies, one each."""
        with self._lock:
            self._queue.extend(replies)

    def always(self, reply):
        """Answer every request that finds the queue empty with `reply`; None ends that."""
        with self._lock:
            self._every = reply

    def __enter__(self):
        self._http = _Loopback(self)
        return self

    def __exit__(self, *_):
        self._http.stop()

    def _get(self, path, headers):
        return self._error(404, "Not found")

    def _post(self, path, headers, body):
        return self._answer_to(self._request_kind(path, headers, body))

    def _answer_to(self, request):
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

    def _filled(self, request, planned):
        """A planned reply with the body the server would have sent."""
        if planned.status >= 400:
            usual = self._error(planned.status, "a planned failure")
            headers = {**usual.headers, **planned.headers}
            return replace(planned, body=usual.body, headers=headers)
        stop = planned.stop
        try:
            text = asyncio.run(_answer(request.text, request.form, self._judge))
        except JudgeRefusalError:
            text, stop = "", stop or "refusal"
        except JudgeError as error:
            return self._error(500, type(error).__name__)
        if planned.text is not None:
            text = planned.text(text)
        return replace(planned, body=self._body(request, text, stop))
