from __future__ import annotations

import asyncio
import threading
import time

from ragaliq import Monitor, RAGTestCase
from ragaliq.testing import ScriptedJudge


def adds_up(stats):
    return stats.started == sum(stats.outcomes.values()) + stats.pending


def test_flush_gives_up_after_its_timeout(monitor_of, case, held):
    monitor = monitor_of(judge=held)
    monitor.submit(case)
    assert monitor.flush(0.05) is False
    held.released.set()
    assert monitor.flush(5.0)


async def test_aflush_leaves_the_event_loop_free(monitor_of, case, held):
    monitor = monitor_of(judge=held)
    monitor.submit(case)
    waiting = asyncio.create_task(monitor.aflush(5.0))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    held.released.set()
    assert await waiting


def test_close_counts_what_it_leaves_undone_and_refuses_what_comes_later(monitor_of, case, held):
    monitor = monitor_of(judge=held, evaluators=["relevance"], concurrency=2)
    for _ in range(5):
        monitor.submit(case)
    assert held.entered.wait(5.0)
    assert monitor.close(timeout=0.05) is False
    assert not monitor.submit(case)
    assert monitor.stats().outcomes == {"shutdown": 6}
    assert adds_up(monitor.stats())


def test_leaving_the_context_evaluates_what_is_queued(case):
    with Monitor(judge=ScriptedJudge()) as monitor:
        for _ in range(20):
            monitor.submit(case)
    assert monitor.stats().outcomes == {"evaluated": 20}


def test_closing_twice_is_harmless(monitor_of, case):
    monitor = monitor_of()
    monitor.submit(case)
    assert monitor.close(5.0)
    assert monitor.close(5.0)


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


def test_no_more_runs_are_judged_at_once_than_asked(monitor_of, case):
    class Counting(ScriptedJudge):
        running = most = 0

        async def evaluate_relevance(self, query, response):
            self.running += 1
            self.most = max(self.most, self.running)
            await asyncio.sleep(0.001)
            self.running -= 1
            return await super().evaluate_relevance(query, response)

    judge = Counting()
    monitor = monitor_of(judge=judge, evaluators=["relevance"], concurrency=3)
    for _ in range(30):
        monitor.submit(case)
    assert monitor.flush(5.0)
    assert judge.most == 3


def test_runs_submitted_from_many_threads_are_all_evaluated(monitor_of):
    got = []
    monitor = monitor_of(on_result=got.append, max_queue=10_000, concurrency=2)

    def submit(worker):
        for i in range(40):
            name = f"{worker}-{i}"
            monitor.submit(
                RAGTestCase(id=name, query=name, context=[name], response=f"It is {name}.")
            )
            if i % 10 == 0:
                time.sleep(0.001)

    threads = [threading.Thread(target=submit, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert monitor.flush(120.0)
    assert len({result.case.id for result in got}) == 320
    assert all(result.case.context == [result.case.query] for result in got)
    assert monitor.stats().outcomes == {"evaluated": 320}
