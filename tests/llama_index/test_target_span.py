"""The span an evaluation speaks about."""

import sys

import pytest
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from llama_index.evaluation.ragaliq import attach

QUESTION = "How long do refunds take?"


@pytest.fixture
def exporter():
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield provider
    provider.shutdown()


@pytest.fixture
def tracer(provider):
    return provider.get_tracer("application")


@pytest.fixture(params=["ragaliq first", "openinference first"])
def _both_attached(request, provider, monitor):
    instrumentor = LlamaIndexInstrumentor()
    if request.param == "ragaliq first":
        attach(monitor)
    instrumentor.instrument(tracer_provider=provider)
    if request.param == "openinference first":
        attach(monitor)
    yield
    instrumentor.uninstrument()


def span_named(exporter, suffix):
    (span,) = [each for each in exporter.get_finished_spans() if each.name.endswith(suffix)]
    return span.context


def assert_target(result, context, source):
    target = result.target
    assert (target.trace_id, target.span_id, target.trace_flags, target.source) == (
        f"{context.trace_id:032x}",
        f"{context.span_id:016x}",
        int(context.trace_flags),
        source,
    )


def test_without_any_tracing_there_is_no_target_and_no_tracer_is_loaded_in_the_request(
    engine, monitor, handler, monkeypatch
):
    loaded = "openinference.instrumentation.llama_index._handler"
    monkeypatch.delitem(sys.modules, loaded, raising=False)
    engine().query(QUESTION)
    assert monitor.evaluated[0].target is None
    assert loaded not in sys.modules


def test_the_request_s_span_is_the_target(engine, monitor, handler, tracer):
    with tracer.start_as_current_span("GET /ask") as span:
        engine().query(QUESTION)
    assert_target(monitor.evaluated[0], span.get_span_context(), "ambient")


@pytest.mark.usefixtures("handler")
def test_a_span_that_starts_inside_the_run_is_better_than_none(
    engine, retriever_class, nodes, monitor, tracer
):
    def find(question):
        return nodes("Refunds take five days.")

    class Traced(retriever_class):
        def retrieve(self, str_or_query_bundle):
            with tracer.start_as_current_span("search"):
                return super().retrieve(str_or_query_bundle)

    engine(retriever=Traced(find)).query(QUESTION)
    assert monitor.evaluated[0].target.source == "ambient"


@pytest.mark.usefixtures("_both_attached")
@pytest.mark.parametrize("ambient", [False, True])
def test_openinferences_own_span_is_the_target(engine, monitor, tracer, exporter, ambient):
    if ambient:
        with tracer.start_as_current_span("GET /ask"):
            engine().query(QUESTION)
    else:
        engine().query(QUESTION)
    assert_target(monitor.evaluated[0], span_named(exporter, "Engine.query"), "openinference")


@pytest.mark.usefixtures("_both_attached")
async def test_streams_keep_their_target_and_openinference_its_spans(
    engine, monitor, exporter, docs
):
    response = await engine(streaming=True).aquery(QUESTION)
    async for _ in response.async_response_gen():
        pass
    str(engine(streaming=True).query(QUESTION))
    assert monitor.outcomes == {"evaluated": 2}
    assert [case.context_texts for case in monitor.cases] == [docs, docs]
    assert_target(monitor.evaluated[0], span_named(exporter, "Engine.aquery"), "openinference")
    assert_target(monitor.evaluated[1], span_named(exporter, "Engine.query"), "openinference")
    assert not LlamaIndexInstrumentor()._span_handler.open_spans


def test_an_unsampled_span_says_so(engine, monitor, handler):
    tracer = TracerProvider(sampler=ALWAYS_OFF).get_tracer("application")
    with tracer.start_as_current_span("GET /ask"):
        engine().query(QUESTION)
    assert monitor.evaluated[0].target.is_sampled is False
