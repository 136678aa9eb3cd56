"""At most so many runs a minute, each with a chance that can be stated."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hand_clock import Clock
from ragaliq import Sampling
from ragaliq.live.sampler import RateCap

ARRIVALS = st.lists(
    st.tuples(st.floats(0, 30), st.floats(0.001, 1)),  # seconds since the one before, its chance
    max_size=200,
)


@given(per_minute=st.integers(1, 100), arrivals=ARRIVALS)
def test_no_minute_expects_more_than_a_bucket_beside_what_runs_out(per_minute, arrivals):
    clock = Clock()
    cap = RateCap(per_minute, clock=clock)
    given_out = []
    for pause, probability in arrivals:
        clock.now += pause
        factor = cap.factor(probability)
        assert 0.0 <= factor <= 1.0
        given_out.append((clock.now, factor * probability))
    size = max(2.0, per_minute / 6)
    most = size + max(per_minute - size, per_minute / 2) + 1e-6
    assert per_minute < 4 or most == pytest.approx(per_minute, abs=1e-3)
    for start, _ in given_out:
        assert sum(p for at, p in given_out if start <= at < start + 60) <= most


@given(per_minute=st.integers(1, 20), arrivals=ARRIVALS)
def test_no_minute_admits_more_than_the_cap(per_minute, arrivals):
    clock = Clock()
    cap = RateCap(per_minute, clock=clock)
    admitted = []
    for pause, _ in arrivals:
        clock.now += pause
        if cap.admit():
            admitted.append(clock.now)
    for start in admitted:
        assert sum(start <= at < start + 60 for at in admitted) <= per_minute


def steady(runs, *, per_minute, minutes, seed=0):
    """Send runs at random moments; returns how many."""
    clock, dice, number = runs.clock, random.Random(seed), 0
    while clock.now < 60 * minutes:
        clock.now += dice.expovariate(per_minute / 60)
        number += 1
        runs.run(f"run-{seed}-{number}")
    return number


def test_traffic_well_below_the_cap_is_taken_whole(traffic):
    runs = traffic(max_per_minute=60)
    number = steady(runs, per_minute=20, minutes=10)
    assert len(runs.taken) == number
    assert {run.sampling_probability for run in runs.monitor.taken} == {1.0}
    assert runs.sampler.counts() == {}


@pytest.mark.parametrize("load", [2, 10, 50])
def test_traffic_above_the_cap_is_thinned_and_its_weights_add_up_to_all_of_it(traffic, load):
    runs = traffic(max_per_minute=120)
    number = steady(runs, per_minute=120 * load, minutes=10)
    counts = runs.sampler.counts()
    assert 80 * 10 < len(runs.taken) <= 120 * 11
    assert counts.get("capped", 0) < 0.03 * len(runs.taken)
    assert len(runs.taken) + counts["thinned"] + counts.get("capped", 0) == number
    stands_for = sum(run.weight("faithfulness") for run in runs.monitor.taken)
    assert stands_for == pytest.approx(number, rel=0.1)  # standard error below 3 %


def test_a_burst_that_exceeds_the_cap_all_the_same_is_stopped_and_counted(traffic):
    runs = traffic(max_per_minute=1)
    for number in range(100):
        runs.clock.now = number / 10
        runs.run(f"run-{number}")
    assert len(runs.taken) == 1
    assert runs.sampler.counts()["capped"] > 0
    assert runs.sampled_out == 99


def test_a_monitor_counts_the_runs_above_the_cap(monitor_of, case):
    monitor = monitor_of(sampling=Sampling(max_per_minute=5))
    for number in range(50):
        monitor.submit(case, run_id=f"run-{number}")
    assert monitor.flush(10)
    stats = monitor.stats()
    assert 0 < stats.outcomes["evaluated"] <= 5
    assert stats.outcomes["evaluated"] + stats.outcomes["sampled_out"] == stats.started == 50
    assert (
        stats.sampling["thinned"] + stats.sampling.get("capped", 0)
        == 50 - (stats.outcomes["evaluated"])
    )
