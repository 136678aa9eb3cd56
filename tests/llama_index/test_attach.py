"""Attaching and letting go."""

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler

import llama_index.evaluation.ragaliq
from llama_index.evaluation.ragaliq import RagaliqSpanHandler, attach, detach
from ragaliq import ConfigurationError, Monitor

QUESTION = "How long do refunds take?"


def attached(dispatcher):
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
    assert attached(dispatcher) == [first]
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
    assert [each is changed or each is elsewhere for each in attached(dispatcher)] == [True, True]
    for handler in (first, changed, elsewhere):
        assert handler.monitor.close()


def test_threads_that_attach_at_once_give_one_handler(monitor, dispatcher):
    with ThreadPoolExecutor(16) as pool:
        handlers = list(pool.map(lambda _: attach(monitor), range(16)))
    assert len({id(handler) for handler in handlers}) == 1
    assert len(attached(dispatcher)) == 1


def test_a_monitor_and_settings_together_are_refused(monitor):
    with pytest.raises(ConfigurationError, match=r"sample_rate.*Monitor\(\.\.\.\)"):
        attach(monitor, sample_rate=0.5)


def test_what_is_no_monitor_and_what_are_no_tags_are_refused(judge, dispatcher):
    before = list(dispatcher.span_handlers)
    with pytest.raises(ConfigurationError, match=r"got str; a judge is given by name"):
        attach("local")
    with pytest.raises(ConfigurationError, match="only_tagged takes names and values"):
        attach(judge=judge, only_tagged="x")
    assert dispatcher.span_handlers == before


def test_nothing_is_seen_after_detaching(engine, monitor, dispatcher):
    handler = attach(monitor)
    detach(handler)
    detach(handler)
    engine().query(QUESTION)
    assert monitor.stats().started == 0
    assert attached(dispatcher) == []


def test_detaching_one_handler_leaves_the_others(monitor, new_monitor, dispatcher):
    foreign = SimpleSpanHandler()
    dispatcher.add_span_handler(foreign)
    try:
        first, second = attach(monitor), attach(new_monitor())
        detach(first)
        assert [each is second for each in attached(dispatcher)] == [True]
        detach()
        assert attached(dispatcher) == []
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


def test_attaching_in_the_middle_of_a_run_does_no_harm(
    engine, retriever_class, nodes, monitor, dispatcher
):
    def find(question):
        attach(monitor)
        return nodes("Refunds take five days.")

    engine(retriever=retriever_class(find)).query(QUESTION)
    assert monitor.stats().started == 0
    assert not attach(monitor)._runs.runs
