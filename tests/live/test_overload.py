"""At ten times what the judge can do: bounds hold, and every run that is dropped is counted."""

import asyncio
import random
import threading

from ragaliq import JudgeUsage, RAGTestCase
from ragaliq.testing import ScriptedJudge

CONCURRENCY, MAX_QUEUE, MAX_BYTES = 4, 20, 200_000


class Paced(ScriptedJudge):
    """Judges a run for every ten that are submitted, and notes how much was held meanwhile."""

    def __init__(self, **options):
        super().__init__(usage=JudgeUsage(requests=1, input_tokens=10, cost_usd=0.001), **options)
        self.allowed = threading.Semaphore(0)
        self.running = self.most = 0

    async def evaluate_relevance(self, query, response):
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.to_thread(self.allowed.acquire, timeout=30.0)
            return await super().evaluate_relevance(query, response)
        finally:
            self.running -= 1


def sized(number):
    text = "x" * random.Random(number).randint(1, 40_000)
    return RAGTestCase(query=f"q{number}", context=[text], response="Alpha is one.")


def overload(monitor, judge, runs=1000, threads=4):
    """Submit from several threads at once; returns the most that ever waited."""
    most = [0, 0]

    def work(share):
        for number in share:
            monitor.submit(sized(number))
            if number % 10 == 0:
                judge.allowed.release()
            stats = monitor.stats()
            most[0], most[1] = max(most[0], stats.queued), max(most[1], stats.queued_bytes)
            assert stats.started == sum(stats.outcomes.values()) + stats.pending

    workers = [
        threading.Thread(target=work, args=(range(n, runs, threads),)) for n in range(threads)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60.0)
    judge.allowed.release(runs)
    assert monitor.flush(30.0)
    return most


def test_the_process_stays_within_its_bounds_and_every_drop_is_counted(monitor_of):
    judge = Paced()
    monitor = monitor_of(
        judge=judge,
        evaluators=["relevance"],
        concurrency=CONCURRENCY,
        max_queue=MAX_QUEUE,
        max_queue_bytes=MAX_BYTES,
    )
    queued, size = overload(monitor, judge)
    stats = monitor.stats()
    assert 0 < queued <= MAX_QUEUE
    assert 0 < size <= MAX_BYTES
    assert judge.most <= CONCURRENCY
    assert stats.outcomes["queue_full"] > 500
    assert stats.outcomes["evaluated"] == judge.call_counts["evaluate_relevance"]
    assert sum(stats.outcomes.values()) == stats.started == 1000
    assert (stats.pending, stats.queued, stats.queued_bytes) == (0, 0, 0)
