"""Streams: a whole answer is evaluated, a cut one never is, whoever cut it."""

import asyncio
import gc
import json

import pytest
from langchain.agents import create_agent
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.runnables import RunnableGenerator, RunnableLambda, RunnablePassthrough
from langchain_core.tools import create_retriever_tool
from rag_parts import (
    ANSWER,
    HISTORY,
    PROMPT,
    QUESTION,
    REFUNDS,
    FixedRetriever,
    calling,
    history_aware_retriever,
    model,
    rag_chain,
    retrieval_chain,
)

EXPECTED = (QUESTION, REFUNDS, ANSWER)
CUT = {"truncated": 1}
CANCELLED = {"cancelled": 1}


class Settle:
    """Let a loop finish what generators left behind."""

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        gc.collect()
        await asyncio.get_running_loop().shutdown_asyncgens()
        await asyncio.sleep(0.05)


def test_a_stream_of_text_that_is_consumed(watch, stream):
    assert "".join(stream(rag_chain(), QUESTION, watch.config)) == ANSWER
    assert watch.only == EXPECTED


def test_a_stream_of_messages_that_is_consumed(watch, stream):
    stream(rag_chain(parser=RunnablePassthrough()), QUESTION, watch.config)
    assert watch.only == EXPECTED


def test_a_stream_of_parsed_json_is_its_last_state(watch, stream):
    reply = json.dumps({"answer": ANSWER, "sources": [1]})
    stream(rag_chain(llm=model(reply), parser=JsonOutputParser()), QUESTION, watch.config)
    assert watch.only == EXPECTED


def test_a_stream_of_dictionaries_that_is_consumed(watch, stream):
    inputs = {"question": QUESTION}
    chain = RunnablePassthrough.assign(
        context=(lambda state: state["question"]) | FixedRetriever()
    ).assign(answer=PROMPT | model() | StrOutputParser())
    stream(chain, inputs, watch.config)
    assert watch.only == EXPECTED


def test_a_reranker_in_a_stream_still_replaces_what_it_was_given(watch, stream):
    reranked = FixedRetriever() | RunnableLambda(lambda docs: docs[:1])
    stream(rag_chain(reranked), QUESTION, watch.config)
    assert watch.only == (QUESTION, REFUNDS[:1], ANSWER)


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_stream_of_events_that_is_consumed(watch, version):
    async def consume():
        events = rag_chain().astream_events(QUESTION, watch.config, version=version)
        return [event["event"] async for event in events]

    assert "on_chain_end" in asyncio.run(consume())
    assert watch.only == EXPECTED


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_stream_log_that_is_consumed(watch):
    async def consume():
        return [patch async for patch in rag_chain().astream_log(QUESTION, watch.config)]

    assert asyncio.run(consume())
    assert watch.only == EXPECTED


@pytest.mark.parametrize("chunks", [1, 2, 4])
def test_a_stream_that_is_closed_early_is_not_evaluated(watch, chunks):
    stream = rag_chain().stream(QUESTION, watch.config)
    for _ in range(chunks):
        next(stream)
    stream.close()
    del stream
    gc.collect()
    assert watch.incomplete == CUT


def test_a_stream_whose_consumer_stops_without_closing_it(watch):
    for _ in rag_chain().stream(QUESTION, watch.config):
        break
    gc.collect()
    assert watch.incomplete == CUT


def test_a_stream_that_is_never_started_is_no_run(watch):
    stream = rag_chain().stream(QUESTION, watch.config)
    stream.close()
    assert watch.stats.started == 0


def test_a_stream_cut_after_the_model_has_finished_but_before_the_last_step_has(watch):
    def spell(chunks):
        yield from "".join(chunks)

    stream = (rag_chain() | RunnableGenerator(spell)).stream(QUESTION, watch.config)
    assert [next(stream), next(stream)] == ["R", "e"]
    stream.close()
    del stream
    gc.collect()
    assert watch.incomplete == CUT


@pytest.mark.parametrize("chunks", [1, 2, 3])
@pytest.mark.parametrize("retriever", [FixedRetriever, history_aware_retriever])
def test_a_rewritten_question_is_not_taken_for_the_answer_of_a_cut_stream(watch, chunks, retriever):
    inputs = {"input": QUESTION, "chat_history": HISTORY}
    stream = retrieval_chain(retriever()).stream(inputs, watch.config)
    for _ in range(chunks):
        next(stream)
    stream.close()
    del stream
    gc.collect()
    assert watch.triples == []
    assert watch.stats.outcomes == {"incomplete_run": 1}


@pytest.mark.parametrize("leave", ["aclose", "break"])
def test_an_asynchronous_stream_that_is_left_early_is_not_evaluated(watch, leave):
    async def consume():
        async with Settle():
            stream = rag_chain().astream(QUESTION, watch.config)
            async for _ in stream:
                break
            if leave == "aclose":
                await stream.aclose()
            del stream

    asyncio.run(consume())
    assert watch.incomplete == CANCELLED


def test_a_stream_whose_task_is_cancelled_is_not_evaluated(watch):
    async def consume():
        started = asyncio.Event()

        async def read():
            async for _ in rag_chain(llm=model(delay=0.05)).astream(QUESTION, watch.config):
                started.set()

        async with Settle():
            task = asyncio.create_task(read())
            await started.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(consume())
    assert watch.incomplete == CANCELLED


@pytest.mark.parametrize("stream_mode", ["updates", "messages"])
def test_an_agents_stream_that_is_closed_early_is_not_evaluated(watch, stream_mode):
    search = create_retriever_tool(FixedRetriever(), "search", "Searches.")
    agent = create_agent(model(calling("search", query="r"), ANSWER), [search])
    stream = agent.stream({"messages": [("user", QUESTION)]}, watch.config, stream_mode=stream_mode)
    next(stream)
    stream.close()
    assert watch.incomplete == CANCELLED


def test_an_agents_asynchronous_stream_that_is_left_early_is_not_evaluated(watch):
    agent = create_agent(model(delay=0.01), [])

    async def consume():
        async with Settle():
            messages = {"messages": [("user", QUESTION)]}
            stream = agent.astream(messages, watch.config, stream_mode="messages")
            async for _ in stream:
                break
            await stream.aclose()

    asyncio.run(consume())
    assert watch.incomplete == CANCELLED


def test_a_stream_held_open_is_pending_until_it_is_read(watch):
    stream = rag_chain().stream(QUESTION, watch.config)
    next(stream)
    assert watch.stats.pending == 1
    assert watch.handler.open_runs == 1
    list(stream)
    assert watch.only == EXPECTED
