"""The queue and overload: order, bounds, who loses its place, and every drop is counted."""

import asyncio
import random
import threading
from functools import partial
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from ragaliq import JudgeUsage, OnTag, RAGTestCase, Sampling
from ragaliq.live.queue import RunQueue
from ragaliq.live.run import RunHandle
from ragaliq.live.sampler import position
from ragaliq.live.sampling import SamplingDraw
from ragaliq.live.stats import RunCounters
from ragaliq.testing import ScriptedJudge

COUNTS = SimpleNamespace(counters=RunCounters())


def waiting(name, *, priority=0, size=1):
    run = RunHandle(COUNTS, name, SamplingDraw(0.0, None))
    run.size, run.priority = size, priority
    return run


def named(runs):
    return None if runs is None else [run.run_id for run in runs]


def test_in_a_full_queue_the_newest_of_the_lowest_priority_loses_its_place():
    queue = RunQueue()
    put = partial(queue.put, max_runs=3, max_bytes=9)
    for name, priority in [("a", 0), ("b", 0), ("c", 1)]:
        put(waiting(name, priority=priority))
    assert put(waiting("no better", priority=0)) is None
    assert named(put(waiting("better", priority=2))) == ["b"]
    assert named(put(waiting("better still", priority=2))) == ["a"]
    assert named(put(waiting("again", priority=2))) == ["c"]
    assert put(waiting("too many", priority=2)) is None
    assert named(queue.clear(COUNTS.counters)) == ["better", "better still", "again"]


@given(
    st.lists(
        st.one_of(st.none(), st.tuples(st.integers(0, 2), st.integers(1, 6))),
        max_size=60,
    ),
    st.integers(1, 6),
    st.integers(1, 20),
)
def test_every_run_is_taken_refused_or_displaced_once_and_the_bounds_hold(steps, runs, size):
    queue, put, gone = RunQueue(), [], []
    for number, step in enumerate(steps):
        if step is None:
            if (taken := queue.take()) is not None:
                gone.append(taken.run_id)
            continue
        name = str(number)
        put.append(name)
        run = waiting(name, priority=step[0], size=step[1])
        displaced = queue.put(run, max_runs=runs, max_bytes=size)
        gone += [name] if displaced is None else named(displaced)
        assert all(run.priority < step[0] for run in displaced or [])
        assert len(queue) <= runs
        assert queue.bytes <= size
    assert sorted(gone + named(queue.clear(COUNTS.counters))) == sorted(put)
    assert (len(queue), queue.bytes) == (0, 0)


def test_a_run_that_lost_its_place_is_counted_and_the_important_one_is_judged_first(
    monitor_of, held
):
    order = []
    monitor = monitor_of(
        judge=held,
        metrics=["relevance"],
        concurrency=1,
        max_queue=2,
        sampling=Sampling(rules=[OnTag("urgent")], rate=0.5),
        on_result=lambda result: order.append(result.case.id),
    )

    names = list(map(str, range(50)))
    first, *others = [name for name in names if position(name) < 0.5]  # the rate takes these
    urgent = next(name for name in names if position(name) >= 0.5)

    def submit(name, tags=()):
        return monitor.submit(RAGTestCase(id=name, query="q", response="r", tags=tags))

    assert submit(first)
    assert held.entered.wait(5.0)
    assert [submit(name) for name in others[:3]] == [True, True, False]
    assert submit(urgent, ["urgent"])
    assert monitor.stats().outcomes == {"queue_full": 2}
    held.released.set()
    assert monitor.flush(5.0)
    assert order == [first, urgent, others[0]]
    assert monitor.stats().outcomes == {"queue_full": 2, "evaluated": 3}


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
        metrics=["relevance"],
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
