"""`on_result` runs on a thread of its own and within a time limit: it stalls no evaluation."""

import asyncio
import threading

from ragaliq import is_suppressed
from ragaliq.testing import ScriptedJudge


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
        evaluators=["relevance"],
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
