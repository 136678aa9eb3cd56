"""An instrumented application gives the same case through handler, span processor and file."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from openinference.instrumentation.langchain import LangChainInstrumentor
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from otlp import FORMS
from rag_parts import PROMPT, QUESTION, BrokenRetriever, joined, model, rag_chain
from test_same_case import APPS, Library, as_bytes
from test_same_llama_case import APPS as LLAMA_APPS
from test_same_llama_case import QUESTION as LLAMA_QUESTION
from test_same_llama_case import Desk, query

from langchain_ragaliq import RagaliqCallbackHandler
from llama_index.evaluation.ragaliq import attach, detach
from ragaliq import DatasetError
from ragaliq.datasets import read_cases

# OpenInference reads messages and settings in the old way.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.usefixtures("loop_of_synchronous_calls"),
]


@pytest.fixture
def _langchain(tracing):
    LangChainInstrumentor().instrument(tracer_provider=tracing.provider, skip_dep_check=True)
    yield
    LangChainInstrumentor().uninstrument()


@pytest.fixture
def _llama_index(tracing, watched):
    LlamaIndexInstrumentor().instrument(tracer_provider=tracing.provider, skip_dep_check=True)
    attach(watched.monitor)
    yield
    detach()
    LlamaIndexInstrumentor().uninstrument()


@pytest.fixture
def assert_the_same(tracing, watched, processed, written):
    """The one case of each way; and that the results speak of the same span."""

    def check():
        (by_handler,) = watched.cases()
        (by_processor,) = processed.cases()
        (in_file,) = read_cases(written("t.pb", FORMS["traces.pb"](tracing.spans())))
        assert as_bytes(by_processor) == as_bytes(by_handler) == as_bytes(in_file)
        assert by_processor.id == in_file.id
        (one,), (other,) = watched.results, processed.results
        assert one.target.span_id == other.target.span_id
        assert one.run.framework == other.run.framework
        return by_processor

    return check


@pytest.mark.usefixtures("_langchain")
@pytest.mark.parametrize("app", APPS)
def test_a_langchain_application(app, watched, assert_the_same):
    chain, question = APPS[app]()
    chain.invoke(question, {"callbacks": [RagaliqCallbackHandler(watched.monitor)]})
    assert assert_the_same().has_context


@pytest.mark.usefixtures("_langchain")
async def test_an_asynchronous_langchain_application(watched, assert_the_same):
    handler = RagaliqCallbackHandler(watched.monitor)
    await rag_chain(Library()).ainvoke(QUESTION, {"callbacks": [handler]})
    assert_the_same()


@pytest.mark.usefixtures("_langchain")
def test_a_langchain_application_that_streams(watched, assert_the_same):
    handler = RagaliqCallbackHandler(watched.monitor)
    list(rag_chain(Library()).stream(QUESTION, {"callbacks": [handler]}))
    assert_the_same()


class Hanging(FakeListChatModel):
    """Never answers, and leaves its span open when it is given up."""

    async def _agenerate(self, *args, **kwargs):
        await asyncio.Event().wait()


@pytest.mark.usefixtures("_langchain")
async def test_a_langchain_application_that_gives_up_a_model_for_a_faster_one(
    watched, assert_the_same
):
    slow = PROMPT | Hanging(responses=[""])

    async def hurry(inputs):
        with suppress(TimeoutError):
            await asyncio.wait_for(slow.ainvoke(inputs), 0.02)
        return await (PROMPT | model() | StrOutputParser()).ainvoke(inputs)

    sources = {"context": Library() | joined, "question": RunnablePassthrough()}
    handler = RagaliqCallbackHandler(watched.monitor)
    await (sources | RunnableLambda(hurry)).ainvoke(QUESTION, {"callbacks": [handler]})
    assert_the_same()


@pytest.mark.usefixtures("_langchain")
def test_a_langchain_batch_in_threads_below_one_request(tracing, watched, processed):
    questions = [f"Question {n}?" for n in range(5)]
    handler = RagaliqCallbackHandler(watched.monitor)
    with tracing.provider.get_tracer("web").start_as_current_span("POST /ask"):
        rag_chain(Library()).batch(questions, {"callbacks": [handler]})
    live, seen = watched.cases(), processed.cases()
    assert sorted(map(as_bytes, live)) == sorted(map(as_bytes, seen))
    assert len(seen) == 5


@pytest.mark.usefixtures("_langchain")
def test_langchain_s_parts_called_one_by_one_in_a_request(tracing, processed):
    with tracing.provider.get_tracer("web").start_as_current_span("POST /ask"):
        found = Library().invoke(QUESTION)
        model().invoke(PROMPT.invoke({"context": joined(found), "question": QUESTION}))
    (case,) = processed.cases()
    assert case.has_context
    assert processed.monitor.stats().started == 1


@pytest.mark.usefixtures("_llama_index")
@pytest.mark.parametrize("app", LLAMA_APPS)
def test_a_llama_index_application(app, assert_the_same):
    LLAMA_APPS[app]()
    assert assert_the_same().query == LLAMA_QUESTION


@pytest.mark.usefixtures("_llama_index")
async def test_an_asynchronous_llama_index_application(assert_the_same):
    await query().aquery(LLAMA_QUESTION)
    assert_the_same()


@pytest.mark.usefixtures("_llama_index")
async def test_a_llama_index_workflow_around_an_engine(assert_the_same):
    await Desk().run(question=LLAMA_QUESTION)
    assert_the_same()


@pytest.mark.usefixtures("_llama_index")
def test_a_streamed_llama_index_answer_is_in_no_span(tracing, processed, written):
    list(query(streaming=True).query(LLAMA_QUESTION).response_gen)
    assert processed.cases() == []
    reader = read_cases(written("t.pb", FORMS["traces.pb"](tracing.spans())))
    with pytest.raises(DatasetError):
        list(reader)
    assert processed.monitor.stats().incomplete == reader.left_out
    assert reader.left_out["answer_streamed"] == 1


class Slow(Library):
    """Tells when it is asked, and never answers."""

    async def _aget_relevant_documents(self, query, *, run_manager):
        self.metadata["asked"].set()
        await asyncio.Event().wait()


def fail(config):
    with pytest.raises(ConnectionError):
        rag_chain(BrokenRetriever()).invoke(QUESTION, config)


def close_the_stream(config):
    stream = rag_chain(Library()).stream(QUESTION, config)
    next(stream)
    stream.close()


async def cancel(config):
    asked = asyncio.Event()
    chain = rag_chain(Slow(metadata={"asked": asked}))
    task = asyncio.create_task(chain.ainvoke(QUESTION, config))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def leave_the_stream(config):
    stream = rag_chain(Library()).astream(QUESTION, config)
    await anext(stream)
    await stream.aclose()


@pytest.mark.usefixtures("_langchain")
@pytest.mark.parametrize("end", [fail, close_the_stream])
def test_a_run_without_an_answer_has_the_same_reason(end, watched, processed):
    end({"callbacks": [RagaliqCallbackHandler(watched.monitor)]})
    assert_without_case(watched, processed)


@pytest.mark.usefixtures("_langchain")
@pytest.mark.parametrize("end", [cancel, leave_the_stream])
async def test_an_asynchronous_run_without_an_answer_has_the_same_reason(end, watched, processed):
    await end({"callbacks": [RagaliqCallbackHandler(watched.monitor)]})
    async with asyncio.timeout(30):  # generators inside one that is closed are ended by the loop
        while watched.monitor.stats().pending or processed.monitor.stats().pending:
            processed.processor.force_flush()
            await asyncio.sleep(0)
    assert_without_case(watched, processed)


def assert_without_case(watched, processed):
    assert watched.cases() == processed.cases() == []
    assert processed.monitor.stats().incomplete == watched.monitor.stats().incomplete != {}
    assert len(processed.processor) == 0
