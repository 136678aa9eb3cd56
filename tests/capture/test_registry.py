"""The registry of runs in progress: bounded in number, age, bytes and in what it remembers."""

import pytest

from hand_clock import Clock
from ragaliq.capture import RunRegistry


class Run:
    def __init__(self, key, clock, size=0, steps=()):
        self.key, self.started, self.closed, self.size = key, clock.now, False, size
        self.steps, self.reasons = [key, *steps], []

    def discard(self, reason):
        self.reasons.append(reason)


@pytest.fixture
def clock():
    return Clock()


def started(registry, clock, *keys, **options):
    runs = [Run(key, clock, **options) for key in keys]
    for run in runs:
        registry.open(run)
    return runs


def test_beyond_their_bytes_the_oldest_runs_are_given_up(clock):
    registry = RunRegistry(max_bytes=250, clock=clock)
    runs = started(registry, clock, 1, 2, 3, size=100)
    clock.now = 6.0
    registry.sweep()
    assert [run.reasons for run in runs] == [["evicted"], [], []]


def test_a_run_is_closed_once_and_its_steps_are_over(clock):
    registry = RunRegistry(clock=clock)
    (run,) = started(registry, clock, 1, steps=[7])
    registry.join(run, 7)
    assert registry.runs[7] is run
    assert (registry.close(run), registry.close(run)) == (True, False)
    assert not registry.runs
    assert registry.is_ignored(7)
    registry.join(run, 8)  # a step that starts while its run ends in another thread
    assert not registry.runs
    assert registry.is_ignored(8)


def test_it_is_swept_again_when_the_oldest_run_will_be_overdue(clock):
    asked = []

    def later(delay, registry):
        asked.append(delay)
        return True

    registry = RunRegistry(max_age=10.0, clock=clock, sweep_later=later)
    runs = started(registry, clock, 1, 2)
    clock.now = 4.0
    registry.sweep()
    assert asked == [10.0, 6.0]
    registry.give_up("detached")
    assert [run.reasons for run in runs] == [["detached"]] * 2


def test_what_is_remembered_of_ended_runs_is_bounded(clock):
    registry = RunRegistry(clock=clock)
    for root in range(20_000):
        (run,) = started(registry, clock, 3 * root, steps=[3 * root + 1])
        registry.close(run)
        registry.ignore(3 * root + 2)
    assert all(map(registry.is_ignored, range(60_000 - 16_384, 60_000)))
    assert not any(map(registry.is_ignored, range(60_000 - 2 * 16_384 - 3)))
