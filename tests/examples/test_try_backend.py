"""The example for backends, against servers that take everything; real ones: `tests/backends`."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples/backends/try_backend.py"


class Taking(ThreadingHTTPServer):
    """Takes whatever is posted."""

    daemon_threads = True

    def __init__(self):
        self.taken = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Taking

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.taken.append((self.path, dict(self.headers), body))
        kind = self.headers["content-type"]
        answer = b"{}" if kind == "application/json" else b""
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    server = Taking()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def run(*arguments, **environment):
    own = ("RAGALIQ_", "OTEL_", "PHOENIX_", "MLFLOW_", "LANGFUSE_", "OPENINFERENCE_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    return subprocess.run(
        [sys.executable, str(EXAMPLE), *arguments],
        env={**inherited, "PYTHONPATH": ":".join(sys.path), **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_langfuse_gets_the_spans_and_a_score_for_each_metric(server):
    keys = {"LANGFUSE_PUBLIC_KEY": "pk", "LANGFUSE_SECRET_KEY": "not-a-key"}
    done = run("langfuse", LANGFUSE_BASE_URL=server.url, **keys)
    assert done.returncode == 0, done.stderr
    assert "langfuse: 2 written, 0 failed" in done.stdout
    paths = {path for path, _, _ in server.taken}
    assert paths == {"/api/public/otel/v1/traces", "/api/public/scores"}
    sent = [json.loads(body) for path, _, body in server.taken if path == "/api/public/scores"]
    scores = sorted((each["name"], round(each["value"], 2)) for batch in sent for each in batch)
    assert scores == [
        ("faithfulness", 0.67),
        ("faithfulness", 1.0),
        ("relevance", 1.0),
        ("relevance", 1.0),
    ]
    for _, headers, _ in server.taken:
        authorization = {name.lower(): value for name, value in headers.items()}["authorization"]
        assert authorization == "Basic cGs6bm90LWEta2V5"


def test_an_otlp_receiver_gets_all_three_signals(server):
    done = run("otlp", OTEL_EXPORTER_OTLP_ENDPOINT=server.url)
    assert done.returncode == 0, done.stderr
    sent = {path: body for path, _, body in server.taken}
    assert sent.keys() == {"/v1/traces", "/v1/logs", "/v1/metrics"}
    assert b"evaluation shop-answers" in b"".join(body for _, _, body in server.taken)
    assert b"ragaliq.evaluation.score" in sent["/v1/metrics"]


@pytest.mark.parametrize("arguments", [[], ["elsewhere"]])
def test_an_unknown_backend_is_refused_with_the_known_ones(arguments):
    done = run(*arguments)
    assert done.returncode == 1
    assert done.stderr == "usage: try_backend.py phoenix | mlflow | langfuse | otlp\n"


def test_keys_that_are_missing_are_named():
    done = run("langfuse")
    assert done.returncode == 1
    assert "LANGFUSE_PUBLIC_KEY" in done.stderr
    assert "Traceback" not in done.stderr
