"""Each evaluation links to the span of its run, whoever traces it."""

import asyncio
from contextlib import nullcontext

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry import context, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rag_parts import ANSWER, QUESTION, REFUNDS, model, rag_chain

from langchain_ragaliq import attach
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


class Attaching(BaseCallbackHandler):
    """Makes a span of its own current while a run lasts, as some instrumentations do."""

    run_inline = True

    def __init__(self, tracer):
        self.tracer, self.open = tracer, {}

    def on_chain_start(self, serialized, inputs, *, run_id, parent_run_id=None, **kwargs):
        if parent_run_id is None:
            span = self.tracer.start_span("instrumented")
            self.open[run_id] = span, context.attach(trace.set_span_in_context(span))

    def on_chain_end(self, outputs, *, run_id, **kwargs):
        if run_id in self.open:
            span, token = self.open.pop(run_id)
            context.detach(token)
            span.end()


@pytest.mark.parametrize("ours_first", [True, False])
def test_a_span_that_an_instrumentation_makes_current_around_the_steps_is_linked(
    traced, traces, invoke, ours_first
):
    theirs = Attaching(traces.tracer)
    handlers = [traced.handler, theirs] if ours_first else [theirs, traced.handler]
    with traces.tracer.start_as_current_span("request"):
        invoke(rag_chain(), QUESTION, {"callbacks": handlers})
    assert traced.only == EXPECTED
    assert linked(traces.evaluation) == ids(traces.named("instrumented"))


def test_without_any_span_nothing_is_linked_and_that_is_said(ask, traced, traces):
    ask()
    assert traced.only == EXPECTED
    assert traced.results[0].target is None
    assert not traces.evaluation.links
    assert traces.evaluation.attributes["ragaliq.target.source"] == "none"


def test_runs_at_the_same_time_link_to_their_own_spans(traced, traces):
    async def handle(number):
        with traces.tracer.start_as_current_span(f"request {number}"):
            await rag_chain(llm=model(delay=0.01)).ainvoke(f"Question {number}?", traced.config)

    async def handle_all():
        await asyncio.gather(*(handle(number) for number in range(20)))

    asyncio.run(handle_all())
    assert len(traced.triples) == 20
    for result in traced.results:
        number = result.case.query.removeprefix("Question ").removesuffix("?")
        assert result.target.span_id == f"{traces.named(f'request {number}').context.span_id:016x}"
