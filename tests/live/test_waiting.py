"""Flushing, closing and letting go: under traffic, from the callback, more than once."""

import asyncio
import gc
import os
import threading
import weakref
from contextvars import ContextVar, copy_context

import pytest

from ragaliq import Monitor, is_suppressed
from ragaliq.testing import ScriptedJudge


class Gated(ScriptedJudge):
    """Lets through as many runs as it is told."""

    def __init__(self):
        super().__init__()
        self.gate, self.entered = threading.Semaphore(0), threading.Semaphore(0)

    async def evaluate_relevance(self, query, response):
        self.entered.release()
        await asyncio.to_thread(self.gate.acquire, timeout=10.0)
        return await super().evaluate_relevance(query, response)


def test_flush_waits_for_the_runs_accepted_before_it_and_not_for_later_ones(monitor_of, case):
    judge = Gated()
    monitor = monitor_of(judge=judge, metrics=["relevance"], concurrency=1)
    monitor.submit(case)
    monitor.submit(case)
    flushed = []
    waiting = threading.Thread(target=lambda: flushed.append(monitor.flush(10.0)))
    waiting.start()
    judge.entered.acquire()
    while not monitor.queue._changed._waiters:  # it has begun to wait
        waiting.join(0.001)
    for _ in range(5):
        monitor.submit(case)
    judge.gate.release()
    assert judge.entered.acquire(timeout=5.0)
    assert waiting.is_alive()
    judge.gate.release()
    waiting.join(5.0)
    assert flushed == [True]
    assert monitor.stats().pending == 5
    judge.gate.release(5)
    assert monitor.flush(5.0)


def test_close_from_on_result_accepts_no_more_and_loses_nothing(monitor_of, case):
    closed = []

    def on_result(result):
        closed.append(monitor.close(5.0))

    judge = Gated()
    monitor = monitor_of(judge=judge, metrics=["relevance"], concurrency=1, on_result=on_result)
    for _ in range(3):
        monitor.submit(case)
    judge.gate.release(3)
    # It waits, since what was queued when the callback closed the monitor is still evaluated.
    assert monitor.close(10.0)
    assert not monitor.submit(case)
    assert closed == [False] * 3
    assert monitor.stats().outcomes == {"evaluated": 3, "shutdown": 1}
    assert monitor.stats().pending == 0


def test_flush_from_on_result_does_not_wait_for_itself(monitor_of, case):
    flushed = []
    monitor = monitor_of(on_result=lambda _: flushed.append(monitor.flush(60.0)))
    monitor.submit(case)
    assert monitor.flush(5.0)
    assert flushed == [False]


def test_a_second_close_does_not_wait_again_for_what_the_first_gave_up(monitor_of, case):
    class Blocking(ScriptedJudge):
        released = threading.Event()
        entered = threading.Event()

        async def evaluate_relevance(self, query, response):
            self.entered.set()
            self.released.wait(20.0)
            return await super().evaluate_relevance(query, response)

    monitor = monitor_of(judge=Blocking(), metrics=["relevance"])
    monitor.submit(case)
    assert Blocking.entered.wait(5.0)
    assert not monitor.close(0.0)
    assert not monitor.close(60.0)
    assert not monitor.flush(60.0)
    Blocking.released.set()


def test_flush_gives_up_after_its_timeout(monitor_of, case, held):
    monitor = monitor_of(judge=held)
    monitor.submit(case)
    assert monitor.flush(0.05) is False
    held.released.set()
    assert monitor.flush(5.0)


def test_close_counts_what_it_leaves_undone_and_refuses_what_comes_later(monitor_of, case, held):
    monitor = monitor_of(judge=held, metrics=["relevance"], concurrency=2)
    for _ in range(5):
        monitor.submit(case)
    assert held.entered.wait(5.0)
    assert monitor.close(timeout=0.05) is False
    assert not monitor.submit(case)
    assert (monitor.stats().outcomes, monitor.stats().pending) == ({"shutdown": 6}, 0)


def test_close_counts_also_runs_whose_judge_blocks_the_thread(monitor_of, case):
    released = threading.Event()

    class Blocking(ScriptedJudge):
        async def evaluate_relevance(self, query, response):
            released.wait(20.0)
            return await super().evaluate_relevance(query, response)

    monitor = monitor_of(judge=Blocking(), metrics=["relevance"], concurrency=4)
    for _ in range(6):
        monitor.submit(case)
    assert monitor.close(timeout=0.2) is False
    stats = monitor.stats()
    released.set()
    assert (stats.outcomes, stats.pending) == ({"shutdown": 6}, 0)


def test_a_closed_monitor_is_idle_for_whoever_asks(monitor_of, case):
    monitor = monitor_of()
    monitor.submit(case)
    assert monitor.close(5.0)
    answers = []
    for _ in range(20):  # new threads get the ids of threads that ended, the worker's too
        asking = threading.Thread(target=lambda: answers.append(monitor.flush(0.0)))
        asking.start()
        asking.join(5.0)
    assert answers == [True] * 20


def test_an_idle_monitor_starts_no_thread(monitor_of):
    before = threading.active_count()
    monitor = monitor_of()
    assert monitor.flush(0.0)
    assert threading.active_count() == before


def test_a_coroutine_that_takes_too_long_is_cancelled_and_counted(monitor_of, case):
    cancelled = threading.Event()

    async def on_result(_):
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    monitor = monitor_of(on_result=on_result, on_result_timeout=0.05)
    monitor.submit(case)
    assert monitor.flush(5.0)
    assert cancelled.wait(5.0)
    stats = monitor.stats()
    assert (stats.callback_timeouts, stats.callback_errors) == (1, 0)
    assert stats.outcomes == {"evaluated": 1}


def test_a_function_that_blocks_stalls_no_evaluation_and_what_it_misses_is_counted(
    monitor_of, case
):
    released, calls = threading.Event(), []

    def on_result(result):
        calls.append(result)
        released.wait(20.0)

    judge = ScriptedJudge()
    monitor = monitor_of(
        judge=judge,
        metrics=["relevance"],
        concurrency=2,
        on_result=on_result,
        on_result_timeout=0.05,
    )
    for _ in range(50):
        monitor.submit(case)
    assert monitor.flush(10.0)
    assert judge.call_counts["evaluate_relevance"] == 50
    assert monitor.stats().outcomes == {"evaluated": 50}
    assert monitor.stats().callback_timeouts == 50
    assert len(calls) == 1

    released.set()
    while len(calls) < 2:
        monitor.submit(case)
        assert monitor.flush(5.0)


def test_it_runs_inside_suppress_and_one_call_at_a_time(monitor_of, case):
    seen, running = [], threading.Lock()

    def on_result(_):
        assert running.acquire(blocking=False)
        seen.append((threading.current_thread().name, is_suppressed()))
        running.release()

    monitor = monitor_of(on_result=on_result, concurrency=4)
    for _ in range(20):
        monitor.submit(case)
    assert monitor.flush(5.0)
    assert seen == [("ragaliq-on-result", True)] * 20
    assert monitor.stats().callback_errors == 0


def test_closing_ends_its_thread(monitor_of, case):
    before = set(threading.enumerate())
    monitor = monitor_of(on_result=lambda _: None)
    monitor.submit(case)
    assert monitor.close(5.0)
    for thread in set(threading.enumerate()) - before:
        thread.join(5.0)
        assert not thread.is_alive()


def test_where_its_thread_cannot_be_started_runs_are_judged_and_counted(
    monitor_of, case, monkeypatch
):
    start = threading.Thread.start

    def only_the_worker(thread):
        if thread.name == "ragaliq-on-result":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", only_the_worker)
    monitor = monitor_of(on_result=lambda _: None)
    monitor.submit(case)
    assert monitor.flush(5.0)
    stats = monitor.stats()
    assert (stats.outcomes, stats.pending, stats.callback_errors) == ({"evaluated": 1}, 0, 1)


class HoldingItself:
    def __init__(self, handle):
        self.handle = handle
        self.itself = self


@pytest.mark.parametrize("closed", [False, True])
def test_a_ticket_that_is_let_go_is_counted_abandoned(monitor_of, closed):
    monitor = monitor_of()
    handle = monitor.begin("a")
    assert monitor.stats().pending == 1
    if closed:
        monitor.close(1.0)
    del handle
    assert monitor.stats().incomplete == {"abandoned": 1}
    assert monitor.stats().pending == 0


def test_also_when_the_garbage_collector_finds_it(monitor_of):
    monitor = monitor_of()
    HoldingItself(monitor.begin("a"))
    gc.collect()
    assert monitor.stats().incomplete == {"abandoned": 1}


@pytest.mark.parametrize("end", ["submit", "discard", "withdraw"])
def test_one_that_has_ended_is_not(monitor_of, case, end):
    monitor = monitor_of(judge=ScriptedJudge())
    handle = monitor.begin("a")
    given = {"submit": (case,), "discard": ("errored",), "withdraw": ()}[end]
    getattr(handle, end)(*given)
    del handle
    assert monitor.flush(20)
    stats = monitor.stats()
    assert "abandoned" not in stats.incomplete
    assert (stats.pending, stats.started) == (0, end != "withdraw")


def test_what_a_forked_child_lets_go_of_is_its_parents(monitor_of, monkeypatch):
    monitor = monitor_of()
    handle, parent = monitor.begin("a"), os.getpid()
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: parent + 1)
        del handle
    assert monitor.stats().outcomes == {}


# Looking after runs that never end: one timer for all, and nothing kept alive by it.


class Follower:
    def __init__(self):
        self.swept = []
        self.is_swept = threading.Event()

    def sweep(self):
        self.swept.append(threading.current_thread())
        self.is_swept.set()


def test_the_soonest_request_sweeps_every_follower_once_on_one_thread(monitor_of):
    monitor, followers = monitor_of(), [Follower() for _ in range(100)]
    assert all(monitor.sweep_later(600.0, each) for each in followers)
    assert monitor.sweep_later(0.05, followers[0])
    for each in followers:
        assert each.is_swept.wait(5.0)
    again = Follower()
    assert monitor.sweep_later(0.01, again)
    assert again.is_swept.wait(5.0)
    assert {len(each.swept) for each in followers} == {1}
    assert len({each.swept[0] for each in [*followers, again]}) == 1


def test_a_timer_keeps_neither_follower_nor_thread():
    before, follower = set(threading.enumerate()), Follower()
    monitor = Monitor(judge=ScriptedJudge())
    assert monitor.sweep_later(600.0, follower)
    gone = weakref.ref(follower)
    del follower
    gc.collect()
    assert gone() is None
    del monitor
    gc.collect()
    for thread in set(threading.enumerate()) - before:
        thread.join(5.0)
        assert not thread.is_alive()


def test_a_run_and_a_timer_keep_nothing_of_the_request_that_asks_for_them(monitor_of, case):
    class Request:
        """What the context of a request holds."""

    def ask():
        variable.set(Request())
        assert monitor.sweep_later(600.0, follower)
        assert monitor.submit(case)
        return weakref.ref(variable.get())

    monitor, follower, variable = monitor_of(), Follower(), ContextVar("request")
    gone = copy_context().run(ask)
    assert monitor.flush(5.0)
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("options", [{"enabled": False}, {}])
def test_a_monitor_that_is_off_or_closed_says_that_nothing_will_be_swept(monitor_of, options):
    monitor = monitor_of(**options)
    monitor.close()
    assert not monitor.sweep_later(1.0, Follower())
    assert not monitor.sweep_later(1.0, Follower())
