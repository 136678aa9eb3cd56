"""Each evaluation links to the span of its run, whoever traces it."""

import json
import sys
import uuid
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rag_parts import ANSWER, QUESTION, REFUNDS, rag_chain

from langchain_ragaliq import attach
from langchain_ragaliq._private import span_by_run_id
from ragaliq import TelemetryOptions

EXPECTED = (QUESTION, REFUNDS, ANSWER)


class Traces:
    """A tracer provider of the test's own, and what it exported."""

    def __init__(self):
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("application")

    def named(self, name):
        (span,) = [span for span in self.exporter.get_finished_spans() if span.name == name]
        return span

    @property
    def evaluation(self):
        (span,) = [
            span
            for span in self.exporter.get_finished_spans()
            if "ragaliq.target.source" in span.attributes
        ]
        return span


@pytest.fixture
def traces():
    return Traces()


@pytest.fixture
def traced(new_watch, traces):
    return new_watch(telemetry=TelemetryOptions(tracer_provider=traces.provider))


@pytest.fixture
def openinference(traces):
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=traces.provider, skip_dep_check=True)
    yield
    instrumentor.uninstrument()


@pytest.fixture(params=["config", "attach"])
def ask(request, traced, invoke):
    """Call the chain, with the handler given in one of two ways."""

    def call():
        chain = rag_chain().with_config(run_name="rag")
        if request.param == "attach":
            attach(traced.handler)
            return invoke(chain, QUESTION)
        return invoke(chain, QUESTION, traced.config)

    return call


def linked(evaluation):
    (link,) = evaluation.links
    return link.context.trace_id, link.context.span_id


def ids(span):
    return span.context.trace_id, span.context.span_id


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("is_in_a_request", [False, True])
def test_with_openinference_it_is_the_span_of_the_whole_chain(
    openinference, ask, traced, traces, is_in_a_request
):
    request = traces.tracer.start_as_current_span("request") if is_in_a_request else nullcontext()
    with request:
        ask()
    assert traced.only == EXPECTED
    root = traces.named("rag")
    assert root.attributes["openinference.span.kind"] == "CHAIN"
    assert traced.results[0].target.source == "openinference"
    assert linked(traces.evaluation) == ids(root)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_with_openinference_a_stream_links_to_its_chains_span(
    openinference, traced, traces, stream
):
    stream(rag_chain().with_config(run_name="rag"), QUESTION, traced.config)
    assert traced.only == EXPECTED
    assert linked(traces.evaluation) == ids(traces.named("rag"))


def test_without_it_the_span_around_the_call_is_linked(ask, traced, traces):
    with traces.tracer.start_as_current_span("request") as request:
        ask()
    assert traced.only == EXPECTED
    assert traced.results[0].target.source == "ambient"
    assert linked(traces.evaluation) == ids(request)


def test_without_any_span_nothing_is_linked_and_that_is_said(ask, traced, traces):
    ask()
    assert traced.only == EXPECTED
    assert traced.results[0].target is None
    assert not traces.evaluation.links
    assert traces.evaluation.attributes["ragaliq.target.source"] == "none"


HERE = Path(__file__).parent


INSTRUMENTATIONS = {
    "traceloop": (
        ("opentelemetry.instrumentation.langchain", "LangchainInstrumentor"),
        ("traceloop", "{}.workflow"),
    ),
    "opentelemetry": (
        ("opentelemetry.instrumentation.genai.langchain", "LangChainInstrumentor"),
        ("current", "invoke_workflow {}"),
    ),
}


@pytest.fixture(scope="module", params=INSTRUMENTATIONS)
def found(request, tmp_path_factory, warm_python):
    """What was found under an instrumentation, and what should have been."""
    instrumentor, (source, name) = INSTRUMENTATIONS[request.param]
    pytest.importorskip(instrumentor[0], reason="needs a newer OpenTelemetry than the lowest one")
    done = warm_python.run(
        HERE / "instrumented.py",
        *instrumentor,
        cwd=tmp_path_factory.mktemp("instrumented"),
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], source, name


def test_it_is_the_span_of_the_whole_chain_in_every_way_to_call_it(found):
    rows, source, name = found
    assert len(rows) == 36
    for row in rows:
        number = row["question"].removesuffix("?") if row["way"] == "gather" else ""
        assert (row["source"], row["span"]) == (source, name.format("rag" + number)), row


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_openinference_s_tracer_can_be_asked():
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=TracerProvider(), skip_dep_check=True)
    try:
        assert callable(instrumentor._tracer.get_span)
        assert span_by_run_id(uuid.uuid4()) is None
    finally:
        instrumentor.uninstrument()


def test_traceloop_s_handler_keeps_spans_by_run():
    handler = pytest.importorskip("opentelemetry.instrumentation.langchain.callback_handler")
    spans = pytest.importorskip("opentelemetry.instrumentation.langchain.span_utils")
    assert "span" in spans.SpanHolder.__dataclass_fields__
    made = handler.TraceloopCallbackHandler(trace.get_tracer("test"), None, None)
    assert made.spans == {}


def test_langfuse_s_handler_keeps_spans_by_run():
    langfuse = pytest.importorskip("langfuse.langchain", reason="a peer that CI does not install")
    assert langfuse.CallbackHandler(public_key="")._runs == {}


class Elsewhere:
    """A handler of Langfuse's as it may be one day."""

    __module__ = "langfuse.langchain"
    _runs = None
    runs = 7


def test_a_handler_that_keeps_spans_elsewhere_is_as_none(monkeypatch):
    monkeypatch.setitem(sys.modules, "langfuse.langchain", SimpleNamespace())
    assert span_by_run_id(uuid.uuid4(), SimpleNamespace(handlers=[Elsewhere()])) is None
