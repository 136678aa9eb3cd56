"""Flushing and closing: under traffic, from the callback, more than once, and after a fork."""

import asyncio
import threading

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
    monitor = monitor_of(judge=judge, evaluators=["relevance"], concurrency=1)
    monitor.submit(case)
    monitor.submit(case)
    flushed = []
    waiting = threading.Thread(target=lambda: flushed.append(monitor.flush(10.0)))
    waiting.start()
    judge.entered.acquire()
    while not monitor._engine._changed._waiters:  # it has begun to wait
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
    monitor = monitor_of(judge=judge, evaluators=["relevance"], concurrency=1, on_result=on_result)
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

    monitor = monitor_of(judge=Blocking(), evaluators=["relevance"])
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
    monitor = monitor_of(judge=held, evaluators=["relevance"], concurrency=2)
    for _ in range(5):
        monitor.submit(case)
    assert held.entered.wait(5.0)
    assert monitor.close(timeout=0.05) is False
    assert not monitor.submit(case)
    assert (monitor.stats().outcomes, monitor.stats().pending) == ({"shutdown": 6}, 0)


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
