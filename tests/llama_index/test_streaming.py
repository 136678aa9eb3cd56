"""Streamed answers of query engines: read to the end, broken off, or never read."""

import asyncio
import gc

import pytest
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse

from llama_index.evaluation.ragaliq import RagaliqSpanHandler
from llama_index.evaluation.ragaliq.streams import afollow, follow

QUESTION = "How long do refunds take?"
ANSWER = "Refunds take five days."


def read_by_loop(response):
    return "".join(response.response_gen)


def read_as_text(response):
    return str(response)


def read_as_response(response):
    return response.get_response().response


@pytest.mark.parametrize("read", [read_by_loop, read_as_text, read_as_response])
def test_a_stream_is_submitted_when_it_is_read_to_the_end(engine, monitor, handler, docs, read):
    response = engine(streaming=True).query(QUESTION)
    assert isinstance(response, StreamingResponse)
    assert (monitor.cases, handler.runs_in_progress) == ([], 1)
    assert read(response) == ANSWER
    assert monitor.only == (QUESTION, docs, ANSWER)


async def read_agen(response):
    return "".join([token async for token in response.async_response_gen()])


async def read_raw(response):
    return "".join([token async for token in response.response_gen])


async def read_whole(response):
    return (await response.get_response()).response


@pytest.mark.parametrize("read", [read_agen, read_raw, read_whole])
async def test_an_asynchronous_stream_is_submitted_when_it_is_read_to_the_end(
    engine, monitor, handler, docs, read
):
    response = await engine(streaming=True).aquery(QUESTION)
    assert isinstance(response, AsyncStreamingResponse)
    assert monitor.cases == []
    assert await read(response) == ANSWER
    assert monitor.only == (QUESTION, docs, ANSWER)


def test_a_stream_over_an_empty_retrieval_is_no_answer(engine, retriever_class, monitor, handler):
    nothing = retriever_class(lambda question: [])
    str(engine(streaming=True, retriever=nothing).query(QUESTION))
    assert monitor.outcomes == {"no_answer": 1}


def test_a_stream_that_is_dropped_half_way_is_truncated(engine, monitor, handler):
    response = engine(streaming=True).query(QUESTION)
    for _ in response.response_gen:
        break
    del response
    gc.collect()
    assert monitor.outcomes == {"truncated": 1}


async def test_an_asynchronous_stream_that_is_dropped_half_way_is_truncated(
    engine, monitor, handler
):
    response = await engine(streaming=True).aquery(QUESTION)
    async for _ in response.async_response_gen():
        break
    del response
    gc.collect()
    while not monitor.outcomes:  # noqa: ASYNC110 - the loop closes dropped generators
        await asyncio.sleep(0)
    assert monitor.outcomes == {"truncated": 1}


def test_a_model_that_fails_half_way_leaves_an_errored_run(engine, scripted_llm, monitor, handler):
    def reply(prompt):
        raise ConnectionError("gone")

    failing = engine(streaming=True, llm=scripted_llm(reply=reply))
    with pytest.raises(ConnectionError):  # LlamaIndex 0.14.22 to 0.14.24: already from `query`
        list(failing.query(QUESTION).response_gen)
    assert monitor.outcomes == {"errored": 1}


def test_a_stream_nobody_reads_expires(engine, monitor, dispatcher):
    handler = RagaliqSpanHandler(monitor, max_age=1e-9)
    dispatcher.add_span_handler(handler)
    try:
        unread = engine(streaming=True).query(QUESTION)
        engine().query(QUESTION)
    finally:
        dispatcher.span_handlers.remove(handler)
    assert str(unread) == ANSWER
    assert monitor.outcomes["expired"] >= 1
    assert monitor.stats().started == 2


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError, "errored"),
        (asyncio.CancelledError, "cancelled"),
        (KeyboardInterrupt, "cancelled"),
    ],
)
async def test_the_source_s_exception_reaches_the_reader_and_gives_the_reason(error, reason):
    def fail():
        yield "a"
        raise error

    async def afail():
        yield "a"
        raise error

    ends = []
    noted = lambda *how: ends.append(how)  # noqa: E731
    with pytest.raises(error):
        list(follow(fail(), None, noted, text=str))
    with pytest.raises(error):
        await read_raw(type("R", (), {"response_gen": afollow(afail(), None, noted, text=str)}))
    assert ends == [("", reason)] * 2


async def test_closing_a_stream_closes_its_source():
    closed = []

    async def source():
        try:
            yield "a"
            yield "b"
        finally:
            await asyncio.sleep(0)
            closed.append(True)

    stream = afollow(source(), None, print, text=str)
    await anext(stream)
    await stream.aclose()
    assert closed == [True]
