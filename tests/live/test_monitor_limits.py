from __future__ import annotations

import threading

from ragaliq import Monitor
from ragaliq.testing import ScriptedJudge


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


def test_leaving_the_context_evaluates_what_is_queued(case):
    with Monitor(judge=ScriptedJudge()) as monitor:
        for _ in range(20):
            monitor.submit(case)
    assert monitor.stats().outcomes == {"evaluated": 20}


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
