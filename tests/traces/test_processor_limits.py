"""What the processor keeps, for how long, and how every run it follows is accounted for."""

import gc
import threading
import weakref

import pytest
from opentelemetry.sdk.trace import TracerProvider
from spans import QUESTION, Spans

from ragaliq import (
    ConfigurationError,
    RagaliqSpanProcessor,
)
from ragaliq.testing import ScriptedJudge


def kept(processor):
    if not len(processor):
        assert processor._runs.runs == processor._loose == {}
    return len(processor), processor._size


def test_nothing_is_kept_of_a_run_that_is_sampled_out(following):
    each = following(sample_rate=0.0)
    with each.app.span("rag", kind="CHAIN", asked=QUESTION):
        each.app.retrieve()
        assert kept(each.processor) == (1, 0)
    assert kept(each.processor) == (0, 0)
    with each.app.request():
        each.app.retrieve()
        each.app.answer()
    assert kept(each.processor) == (0, 0)
    assert each.monitor.stats().outcomes == {"sampled_out": 2}


def test_the_trace_decides_about_sampling(following):
    """As the handlers do: the same runs everywhere, for all that happens in one trace."""
    half = [following(sample_rate=0.5) for _ in range(2)]
    provider = TracerProvider()
    for each in half:
        provider.add_span_processor(each.processor)
    app = Spans(provider)
    for _ in range(40):
        app.chain()
    first, second = (each.monitor.stats().outcomes["sampled_out"] for each in half)
    assert 0 < first < 40
    assert first == second


@pytest.mark.parametrize(
    ("limit", "steps"), [({"max_traces": 1}, 2), ({"max_spans": 20}, 30), ({"max_bytes": 9000}, 30)]
)
def test_what_is_too_much_is_evicted_and_counted(following, limit, steps):
    each = following(**limit)
    open_ones = [
        each.app.tracer.start_span(f"rag {n}", attributes={"openinference.span.kind": "CHAIN"})
        for n in range(2)
    ]
    with each.app.inside(open_ones[0]):
        for _ in range(steps):
            each.app.retrieve()
    assert each.monitor.stats().incomplete["evicted"] >= 1
    assert kept(each.processor)[1] <= 9000 or limit != {"max_bytes": 9000}
    for span in open_ones:
        span.end()
    assert each.processor.force_flush()
    assert kept(each.processor) == (0, 0)
    assert each.monitor.stats().pending == 0


def test_runs_and_steps_that_never_end_expire(following, until):
    each = following(max_age=0.01)
    each.app.tracer.start_span("rag", attributes={"openinference.span.kind": "CHAIN"})
    until(lambda: each.monitor.stats().incomplete == {"expired": 1})
    assert kept(each.processor) == (0, 0)
    with each.app.request():
        each.app.retrieve()
        until(lambda: each.monitor.stats().incomplete == {"expired": 2})


def test_a_run_is_read_when_its_grace_is_over_without_being_asked(following, until):
    each = following(grace=0.01)
    each.app.chain()
    until(lambda: each.results)
    assert kept(each.processor) == (0, 0)


def test_nothing_of_the_sdk_s_is_held_on_to(following):
    each = following()
    ended = []

    class Watch(type(each.processor).__mro__[1]):
        def on_end(self, span):
            ended.append(weakref.ref(span))

    each.app.provider.add_span_processor(Watch())
    each.app.chain()
    gc.collect()
    assert len(each.processor) == 1
    assert len(ended) == 3
    assert [ref() for ref in ended] == [None] * 3


def test_an_error_of_ours_reaches_nobody_and_is_counted(following):
    each = following()
    begin, each.monitor.begin = each.monitor.begin, None
    each.app.chain()
    assert each.processor.errors > 0
    each.monitor.begin, each.processor.errors = begin, 0


def test_many_threads_at_once_lose_nothing(following):
    each = following(grace=0.001)

    def work():
        for n in range(12):
            with each.app.request():
                if n % 2:
                    each.app.chain()
                else:
                    each.app.retrieve()
                    each.app.answer()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert each.monitor.flush(30)
    assert each.monitor.stats().outcomes == {"evaluated": 96}
    assert each.monitor.stats().started == 96


def units():
    gc.collect()
    return sum(type(held).__name__ == "_Unit" for held in gc.get_objects())


def test_nothing_grows_with_the_number_of_runs(following):
    each, before = following(max_traces=10), units()
    for _ in range(40):
        each.app.chain()
        with each.app.request():
            each.app.retrieve()
            each.app.answer()
        if len(each.processor) == 10:
            assert each.processor.force_flush()
    for _ in range(40):
        each.app.tracer.start_span("rag", attributes={"openinference.span.kind": "CHAIN"})
    assert len(each.processor) == 10
    each.processor.shutdown()
    assert kept(each.processor) == (0, 0)
    assert units() == before
    assert each.monitor.stats().outcomes["incomplete_run"] == 40


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"grace": 0}, "grace must be a positive number"),
        ({"max_spans": "many"}, "max_spans must be a positive number"),
        ({"roots": "ask"}, "roots must be a list"),
        ({"attribute_names": {"question": "q"}}, "must be an AttributeNames"),
    ],
)
def test_a_wrong_argument_is_named(following, wrong, message):
    with pytest.raises(ConfigurationError, match=message):
        following(**wrong)


def test_something_else_than_a_monitor_is_refused():
    with pytest.raises(ConfigurationError, match="needs a Monitor, got ScriptedJudge"):
        RagaliqSpanProcessor(ScriptedJudge())
