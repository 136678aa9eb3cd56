import asyncio
import threading
from collections import Counter

import pytest

from ragaliq import SinkError, is_suppressed
from ragaliq.records.sinks import SinkLimits, SinkWorker

FAST = {"backoff": 0.001, "max_backoff": 0.01, "timeout": 5.0}


@pytest.fixture
def worker_of():
    workers = []

    def build(sink, *, on_error=None, **limits):
        limits = SinkLimits(**{**FAST, **limits})
        workers.append(SinkWorker(sink, limits, on_error))
        return workers[-1]

    yield build
    for worker in workers:
        worker.close(0.0)


def adds_up(stats):
    return stats.records == stats.written + stats.failed + stats.dropped + stats.pending


def test_records_that_wait_are_written_together_and_never_too_many(
    worker_of, list_sink, record_of, until
):
    gate = threading.Event()
    sink = list_sink(gate)
    worker = worker_of(sink, max_batch=4)
    worker.put(record_of(0))
    until(lambda: sink.calls)
    for number in range(1, 10):
        worker.put(record_of(number))
    gate.set()
    assert worker.flush(5.0)
    assert [len(call) for call in sink.calls] == [1, 4, 4, 1]


DOWN = SinkError("down", kind="http_500")


@pytest.mark.parametrize(
    ("failures", "expected"),
    [
        ([DOWN, ConnectionError("down")], (3, "written", {"http_500": 1, "ConnectionError": 1})),
        ([DOWN] * 10, (3, "failed", {"http_500": 3})),
        ([SinkError("no", kind="key", permanent=True)], (1, "failed", {"key": 1})),
    ],
    ids=["passes", "stays", "is permanent"],
)
def test_a_failure_is_tried_again_until_it_passes_or_never_will(
    worker_of, list_sink, record_of, failures, expected
):
    calls, outcome, errors = expected
    sink, told = list_sink(*failures), []
    worker = worker_of(sink, attempts=3, on_error=lambda *how: told.append(how))
    assert worker.put(record_of()).result(5.0) == outcome
    assert worker.flush(5.0)
    stats = worker.stats()
    assert (len(sink.calls), getattr(stats, outcome), stats.errors) == (calls, 1, errors)
    assert Counter(kind for _, kind in told) == errors
    assert adds_up(stats)


def test_what_no_thread_can_write_is_dropped_and_said(
    worker_of, list_sink, record_of, monkeypatch, caplog
):
    def start(_):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", start)
    worker = worker_of(list_sink())
    assert worker.put(record_of()).result(5.0) == "dropped"
    stats = worker.stats()
    assert (stats.dropped, stats.errors) == (1, {"no_thread": 1})
    assert "no thread can be started any more" in caplog.text


def test_only_what_was_not_delivered_is_sent_again(worker_of, list_sink, record_of, until):
    gate, records = threading.Event(), [record_of(number) for number in range(3)]
    sink = list_sink(gate, SinkError("no", kind="not_found", undelivered=records[1:2]))
    worker = worker_of(sink)
    worker.put(record_of(99))
    until(lambda: sink.calls)
    for record in records:
        worker.put(record)
    gate.set()
    assert worker.flush(5.0)
    ids = [record.evaluation_id for record in records]
    assert sink.calls[1:] == [ids, ids[1:2]]
    assert worker.stats().written == 4


@pytest.mark.parametrize(
    "error", [SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError(), RuntimeError("zebra")]
)
def test_whatever_a_sink_raises_the_worker_goes_on(worker_of, list_sink, record_of, error, caplog):
    sink = list_sink(error)
    worker = worker_of(sink)
    worker.put(record_of())
    assert worker.flush(5.0)
    assert worker.stats().written == 1
    assert worker.stats().errors == {type(error).__name__: 1}
    assert "zebra" not in caplog.text


def test_a_sink_that_hangs_is_cut_off_and_tried_again(worker_of, list_sink, record_of):
    sink = list_sink(threading.Event())
    worker = worker_of(sink, timeout=0.02)
    worker.put(record_of())
    assert worker.flush(5.0)
    assert worker.stats().errors == {"TimeoutError": 1}
    assert worker.stats().written == 1


@pytest.mark.parametrize("bound", ["max_queue", "max_characters"])
def test_records_beyond_the_bounds_are_dropped_and_counted(
    worker_of, list_sink, record_of, captured, bound
):
    gate, records = threading.Event(), [record_of(number, content=captured) for number in range(5)]
    worker = worker_of(
        list_sink(gate), **{bound: 2 if bound == "max_queue" else 2 * records[0].size}
    )
    for record in records:
        worker.put(record)
    stats = worker.stats()
    assert (stats.dropped, stats.pending) == (3, 2)
    assert adds_up(stats)
    gate.set()
    assert worker.flush(5.0)
    worker.put(record_of(9, content=captured))
    assert worker.flush(5.0)
    assert worker.stats().written == 3


def test_closing_drops_and_counts_what_a_dead_sink_left(worker_of, list_sink, record_of):
    sink = list_sink(threading.Event())
    worker = worker_of(sink)
    for number in range(4):
        worker.put(record_of(number))
    assert not worker.close(0.02)
    worker.put(record_of(9))
    stats = worker.stats()
    assert (stats.dropped, stats.pending, stats.records) == (5, 0, 5)
    assert sink.closed == 1


def test_a_sink_that_blocks_its_thread_delays_no_caller(worker_of, record_of):
    release = threading.Event()

    class Blocking:
        name = "blocking"

        async def write(self, records):
            release.wait(30.0)

        async def aclose(self): ...

    worker = worker_of(Blocking())
    worker.put(record_of())
    assert not worker.flush(0.01)
    assert not worker.close(0.01)
    assert worker.stats().dropped == 1
    release.set()


def test_each_kind_of_failure_is_logged_once(worker_of, list_sink, record_of, caplog):
    sink = list_sink(*[SinkError("the server is down", kind="http_500")] * 4)
    worker = worker_of(sink)
    worker.put(record_of())
    assert worker.flush(5.0)
    assert caplog.text.count("the server is down") == 1


def test_what_a_sink_does_is_neither_evaluated_nor_instrumented(worker_of, record_of):
    from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, get_value

    seen = []

    class Curious:
        name = "curious"

        async def write(self, records):
            seen.append((is_suppressed(), get_value(_SUPPRESS_INSTRUMENTATION_KEY)))

        async def aclose(self): ...

    worker = worker_of(Curious())
    worker.put(record_of())
    assert worker.flush(5.0)
    assert seen == [(True, True)]


class Settled:
    name = "settled"

    def __init__(self, *, fails=False):
        self.written, self.settled, self.fails = 0, [], fails

    async def write(self, records):
        self.written += len(records)

    async def settle(self):
        self.settled.append(self.written)
        if self.fails:
            raise OSError("the disk is gone")

    async def aclose(self):
        pass


@pytest.mark.parametrize("fails", [False, True])
def test_a_flush_lets_a_sink_settle_once_for_what_was_written(worker_of, record_of, fails):
    sink = Settled(fails=fails)
    worker = worker_of(sink)
    assert worker.flush(5.0)
    assert sink.settled == []
    for number in range(2):
        worker.put(record_of(number))
        assert worker.flush(5.0)
        assert worker.flush(5.0)
    assert sink.settled == [1, 2]
