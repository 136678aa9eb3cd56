"""Attaching and letting go: for the process, inside a block, or under certain tags."""

import asyncio
import importlib.util
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.dispatcher import instrument_tags
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler

import llama_index.evaluation.ragaliq
from llama_index.evaluation.ragaliq import RagaliqSpanHandler, attach, attached, detach
from ragaliq import ConfigurationError, Monitor

QUESTION = "How long do refunds take?"


def listening(dispatcher):
    return [each for each in dispatcher.span_handlers if isinstance(each, RagaliqSpanHandler)]


def test_the_adapter_leaves_llama_index_a_namespace():
    folder = Path(llama_index.evaluation.ragaliq.__file__).parent
    assert not (folder.parent / "__init__.py").exists()
    assert not (folder.parents[1] / "__init__.py").exists()
    assert importlib.util.find_spec("llama_index.core") is not None


def test_the_same_monitor_attached_twice_counts_once(engine, monitor, dispatcher):
    first, second = attach(monitor), attach(monitor)
    engine().query(QUESTION)
    assert first is second
    assert listening(dispatcher) == [first]
    assert len(monitor.cases) == 1


def test_two_monitors_each_see_every_run(engine, monitor, new_monitor):
    other = new_monitor()
    attach(monitor), attach(other)
    engine().query(QUESTION)
    assert (len(monitor.cases), len(other.cases)) == (1, 1)


def test_the_same_settings_keep_the_handler_and_new_ones_replace_it(judge, dispatcher, caplog):
    first = attach(judge=judge, sample_rate=0.5)
    again = attach(judge=judge, sample_rate=0.5)
    assert not caplog.messages
    changed = attach(judge=judge, sample_rate=0.1)
    assert "replace those that were attached before" in caplog.text
    elsewhere = attach(judge=judge, sample_rate=0.1, pipeline="other")
    assert isinstance(first.monitor, Monitor)
    assert first is again
    assert [each is changed or each is elsewhere for each in listening(dispatcher)] == [True, True]
    for handler in (first, changed, elsewhere):
        assert handler.monitor.close()


def test_threads_that_attach_at_once_give_one_handler(monitor, dispatcher):
    with ThreadPoolExecutor(16) as pool:
        handlers = list(pool.map(lambda _: attach(monitor), range(16)))
    assert len({id(handler) for handler in handlers}) == 1
    assert len(listening(dispatcher)) == 1


def test_a_monitor_and_settings_together_are_refused(monitor):
    with pytest.raises(ConfigurationError, match=r"sample_rate.*Monitor\(\.\.\.\)"):
        attach(monitor, sample_rate=0.5)


def test_what_is_no_monitor_and_what_are_no_tags_are_refused(judge, dispatcher):
    before = list(dispatcher.span_handlers)
    with pytest.raises(ConfigurationError, match=r"got str; a judge is given by name"):
        attach("local")
    with pytest.raises(ConfigurationError, match="only takes names, tags"):
        attach(judge=judge, only=[7])
    with pytest.raises(ConfigurationError, match="answer_key must be the name of a key"):
        attach(judge=judge, answer_key=[])
    assert dispatcher.span_handlers == before


def test_nothing_is_seen_after_detaching(engine, monitor, dispatcher):
    handler = attach(monitor)
    detach(handler)
    detach(handler)
    engine().query(QUESTION)
    assert monitor.stats().started == 0
    assert listening(dispatcher) == []


def test_detaching_one_handler_leaves_the_others(monitor, new_monitor, dispatcher):
    foreign = SimpleSpanHandler()
    dispatcher.add_span_handler(foreign)
    try:
        first, second = attach(monitor), attach(new_monitor())
        detach(first)
        assert [each is second for each in listening(dispatcher)] == [True]
        detach()
        assert listening(dispatcher) == []
        assert any(each is foreign for each in dispatcher.span_handlers)
    finally:
        dispatcher.span_handlers.remove(foreign)


@pytest.mark.parametrize("end", [detach, get_dispatcher().shutdown], ids=["detach", "shutdown"])
def test_detaching_and_llama_indexs_shutdown_end_the_runs_in_progress(engine, monitor, end):
    attach(monitor)
    unread = engine(streaming=True).query(QUESTION)
    end()
    assert monitor.outcomes == {"interrupted": 1}
    assert str(unread) == "Refunds take five days."
    assert monitor.outcomes == {"interrupted": 1}


def test_attaching_in_the_middle_of_a_run_gives_at_most_its_own_case(
    engine, retriever_class, nodes, monitor, dispatcher
):
    def find(question):
        attach(monitor)
        return nodes("Refunds take five days.")

    engine(retriever=retriever_class(find)).query(QUESTION)
    assert [(case.query, case.context_texts) for case in monitor.cases] == [
        (QUESTION, ["Refunds take five days."])
    ]
    assert not attach(monitor)._runs.runs


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
    attach(monitor, only={"app": "shop"})
    engine().query("Not tagged?")
    with instrument_tags({"app": "other"}):
        engine().query("Other?")
    with instrument_tags({"app": "shop", "session_id": "s1"}):
        engine().query(QUESTION)
    assert [case.query for case in monitor.cases] == [QUESTION]
    assert monitor.results[0].run.session_id == "s1"


def test_classes_functions_and_tags_choose_runs(engine, llm, monitor, dispatcher):
    attach(monitor, only=["Retriever*", "gold"], ignore=["nightly", {"app": "test"}])

    @get_dispatcher("shop").span
    def nightly(question):
        return engine().query(question)

    engine().query("By its class?")
    nightly("Ignored with what is inside?")
    with instrument_tags({"app": "test"}):
        engine().query("Ignored by its tag?")
    llm.complete("Not chosen?")
    with instrument_tags({"tags": ["gold"]}):
        llm.complete("A lone call?")
    assert [case.query for case in monitor.cases] == ["By its class?"]
    assert monitor.stats().outcomes == {"evaluated": 1, "not_rag": 1}


def test_one_monitor_may_follow_several_sets_of_tags(engine, monitor, dispatcher):
    attach(monitor, pipeline="a", only={"app": "a"})
    attach(monitor, pipeline="b", only={"app": "b"})
    again = attach(monitor, pipeline="b", only={"app": "b"})
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
