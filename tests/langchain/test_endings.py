"""Runs that fail, are retried, fall back, are cut or cancelled: counted, never invented."""

import asyncio
import gc
import json
import threading

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
    SHIPPING,
    BrokenRetriever,
    FixedRetriever,
    calling,
    history_aware_retriever,
    model,
    rag_chain,
    retrieval_chain,
)

EXPECTED = (QUESTION, REFUNDS, ANSWER)

DOWN = ConnectionError("the model is down")


class SpoiledError(Exception):
    """What a step raises in the middle of its work."""


@pytest.mark.parametrize(
    "parts", [{"retriever": BrokenRetriever()}, {"llm": model(DOWN)}], ids=["retriever", "model"]
)
def test_an_error_reaches_the_application_and_is_counted(watch, invoke, parts):
    with pytest.raises(ConnectionError, match="is down"):
        invoke(rag_chain(**parts), QUESTION, watch.config)
    assert watch.incomplete == {"errored": 1}


def test_an_error_in_the_middle_of_a_stream_is_counted(watch, stream):
    def spoil(chunks):
        for chunk in chunks:
            yield chunk
            raise SpoiledError

    async def aspoil(chunks):
        async for chunk in chunks:
            yield chunk
            raise SpoiledError

    with pytest.raises(SpoiledError):
        stream(rag_chain() | RunnableGenerator(spoil, aspoil), QUESTION, watch.config)
    assert watch.incomplete == {"errored": 1}


def test_an_exit_of_the_application_is_not_held_up_and_is_counted(watch):
    def leave(_):
        raise SystemExit

    with pytest.raises(SystemExit):
        (rag_chain() | leave).invoke(QUESTION, watch.config)
    assert watch.incomplete == {"errored": 1}


def retried_whole():
    found = iter([SHIPPING, REFUNDS])
    retriever = RunnableLambda(lambda q: FixedRetriever(texts=next(found)).invoke(q))
    return rag_chain(retriever, model(DOWN, ANSWER)).with_retry(wait_exponential_jitter=False)


MADE_UP_FOR = {
    "another model": lambda: rag_chain(llm=model(DOWN).with_fallbacks([model()])),
    "the same model": lambda: rag_chain(
        llm=model(DOWN, DOWN, ANSWER).with_retry(wait_exponential_jitter=False)
    ),
    "the whole chain": retried_whole,
    "another chain": lambda: rag_chain(FixedRetriever(texts=SHIPPING), model(DOWN)).with_fallbacks(
        [rag_chain()]
    ),
}


@pytest.mark.parametrize("name", MADE_UP_FOR)
def test_what_made_up_for_a_failure_gives_context_and_answer(watch, invoke, name):
    invoke(MADE_UP_FOR[name](), QUESTION, watch.config)
    assert watch.only == EXPECTED


def test_of_a_batch_every_input_is_a_run_whatever_becomes_of_the_others(watch, mode):
    def answer(messages):
        if "2" in messages[-1].text:
            raise DOWN
        return f"Answer to {messages[-1].text}"

    questions = [f"Question {n}?" for n in range(4)]
    chain, config = rag_chain(llm=model(answer)), {**watch.config, "max_concurrency": 2}
    if mode == "sync":
        outputs = chain.batch(questions, config, return_exceptions=True)
    else:
        outputs = asyncio.run(chain.abatch(questions, config, return_exceptions=True))
    assert [isinstance(output, Exception) for output in outputs] == [False, False, True, False]
    answered = [(q, REFUNDS, f"Answer to {q}") for q in questions[:2] + questions[3:]]
    assert sorted(watch.triples) == answered
    assert watch.stats.outcomes == {"evaluated": 3, "incomplete_run": 1}
    assert watch.stats.incomplete == {"errored": 1}


def test_a_step_left_running_in_a_thread_after_the_end_is_not_a_run_of_its_own(watch):
    release, done = threading.Event(), threading.Event()

    def start_thread(text, config):
        def later():
            release.wait(30)
            rag_chain().invoke("Left over?", config)
            done.set()

        threading.Thread(target=later).start()
        return text

    (rag_chain() | RunnableLambda(start_thread)).invoke(QUESTION, watch.config)
    release.set()
    assert done.wait(30)
    assert watch.only == EXPECTED


def test_after_the_monitor_is_closed_the_chain_still_works(new_watch, invoke):
    watch = new_watch()
    watch.monitor.close(5)
    assert invoke(rag_chain(), QUESTION, watch.config) == ANSWER
    assert watch.stats.outcomes == {"shutdown": 1}


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
