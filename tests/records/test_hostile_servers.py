"""A product's server that is hostile: it gets no key for another one, no memory and no time."""

import asyncio
import gzip
import socket
import ssl
import threading
import tracemalloc
from contextlib import closing, contextmanager, suppress

import pytest

from connections import listening
from ragaliq import SinkError
from ragaliq.errors import ConfigurationError
from ragaliq.records import http
from ragaliq.records.langfuse import LangfuseSink
from ragaliq.records.langsmith import LangSmithSink
from ragaliq.records.mlflow import MLflowSink
from ragaliq.records.phoenix import PhoenixSink
from self_signed import MISTRUSTED, self_signed

pytestmark = pytest.mark.usefixtures("no_proxies")


RUN = "00000000-0000-0000-0000-000000000001"  # as LangChain's
KEY = "sk-very-secret"
SINKS = {
    "Phoenix": lambda url: PhoenixSink(url, api_key=KEY),
    "Langfuse": lambda url: LangfuseSink(url, public_key="pk", secret_key=KEY),
    "MLflow": lambda url: MLflowSink(url, token=KEY),
    "LangSmith": lambda url: LangSmithSink(url, api_key=KEY),
}


async def send(sink, record):
    try:
        await sink.write([record])
    finally:
        await sink.aclose()


@pytest.fixture
def no_proxies(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@contextmanager
def server(answer, context=None):
    """Serve each connection with `answer`; gives the port."""
    over = threading.Event()

    def serve(line):
        with suppress(OSError), closing(line):
            line.settimeout(10.0)
            if context is not None:
                line = context.wrap_socket(line, server_side=True)
            line.recv(65536)
            answer(line, over)
            line.shutdown(socket.SHUT_WR)
            while line.recv(65536):  # what is left unread would reset the connection
                pass

    try:
        with listening(serve) as port:
            yield port
    finally:
        over.set()


@pytest.fixture(params=SINKS)
def product(request):
    return request.param


def failure(product, url, record_of):
    with pytest.raises(SinkError) as caught:
        asyncio.run(send(SINKS[product](url), record_of(0, run_id=RUN)))
    assert KEY not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("user", ["someone", "someone:very-secret", ":very-secret"])
def test_an_address_with_a_user_or_password_is_refused_and_not_repeated(product, user):
    with pytest.raises(ConfigurationError, match="a key belongs") as caught:
        SINKS[product](f"https://{user}@127.0.0.1:1")
    assert user not in str(caught.value)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_carries_neither_key_nor_scores_elsewhere(
    product, status, receiver_of, record_of
):
    elsewhere, receiver = receiver_of(product), receiver_of(product)
    to = {"location": f"{elsewhere.url}/elsewhere"}
    receiver.faults = [receiver.Fault(status, to, b"") for _ in range(10)]
    assert "not followed" in failure(product, receiver.url, record_of)
    assert elsewhere.requests == []


def endless(line, over):
    line.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while not over.is_set():
        line.sendall(b"[" * 65536)


def endless_headers(line, over):
    line.sendall(b"HTTP/1.1 200 OK\r\n")
    while not over.is_set():
        line.sendall(b"x-a: " + b"a" * 60000 + b"\r\n")


def slowly(line, over):
    line.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
    while not over.wait(0.05):
        line.sendall(b" ")


@pytest.mark.parametrize("answer", [endless, endless_headers, slowly])
def test_a_reply_without_end_costs_neither_memory_nor_time(product, answer, record_of, monkeypatch):
    monkeypatch.setattr(http, "_LONGEST", 1.0)
    tracemalloc.start()
    try:
        with server(answer) as port:
            failure(product, f"http://127.0.0.1:{port}", record_of)
        assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
    finally:
        tracemalloc.stop()


def test_a_compressed_reply_is_not_expanded(product, record_of):
    packed = gzip.compress(b" " * 300 * 2**20, 1)
    # Langfuse's scores are sent one by one after a 400: on connections that are still open.
    head = (
        "HTTP/1.1 400 No\r\nconnection: close\r\ncontent-encoding: gzip\r\n"
        f"content-length: {len(packed)}"
    )

    def bomb(line, over):
        line.sendall(head.encode() + b"\r\n\r\n" + packed)

    tracemalloc.start()
    try:
        with server(bomb) as port:
            assert "400" in failure(product, f"http://127.0.0.1:{port}", record_of)
        assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "answer",
    [b"", b"\x00" * 1000, b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{", b"SSH-2.0\r\n"],
)
def test_nonsense_is_a_failure_that_may_pass(product, answer, record_of):
    with server(lambda line, over: line.sendall(answer)) as port:
        sink = SINKS[product](f"http://127.0.0.1:{port}")
        with pytest.raises(SinkError) as caught:
            asyncio.run(send(sink, record_of(0, run_id=RUN)))
    assert not caught.value.permanent


def test_a_certificate_that_nobody_vouches_for_is_named_and_nothing_is_sent(
    product, tmp_path, record_of
):
    heard = []
    with server(lambda line, over: heard.append(line), self_signed(tmp_path)) as port:
        message = failure(product, f"https://127.0.0.1:{port}", record_of)
    assert "certificate that is not trusted (self-signed certificate)" in message
    assert heard == []


@pytest.mark.parametrize("kind", MISTRUSTED)
def test_a_trusted_authoritys_certificate_must_be_valid_and_the_hosts(
    product, kind, tmp_path, record_of, monkeypatch
):
    options, reason = MISTRUSTED[kind]
    heard, context = [], self_signed(tmp_path, **options)
    trusted = ssl.create_default_context(cafile=tmp_path / "certificate.pem")
    monkeypatch.setattr(http, "_certificates", lambda: trusted)
    with server(lambda line, over: heard.append(line), context) as port:
        message = failure(product, f"https://127.0.0.1:{port}", record_of)
    assert f"certificate that is not trusted ({reason}" in message
    assert heard == []
