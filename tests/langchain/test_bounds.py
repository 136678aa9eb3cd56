"""Runs that never end are given up; nothing grows with the number of runs."""

import asyncio
import gc
import threading
import time
from contextvars import Context

import pytest
from langchain_core.runnables import RunnableLambda
from rag_parts import (
    ANSWER,
    QUESTION,
    FixedRetriever,
    NeverAnswering,
    NeverFinding,
    rag_chain,
)

from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq import RunHandle

RUNS = 12


def left_in(handler):
    """What a handler still keeps of its runs."""
    return handler.open_runs + len(handler._registry.runs)


def test_beyond_max_runs_the_oldest_open_run_is_given_up(new_watch):
    watch = new_watch(handler={"max_runs": 3})
    streams = [rag_chain().stream(f"Question {n}?", watch.config) for n in range(5)]
    for stream in streams:
        next(stream)
    assert watch.handler.open_runs == 3
    assert watch.incomplete == {"evicted": 2}
    for stream in streams:
        assert "".join(stream)
    assert [triple.question for triple in watch.triples] == [f"Question {n}?" for n in (2, 3, 4)]
    assert watch.stats.outcomes == {"evaluated": 3, "incomplete_run": 2}


def test_an_open_run_that_is_too_old_is_given_up_in_a_process_that_has_become_idle(new_watch):
    watch = new_watch(handler={"max_age": 0.05})
    open_runs = [rag_chain().stream(f"Question {n}?", watch.config) for n in range(2)]
    for stream in open_runs:
        next(stream)
    while watch.handler.open_runs:
        time.sleep(0.01)
    assert watch.stats.incomplete == {"expired": 2}
    assert (watch.handler.open_runs, watch.stats.pending) == (0, 0)
    del open_runs


@pytest.mark.usefixtures("may_block")
def test_a_run_that_starts_while_the_last_one_is_given_up_is_given_up_too(new_watch, monkeypatch):
    watch = new_watch(handler={"max_age": 0.05})
    open_runs = [rag_chain().stream(f"Question {n}?", watch.config) for n in range(2)]
    discard = RunHandle.discard

    def discard_while_another_starts(run, reason):
        discard(run, reason)
        if len(open_runs) == 2:
            starting = threading.Thread(target=next, args=(open_runs[1],))
            starting.start()
            starting.join()
            open_runs.append(None)

    monkeypatch.setattr(RunHandle, "discard", discard_while_another_starts)
    next(open_runs[0])
    while watch.monitor.stats().incomplete != {"expired": 2}:
        time.sleep(0.01)
    assert watch.handler.open_runs == 0


def test_the_steps_of_a_run_that_was_given_up_are_not_taken_for_runs(new_watch):
    watch = new_watch(handler={"max_runs": 1})

    def push_out(question):
        with_config = rag_chain().with_config(watch.config)
        # A context of its own: no part of the run around it.
        Context().run(with_config.invoke, "Another?")
        return question

    # Of its steps the first is already over, the second pushes it out, the third holds a chain.
    chain = RunnableLambda(push_out) | {"answer": rag_chain() | RunnableLambda(str.upper)}
    assert chain.invoke(QUESTION, watch.config) == {"answer": ANSWER.upper()}
    assert [triple.question for triple in watch.triples] == ["Another?"]
    assert watch.stats.outcomes == {"evaluated": 1, "incomplete_run": 1}
    assert watch.stats.incomplete == {"evicted": 1}


def test_an_open_run_of_a_handler_that_is_let_go_is_counted(watch):
    handler = RagaliqCallbackHandler(watch.monitor)  # as an application may make for each request
    loop = asyncio.new_event_loop()
    stream = rag_chain().astream(QUESTION, {"callbacks": [handler]})
    loop.run_until_complete(anext(stream))
    loop.close()  # without having its streams closed
    del handler, stream
    while watch.monitor.stats().pending:  # another thread may look at the handler's runs
        gc.collect()
        time.sleep(0.01)
    assert watch.incomplete == {"abandoned": 1}


def complete(config):
    rag_chain().invoke(QUESTION, config)


def abandon(config):
    next(rag_chain().stream(QUESTION, config))


async def abandon_asynchronously(config):
    await anext(rag_chain().astream(QUESTION, config))
    gc.collect()
    await asyncio.get_running_loop().shutdown_asyncgens()


async def cancel(config, **parts):
    (part,) = parts.values()
    task = asyncio.create_task(rag_chain(**parts).ainvoke(QUESTION, config))
    await part.called.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def cancel_in_the_model(config):
    await cancel(config, llm=NeverAnswering(called=asyncio.Event()))


async def cancel_in_the_retriever(config):
    await cancel(config, retriever=NeverFinding(called=asyncio.Event()))


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (complete, ""),
        (abandon, "truncated"),
        (abandon_asynchronously, "cancelled"),
        (cancel_in_the_model, "cancelled"),
        (cancel_in_the_retriever, "cancelled"),
    ],
)
@pytest.mark.parametrize("sample_rate", [1.0, 0.0])
def test_nothing_remains_of_runs_however_they_end(new_watch, run, reason, sample_rate):
    watch = new_watch(sample_rate=sample_rate)
    for _ in range(RUNS):
        ended = run(watch.config)
        if ended is not None:
            asyncio.run(ended)
        FixedRetriever().invoke(QUESTION, watch.config)
    gc.collect()
    if sample_rate == 0.0:
        assert watch.stats.outcomes == {"sampled_out": RUNS}
    elif reason:
        assert watch.incomplete == {reason: RUNS}
    else:
        assert watch.stats.outcomes == {"evaluated": RUNS}
    assert left_in(watch.handler) == 0
