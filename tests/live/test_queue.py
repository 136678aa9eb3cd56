"""The queue: order, bounds, and who loses its place."""

from hypothesis import given
from hypothesis import strategies as st

from ragaliq import OnTag, RAGTestCase, Sampling
from ragaliq.live.engine import RunQueue
from ragaliq.live.run import OpenRun
from ragaliq.live.sampler import Decision, position
from ragaliq.live.stats import Tally


def waiting(name, *, priority=0, size=1):
    run = OpenRun(None, Tally(), name, Decision(0.0, None, None))
    run.size, run.priority = size, priority
    return run


def named(runs):
    return None if runs is None else [run.run_id for run in runs]


def test_in_a_full_queue_the_newest_of_the_lowest_priority_loses_its_place():
    queue = RunQueue(max_runs=3, max_bytes=9)
    for name, priority in [("a", 0), ("b", 0), ("c", 1)]:
        queue.put(waiting(name, priority=priority))
    assert queue.put(waiting("no better", priority=0)) is None
    assert named(queue.put(waiting("better", priority=2))) == ["b"]
    assert named(queue.put(waiting("better still", priority=2))) == ["a"]
    assert named(queue.put(waiting("again", priority=2))) == ["c"]
    assert queue.put(waiting("too many", priority=2)) is None
    assert named(queue.clear()) == ["better", "better still", "again"]


@given(
    st.lists(
        st.one_of(st.none(), st.tuples(st.integers(0, 2), st.integers(1, 6))),
        max_size=60,
    ),
    st.integers(1, 6),
    st.integers(1, 20),
)
def test_every_run_is_taken_refused_or_displaced_once_and_the_bounds_hold(steps, runs, size):
    queue, put, gone = RunQueue(max_runs=runs, max_bytes=size), [], []
    for number, step in enumerate(steps):
        if step is None:
            if (taken := queue.take()) is not None:
                gone.append(taken.run_id)
            continue
        name = str(number)
        put.append(name)
        displaced = queue.put(waiting(name, priority=step[0], size=step[1]))
        gone += [name] if displaced is None else named(displaced)
        assert all(run.priority < step[0] for run in displaced or [])
        assert len(queue) <= runs
        assert queue.size <= size
    assert sorted(gone + named(queue.clear())) == sorted(put)
    assert (len(queue), queue.size) == (0, 0)


def test_a_run_that_lost_its_place_is_counted_and_the_important_one_is_judged_first(
    monitor_of, held
):
    order = []
    monitor = monitor_of(
        judge=held,
        evaluators=["relevance"],
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
