"""Streamed answers of query engines: read to the end, broken off, or never read."""

from __future__ import annotations

import asyncio
import gc
import inspect

import pytest
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse

from llama_index.evaluation.ragaliq import RagaliqSpanHandler
from llama_index.evaluation.ragaliq.streams import afollow, follow
from ragaliq import suppress

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


def test_a_stream_read_twice_counts_once(engine, monitor, handler):
    response = engine(streaming=True).query(QUESTION)
    assert (str(response), str(response), list(response.response_gen)) == (ANSWER, ANSWER, [])

    assert monitor.only[2] == ANSWER


def test_the_stream_stays_a_generator_of_the_same_pieces(engine, handler):
    with suppress():  # LlamaIndex 0.14.22 to 0.14.24 make one piece of them, others four
        alone = list(engine(streaming=True).query(QUESTION).response_gen)
    response = engine(streaming=True).query(QUESTION)

    assert inspect.isgenerator(response.response_gen)
    assert list(response.response_gen) == alone
    assert "".join(alone) == ANSWER


def test_an_empty_retrieval_streams_its_answer(engine, retriever_class, monitor, handler):
    nothing = retriever_class(lambda question: [])
    str(engine(streaming=True, retriever=nothing).query(QUESTION))

    assert monitor.only == (QUESTION, [], "Empty Response")


def test_a_closed_stream_is_truncated(engine, monitor, handler):
    stream = engine(streaming=True).query(QUESTION).response_gen
    next(stream)
    stream.close()

    assert monitor.outcomes == {"truncated": 1}


def test_a_stream_that_is_dropped_half_way_is_truncated(engine, monitor, handler):
    response = engine(streaming=True).query(QUESTION)
    for _ in response.response_gen:
        break
    del response
    gc.collect()

    assert monitor.outcomes == {"truncated": 1}


async def test_an_asynchronous_stream_that_is_closed_is_truncated(engine, monitor, handler):
    response = await engine(streaming=True).aquery(QUESTION)
    await anext(response.response_gen)
    await response.response_gen.aclose()

    assert monitor.outcomes == {"truncated": 1}


async def test_an_asynchronous_stream_that_is_dropped_half_way_is_truncated(
    engine, monitor, handler
):
    response = await engine(streaming=True).aquery(QUESTION)
    async for _ in response.async_response_gen():
        break
    del response
    gc.collect()
    await asyncio.sleep(0.01)  # the loop closes dropped generators

    assert monitor.outcomes == {"truncated": 1}


async def test_a_reader_that_is_cancelled_leaves_a_cancelled_run(engine, monitor, handler):
    response = await engine(streaming=True).aquery(QUESTION)
    entered = asyncio.Event()

    async def stuck():
        entered.set()
        await asyncio.Event().wait()
        yield ""

    # The model stops sending in the middle of the answer.
    response.response_gen = afollow_with(response.response_gen, stuck())
    task = asyncio.create_task(read_raw(response))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert monitor.outcomes == {"cancelled": 1}


def afollow_with(followed, source):
    """Put a source of our own under a stream that is being followed."""
    assert followed.ag_code is afollow.__code__
    given = followed.ag_frame.f_locals
    return afollow(source, given["run"], given["ended"], text=str)


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
        assert monitor.outcomes == {}
        engine().query(QUESTION)
    finally:
        dispatcher.span_handlers.remove(handler)

    assert monitor.reasons[0] == "expired"
    assert str(unread) == ANSWER
    assert len(monitor.reasons) + len(monitor.cases) == 2


def test_following_passes_on_every_token_and_the_end():
    ends = []
    noted = lambda *how: ends.append(how)  # noqa: E731
    follow(iter(["a"]), None, noted, text=str).close()
    assert ends == []  # nothing happens before the first token
    assert list(follow(iter(["a", "b"]), None, noted, text=str)) == ["a", "b"]
    assert ends == [("ab", "")]


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
