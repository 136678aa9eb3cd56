"""What cannot be made out ends its run at once, and whoever reads the answer does not notice."""

from __future__ import annotations

import asyncio

import pytest
from llama_index.core.base.response.schema import Response
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import NodeWithScore, TextNode

from llama_index.evaluation.ragaliq import attach

QUESTION = "How long do refunds take?"
ANSWER = "Refunds take five days."


class Unreadable(NodeWithScore):
    def get_content(self, metadata_mode=None):
        raise RuntimeError("secret text")


class Structured(BaseModel):
    days: int


@pytest.fixture
def unwatched(monitor):
    """A handler that may meet what it cannot make out."""
    handler = attach(monitor)
    yield handler
    assert (handler.runs_in_progress, monitor.open) == (0, 0)
    assert not handler._runs.runs
    assert not handler._awaited


def answering(response, retriever):
    class Answering(CustomQueryEngine):
        def custom_query(self, query_str):
            retriever.retrieve(query_str)
            return response

    return Answering()


def test_an_answer_with_sources_that_cannot_be_read(retriever, monitor, unwatched):
    response = Response("x", source_nodes=[Unreadable(node=TextNode(text="x"))])
    assert str(answering(response, retriever).query(QUESTION)) == "x"
    assert monitor.outcomes == {"internal_error": 1}
    assert unwatched.errors == 1


def test_an_answer_that_is_an_object_where_a_text_should_be(retriever, monitor, handler, docs):
    answering(Response(Structured(days=5)), retriever).query(QUESTION)
    assert monitor.only == (QUESTION, docs, '{"days": 5}')


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

    monkeypatch.setattr("llama_index.evaluation.ragaliq.span_handler._Run.missing", fail)
    assert way(engine, chat) == ANSWER
    assert monitor.outcomes == {"internal_error": 1}
