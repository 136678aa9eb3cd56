"""What intervals promise, checked by simulation: seeded, so each run sees the same figures.

Each test says between which shares the method's true coverage lies. The share that is seen may lie
three standard errors beyond: with 200 repetitions a true 95 % may show as 90.4 % or 99.6 %, with
the 1,000 of the long version (marker `soak`) as 92.9 % or 97.1 %.
"""

import math
from random import Random

import pytest

from ragaliq.statistics import hajek_mean, paired_difference

pytestmark = pytest.mark.slow


@pytest.fixture(params=[200, pytest.param(1000, marks=pytest.mark.soak)])
def repeats(request):
    return request.param


def share_held(make, repeats):
    """Share of repetitions in which the interval holds the true figure."""
    random = Random(2311)
    held = 0
    for _ in range(repeats):
        estimate, truth = make(random)
        held += estimate.low <= truth <= estimate.high
    return held / repeats


def lies_within(low, high, share, repeats):
    """Whether a true share between `low` and `high` may show as this one."""

    def margin(true):
        return 3 * math.sqrt(true * (1 - true) / repeats)

    return low - margin(low) <= share <= high + margin(high)


def fractions(random, count):
    return random.choices([0, 1 / 3, 2 / 3, 1], [0.05, 0.1, 0.15, 0.7], k=count)


FRACTIONS_MEAN = 0.1 / 3 + 0.2 / 2 + 0.7


def risk_weighted(scores):
    """Chances as a rule gives them: what looks bad is sampled more often."""
    return [0.5 if score < 0.5 else 0.15 for score in scores]


def sampled(random, scores, probabilities):
    return [(s, p) for s, p in zip(scores, probabilities, strict=True) if random.random() < p]


@pytest.mark.parametrize("size", [10, 50, 200])
def test_wilson_holds_the_share(size, repeats):
    def make(random):
        scores = [float(random.random() < 0.85) for _ in range(size)]
        return hajek_mean(scores, [1.0] * size), 0.85

    assert lies_within(
        0.93, 0.99, share_held(make, repeats), repeats
    )  # counts are whole, so the share moves in steps


@pytest.mark.parametrize("size", [10, 19, 40])
def test_the_interval_of_the_summary_holds_the_mean(size, repeats):
    def make(random):
        return hajek_mean(fractions(random, size), [1.0] * size), FRACTIONS_MEAN

    assert lies_within(0.93, 0.99, share_held(make, repeats), repeats)


def test_hajek_holds_the_mean_of_the_long_run(repeats):
    def make(random):
        scores = fractions(random, 400)
        drawn = sampled(random, scores, risk_weighted(scores))
        return hajek_mean(*zip(*drawn, strict=True)), FRACTIONS_MEAN

    assert lies_within(0.93, 0.97, share_held(make, repeats), repeats)


def test_hajek_holds_a_mean_that_rests_on_few_bad_answers(repeats):
    def make(random):
        scores = random.choices([0.0, 1 / 2, 2 / 3, 1.0], [0.01, 0.01, 0.02, 0.96], k=1000)
        drawn = sampled(random, scores, [0.1] * 1000)
        return hajek_mean(*zip(*drawn, strict=True)), 0.01 / 2 + 0.04 / 3 + 0.96

    assert lies_within(0.93, 0.975, share_held(make, repeats), repeats)


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_hajek_of_a_few_passes_and_fails_does_not_promise_too_much(share, repeats):
    def make(random):
        scores = [float(random.random() < share) for _ in range(300)]
        drawn = sampled(random, scores, [0.05] * 300) or [(scores[0], 0.05)]  # about 15
        return hajek_mean(*zip(*drawn, strict=True)), share

    assert lies_within(0.93, 0.995, share_held(make, repeats), repeats)


@pytest.mark.parametrize(("changed", "least"), [(0.1, 0.93), (0.6, 0.93)])
@pytest.mark.parametrize("size", [50, 200])
def test_the_interval_of_a_paired_difference_holds_the_change(changed, least, size, repeats):
    def make(random):
        first = [0.5] * size
        step = [random.choice((-1 / 3, 1 / 3)) * (random.random() < changed) for _ in first]
        second = [a + b for a, b in zip(first, step, strict=True)]
        return paired_difference(first, second).difference, 0.0

    assert lies_within(least, 0.99, share_held(make, repeats), repeats)
