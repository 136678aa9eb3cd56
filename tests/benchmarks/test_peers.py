"""What other tools' LangChain handlers cost the same request, in the same run.

They send what they record to a server on this machine that says yes to everything; sending is
flushed outside the measured part. They record every step with its texts and ragaliq one row a run,
so this is what a user pays, not the price of equal work. Needs `make bench-peers`.
"""

import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import asking
import pytest
from held_back import HeldBack
from interleaved import compare
from test_handler_overhead import AGAIN, ALL, EMPTY, NONE, NOTHING

from langchain_ragaliq import RagaliqCallbackHandler

CALLS, ROUNDS, PASSES = 4, 25, 4


class Sink(BaseHTTPRequestHandler):
    """Says yes to everything at once."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.do_GET()

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *args):
        pass


@pytest.fixture
def sink():
    with ThreadingHTTPServer(("127.0.0.1", 0), Sink) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(10)


@pytest.fixture
def langfuse(sink):
    """Langfuse's handler and how to flush it."""
    langfuse = pytest.importorskip("langfuse", reason="installed by `make bench-peers` only")
    from langfuse.langchain import CallbackHandler

    client = langfuse.Langfuse(public_key="pk-lf-none", secret_key="sk-lf-none", host=sink)
    yield CallbackHandler(public_key="pk-lf-none"), client.flush
    client.shutdown()


@pytest.fixture
def openinference(sink):
    """OpenInference's tracer, exporting in batches, and how to flush it."""
    from openinference.instrumentation import OITracer, TraceConfig
    from openinference.instrumentation.langchain._tracer import OpenInferenceTracer
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    exporter = OTLPSpanExporter(endpoint=f"{sink}/v1/traces")
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = OITracer(provider.get_tracer("peers"), config=TraceConfig())
    yield (
        OpenInferenceTracer(tracer, separate_trace_from_runtime_context=False),
        (provider.force_flush),
    )
    provider.shutdown()


@pytest.mark.benchmark
@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.filterwarnings("ignore")
def test_what_the_handlers_of_other_tools_cost(mode, langfuse, openinference, report):
    sampled, unsampled = HeldBack(1.0), HeldBack(0.0)
    handlers = {
        NONE: [],
        AGAIN: [],
        EMPTY: [asking.EmptyCallbackHandler()],
        ALL: [RagaliqCallbackHandler(sampled.monitor)],
        NOTHING: [RagaliqCallbackHandler(unsampled.monitor)],
        "langfuse": [langfuse[0]],
        "openinference": [openinference[0]],
    }

    def between():
        sampled.catch_up()
        langfuse[1]()
        openinference[1]()

    with asking.langchain(mode) as ask:
        assert ask([]) == "Five days."
        found = compare(
            {name: partial(ask, listening) for name, listening in handlers.items()},
            calls=CALLS,
            rounds=ROUNDS,
            passes=PASSES,
            between=between,
        )
    report(found.table(f"LangChain beside other tools, {mode}"))
    between()
    for each in (sampled, unsampled):
        each.monitor.close(5)
    for peer in ("langfuse", "openinference"):
        assert found.added(ALL) < found.added(peer)
