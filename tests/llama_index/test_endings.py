"""Every run ends once, whatever happens or cannot be read; what is no run is not counted."""

import asyncio
import logging

import pytest
from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.retrievers import BaseRetriever, RecursiveRetriever
from llama_index.core.schema import IndexNode, NodeWithScore

from llama_index.evaluation.ragaliq import RagaliqSpanHandler, attach

QUESTION = "How long do refunds take?"
ANSWER = "Refunds take five days."


class Unreadable(NodeWithScore):
    def get_content(self, metadata_mode=None):
        raise RuntimeError("secret text")


def test_a_model_that_fails_leaves_an_errored_run(engine, scripted_llm, monitor, handler):
    def fail(prompt):
        raise TimeoutError

    with pytest.raises(TimeoutError):
        engine(llm=scripted_llm(reply=fail)).query(QUESTION)
    assert monitor.outcomes == {"errored": 1}


def test_an_error_the_engine_recovers_from_does_not_end_the_run(
    engine, retriever_class, monitor, handler, docs
):
    def fail(question):
        raise LookupError

    broken = engine(retriever=retriever_class(fail))

    class Fallback(CustomQueryEngine):
        def custom_query(self, query_str):
            try:
                return broken.query(query_str)
            except LookupError:
                return engine().query(query_str)

    Fallback().query(QUESTION)
    assert monitor.only[1] == docs


async def test_a_query_cancelled_in_the_retriever_is_cancelled(engine, monitor, handler):
    reached = asyncio.Event()

    class Stuck(BaseRetriever):
        def _retrieve(self, query_bundle):
            raise NotImplementedError

        async def _aretrieve(self, query_bundle):
            reached.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(engine(retriever=Stuck()).aquery(QUESTION))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert monitor.outcomes == {"cancelled": 1}


def test_an_empty_question_or_answer_is_counted_and_not_judged(engine, retriever, monitor, handler):
    class Speechless(CustomQueryEngine):
        def custom_query(self, query_str):
            retriever.retrieve(query_str)
            return ""

    engine().query("  ")
    Speechless().query(QUESTION)
    assert monitor.outcomes == {"no_question": 1, "no_answer": 1}


def test_indexing_and_retrieving_are_no_runs_and_bare_model_calls_not_rag(
    llm, retriever, monitor, handler
):
    VectorStoreIndex.from_documents([Document(text="x")], embed_model=MockEmbedding(embed_dim=3))
    retriever.retrieve(QUESTION)
    llm.complete("Hello")
    list(llm.stream_complete("Hello"))
    assert monitor.stats().outcomes == {"not_rag": 2}


def test_engines_asked_by_a_bare_retriever_are_no_runs(engine, retriever_class, monitor, handler):
    found = [NodeWithScore(node=IndexNode(text="table", index_id="table"), score=1.0)]
    RecursiveRetriever(
        "root",
        retriever_dict={"root": retriever_class(lambda question: found)},
        query_engine_dict={"table": engine()},
    ).retrieve(QUESTION)
    assert monitor.stats().started == 0


def test_queries_below_the_applications_own_span_are_runs_of_their_own(engine, monitor, handler):
    @get_dispatcher("shop").span
    def serve():
        engine().query("First?")
        engine().query("Second?")

    serve()
    assert [case.query for case in monitor.cases] == ["First?", "Second?"]


def test_an_unsampled_run_is_not_captured_in_parts(
    engine, retriever_class, new_monitor, dispatcher
):
    monitor = new_monitor(sample_rate=0.0)
    handler = attach(monitor)
    inner = engine()

    class Outer(CustomQueryEngine):
        def custom_query(self, query_str):
            return inner.query(query_str)

    Outer().query(QUESTION)
    assert monitor.outcomes == {"sampled_out": 1}
    assert (handler._runs.runs, handler._ignored) == ({}, {})


def test_a_mistake_of_our_own_costs_the_run_and_is_logged_once_without_text(
    engine, retriever_class, monitor, dispatcher, caplog
):
    found = [Unreadable(node=IndexNode(text="x", index_id="x"), score=1.0)]
    handler = attach(monitor)
    asked = engine(retriever=retriever_class(lambda question: found))
    with caplog.at_level(logging.DEBUG, logger="ragaliq"):
        assert str(asked.query(QUESTION))
        assert str(asked.query(QUESTION))
    assert monitor.outcomes == {"internal_error": 2}
    assert handler.errors >= 2
    (record,) = [each for each in caplog.records if each.levelno > logging.DEBUG]
    assert record.name == "ragaliq.llama_index"
    assert "RuntimeError" in record.getMessage()
    assert "secret" not in caplog.text
    assert (handler.runs_in_progress, handler._runs.runs) == (0, {})


def test_spans_below_a_run_that_was_given_up_are_not_taken_for_runs(engine, monitor, dispatcher):
    handler = RagaliqSpanHandler(monitor, max_runs=1)
    dispatcher.add_span_handler(handler)

    class Outer(CustomQueryEngine):
        def custom_query(self, query_str):
            # Another run, outside this one, pushes this one out.
            handler.span_enter("CustomQueryEngine.query-" + "0" * 36, FakeCall(), instance=self)
            return engine().query(query_str)

    try:
        Outer().query(QUESTION)
    finally:
        dispatcher.span_handlers.remove(handler)
    assert monitor.stats().started == 2
    assert monitor.outcomes == {"evicted": 1}


class FakeCall:
    def __init__(self):
        self.arguments = {"str_or_query_bundle": "Another?"}


@pytest.fixture
def unwatched(monitor):
    """A handler that may meet what it cannot make out."""
    handler = attach(monitor)
    yield handler
    assert (handler.runs_in_progress, monitor.stats().pending) == (0, 0)
    assert not handler._runs.runs
    assert not handler._awaited


def ask(engine, chat):
    return str(engine().query(QUESTION))


def stream(engine, chat):
    return "".join(engine(streaming=True).query(QUESTION).response_gen)


def stream_asynchronously(engine, chat):
    async def read():
        response = await engine(streaming=True).aquery(QUESTION)
        return "".join([piece async for piece in response.response_gen])

    return asyncio.run(read())


def stream_a_chat(engine, chat):
    response = chat.stream_chat(QUESTION)
    answer = "".join(response.response_gen)
    assert response.exception is None
    return answer


@pytest.fixture
def chat(retriever, llm):
    memory = ChatMemoryBuffer.from_defaults(token_limit=10_000)
    return ContextChatEngine.from_defaults(retriever, llm=llm, memory=memory)


@pytest.mark.usefixtures("unwatched")
@pytest.mark.parametrize("way", [ask, stream, stream_asynchronously, stream_a_chat])
def test_an_answer_that_cannot_be_handed_over(engine, chat, monitor, monkeypatch, way):
    def fail(*args):
        raise RuntimeError("secret text")

    monkeypatch.setattr("llama_index.evaluation.ragaliq.span_handler.LlamaIndexRun.missing", fail)
    assert way(engine, chat) == ANSWER
    assert monitor.outcomes == {"internal_error": 1}
