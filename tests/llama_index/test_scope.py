"""Following a part of what the process runs: inside a block, or under certain tags."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from llama_index.core.instrumentation.dispatcher import instrument_tags

from llama_index.evaluation.ragaliq import RagaliqSpanHandler, attach, attached, detach
from ragaliq import ConfigurationError

QUESTION = "How long do refunds take?"


def listening(dispatcher):
    return [each for each in dispatcher.span_handlers if isinstance(each, RagaliqSpanHandler)]


def test_only_what_starts_inside_the_block_is_followed(engine, monitor, dispatcher, docs):
    engine().query(QUESTION)
    with attached(monitor, pipeline="shop") as handler:
        engine().query(QUESTION)
        assert listening(dispatcher) == [handler]
    engine().query(QUESTION)
    assert monitor.only == (QUESTION, docs, "Refunds take five days.")
    assert monitor.results[0].pipeline == "shop"
    assert listening(dispatcher) == []


def test_what_other_threads_run_meanwhile_is_not_followed(engine, monitor):
    with ThreadPoolExecutor(1) as pool, attached(monitor):
        pool.submit(engine().query, QUESTION).result(30)
        assert monitor.stats().started == 0
        engine().query(QUESTION)
    assert len(monitor.cases) == 1


async def test_two_tasks_with_blocks_of_their_own_keep_apart(engine, new_monitor):
    both_inside = asyncio.Barrier(2)

    async def ask(question):
        monitor = new_monitor()
        with attached(monitor):
            await both_inside.wait()
            await asyncio.gather(engine().aquery(question), engine().aquery(question))
            await both_inside.wait()
        return [case.query for case in monitor.cases]

    assert await asyncio.gather(ask("One?"), ask("Two?")) == [["One?"] * 2, ["Two?"] * 2]


def test_a_monitor_that_is_attached_for_the_process_counts_a_run_in_a_block_once(
    engine, monitor, dispatcher
):
    whole = attach(monitor)
    with attached(monitor) as handler:
        engine().query(QUESTION)
    assert handler is whole
    assert listening(dispatcher) == [whole]
    assert len(monitor.cases) == 1


def test_a_stream_returned_inside_the_block_may_be_read_after_it(engine, monitor, docs):
    with attached(monitor) as handler:
        response = engine(streaming=True).query(QUESTION)
    assert handler.runs_in_progress == 1
    list(response.response_gen)
    assert monitor.only == (QUESTION, docs, "Refunds take five days.")
    assert handler.runs_in_progress == 0


async def test_a_run_that_outlives_the_block_is_counted(engine, monitor, retriever):
    found, may_end = asyncio.Event(), asyncio.Event()

    async def never_found(query_bundle):
        found.set()
        await may_end.wait()
        return []

    retriever._aretrieve = never_found
    with attached(monitor):
        asking = asyncio.create_task(engine().aquery(QUESTION))
        await found.wait()
    may_end.set()
    await asking
    assert monitor.outcomes == {"interrupted": 1}


def test_a_block_takes_a_monitor_or_its_settings(monitor, judge):
    with pytest.raises(ConfigurationError, match="judge"), attached(monitor, judge=judge):
        pass
    with attached(judge=judge, sample_rate=0.5) as handler:
        assert handler.monitor.judge is judge
    handler.monitor.close()


def test_only_what_is_tagged_is_followed(engine, monitor):
    attach(monitor, only_tagged={"app": "shop"})
    engine().query("Not tagged?")
    with instrument_tags({"app": "other"}):
        engine().query("Other?")
    with instrument_tags({"app": "shop", "session_id": "s1"}):
        engine().query(QUESTION)
    assert [case.query for case in monitor.cases] == [QUESTION]
    assert monitor.results[0].run.session_id == "s1"


def test_one_monitor_may_follow_several_sets_of_tags(engine, monitor, dispatcher):
    attach(monitor, pipeline="a", only_tagged={"app": "a"})
    attach(monitor, pipeline="b", only_tagged={"app": "b"})
    again = attach(monitor, pipeline="b", only_tagged={"app": "b"})
    for app in "abc":
        with instrument_tags({"app": app}):
            engine().query(QUESTION)
    assert [result.pipeline for result in monitor.evaluated] == ["a", "b"]
    assert len(listening(dispatcher)) == 2
    detach(again)
    assert len(listening(dispatcher)) == 1


def test_blocks_leave_nothing_with_the_interpreter(engine, monitor, monkeypatch):
    hooks = []
    monkeypatch.setattr(os, "register_at_fork", lambda **given: hooks.append(given), raising=False)
    for _ in range(3):
        with attached(monitor):
            engine().query(QUESTION)
    assert len(monitor.cases) == 3
    assert hooks == []  # such a hook can never be taken back
