"""Streams: a whole answer is evaluated, a cut one never is, whoever cut it."""

import asyncio
import gc
import json

import pytest
from langchain.agents import create_agent
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.runnables import RunnableGenerator, RunnablePassthrough
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
        while len(asyncio.all_tasks()) > 1:  # noqa: ASYNC110 - theirs
            await asyncio.sleep(0)


def assigned():
    context = (lambda state: state["question"]) | FixedRetriever()
    answer = PROMPT | model() | StrOutputParser()
    return RunnablePassthrough.assign(context=context).assign(answer=answer)


CONSUMED = {
    "parsed JSON": (
        lambda: rag_chain(
            llm=model(json.dumps({"answer": ANSWER, "sources": [1]})), parser=JsonOutputParser()
        ),
        QUESTION,
    ),
    "dictionaries": (assigned, {"question": QUESTION}),
}


@pytest.mark.parametrize("name", CONSUMED)
def test_a_stream_that_is_consumed_gives_its_last_state(watch, stream, name):
    make, asked = CONSUMED[name]
    assert stream(make(), asked, watch.config)
    assert watch.only == EXPECTED


@pytest.mark.parametrize(
    "stream",
    [
        lambda config: rag_chain().astream_events(QUESTION, config, version="v1"),
        lambda config: rag_chain().astream_events(QUESTION, config, version="v2"),
        lambda config: rag_chain().astream_log(QUESTION, config),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_stream_of_events_that_is_consumed(watch, stream):
    async def consume():
        return [event async for event in stream(watch.config)]

    assert asyncio.run(consume())
    assert watch.only == EXPECTED


def cut_after(chunks, stream):
    for _ in range(chunks):
        next(stream)
    stream.close()
    del stream
    gc.collect()


def test_a_stream_that_is_never_started_is_no_run(watch):
    stream = rag_chain().stream(QUESTION, watch.config)
    stream.close()
    assert watch.stats.started == 0


def test_a_stream_cut_after_the_model_has_finished_but_before_the_last_step_has(watch):
    def spell(chunks):
        yield from "".join(chunks)

    cut_after(2, (rag_chain() | RunnableGenerator(spell)).stream(QUESTION, watch.config))
    assert watch.incomplete == CUT


@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize("retriever", [FixedRetriever, history_aware_retriever])
def test_a_rewritten_question_is_not_taken_for_the_answer_of_a_cut_stream(watch, chunks, retriever):
    inputs = {"input": QUESTION, "chat_history": HISTORY}
    cut_after(chunks, retrieval_chain(retriever()).stream(inputs, watch.config))
    assert watch.triples == []
    assert watch.stats.outcomes == {"incomplete_run": 1}


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


def test_an_agents_stream_that_is_closed_early_is_not_evaluated(watch):
    search = create_retriever_tool(FixedRetriever(), "search", "Searches.")
    agent = create_agent(model(calling("search", query="r"), ANSWER), [search])
    stream = agent.stream({"messages": [("user", QUESTION)]}, watch.config, stream_mode="messages")
    next(stream)
    stream.close()
    assert watch.incomplete == CANCELLED


def test_an_agents_asynchronous_stream_that_is_left_early_is_not_evaluated(watch):
    agent = create_agent(model(delay=0.01), [])

    async def consume():
        async with Settle():
            messages = {"messages": [("user", QUESTION)]}
            stream = agent.astream(messages, watch.config, stream_mode="messages")
            await anext(stream)
            await stream.aclose()

    asyncio.run(consume())
    assert watch.incomplete == CANCELLED
