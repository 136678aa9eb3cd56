"""A cheap judge for all and an expensive one for some, as one mean."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragaliq import DatasetError
from ragaliq.lab.agreement import auroc_estimate
from ragaliq.lab.prediction_powered import prediction_powered_mean
from ragaliq.statistics import hajek_mean

SCORE = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.5, 1.0]))
CHANCE = st.floats(0.01, 1)
SCORES = st.lists(SCORE, min_size=1, max_size=40)
Y = [0.9, 0.2, 0.7, 1, 0.5, 0.3, 0.8, 0.6]
F = [0.8, 0.3, 0.9, 0.9, 0.4, 0.1, 0.7, 0.9]
U = [0.5, 0.6, 0.9, 1, 0.2, 0.3, 0.8, 0.7, 0.75, 0.95, 0.1, 0.6]


def columns(rows):
    return [list(column) for column in zip(*rows, strict=True)]


def test_prediction_powered_mean_is_that_of_ppi_py():
    found = prediction_powered_mean(Y, F, U)
    # Its weight is ours times N / (n + N); ppi_py.ppi_mean_pointestimate(Y, f, U, lam=0), lam=1
    lam = found.weight * len(U) / (len(F) + len(U))
    assert 0.0 < lam < 1.0
    expected = (1 - lam) * 0.625 + lam * 0.6166666666666666
    assert found.estimate.value == pytest.approx(expected)


@given(st.lists(st.tuples(SCORE, SCORE, CHANCE), min_size=1, max_size=30), SCORES)
def test_a_prediction_powered_estimate_is_sound(rows, unlabelled):
    expensive, cheap, chances = columns(rows)
    result = prediction_powered_mean(expensive, cheap, unlabelled, probabilities=chances)
    assert 0.0 <= result.weight <= 1.0
    assert result.estimate.low - 1e-12 <= result.estimate.value <= result.estimate.high + 1e-12
    classical = hajek_mean(expensive, chances)
    assert result.classical == classical
    constant = [0.5] * len(unlabelled)
    none = prediction_powered_mean(expensive, [0.5] * len(rows), constant, probabilities=chances)
    assert none.estimate.value == pytest.approx(classical.value)


def test_judges_that_agree_on_the_few_pairs_seen_are_not_taken_for_the_same():
    scores = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    result = prediction_powered_mean(scores, scores, [1.0] * 500)
    assert result.weight == 1.0
    assert 0.1 < result.estimate.width < result.classical.width


def test_a_cheap_judge_without_signal_is_left_out():
    random = Random(3)
    expensive = [random.random() for _ in range(50)]
    result = prediction_powered_mean(expensive, [0.5] * 50, [0.5] * 500)
    assert result.weight == 0.0
    assert result.estimate.value == pytest.approx(result.classical.value)


def test_columns_that_do_not_fit_are_refused():
    with pytest.raises(DatasetError, match="differ in length"):
        prediction_powered_mean([0.5], [0.5, 0.5], [])
    with pytest.raises(DatasetError, match="at least one"):
        prediction_powered_mean([], [], [0.5])


# What the intervals promise, by simulation as in tests/statistics/test_coverage.py.


@pytest.fixture(params=[200, pytest.param(1000, marks=pytest.mark.soak)])
def repeats(request):
    return request.param


def lies_within(low, high, share, repeats):
    def margin(true):
        return 3 * math.sqrt(true * (1 - true) / repeats)

    return low - margin(low) <= share <= high + margin(high)


def fractions(random, count):
    return random.choices([0, 1 / 3, 2 / 3, 1], [0.05, 0.1, 0.15, 0.7], k=count)


FRACTIONS_MEAN = 0.1 / 3 + 0.2 / 2 + 0.7


@pytest.mark.slow
def test_auroc_intervals_hold_the_area():
    random, held, repeats = Random(2311), 0, 60
    for _ in range(repeats):
        labels = [i % 2 for i in range(40)]
        estimate = auroc_estimate([random.gauss(float(y), 1.0) for y in labels], labels)
        held += estimate.low <= 0.7602499389065233 <= estimate.high  # scipy.stats.norm.cdf(.5**.5)
    assert lies_within(0.91, 0.975, held / repeats, repeats)


def two_judges(random, agreement, *, population=400):
    """Scores of both judges, and the prediction-powered mean from a sample of the expensive ones.

    The chance of being scored by the expensive judge depends on the cheap score.
    """
    dear = fractions(random, population)
    cheap = [s if random.random() < agreement else random.random() for s in dear]
    chances = [0.35 if c < 0.5 else 0.15 for c in cheap]
    rows = list(zip(dear, cheap, chances, strict=True))
    taken = [random.random() < chance for chance in chances]
    labelled = [row for row, was in zip(rows, taken, strict=True) if was]
    expensive, known, probabilities = zip(*labelled, strict=True)
    others = [row[1] for row, was in zip(rows, taken, strict=True) if not was]

    return prediction_powered_mean(expensive, known, others, probabilities=probabilities)


@pytest.mark.slow
@pytest.mark.parametrize("agreement", [0.0, 0.6, 0.9])
def test_the_prediction_powered_interval_holds_the_expensive_mean(agreement, repeats):
    random = Random(2311)
    held = 0
    for _ in range(repeats):
        estimate = two_judges(random, agreement).estimate
        held += estimate.low <= FRACTIONS_MEAN <= estimate.high
    assert lies_within(0.93, 0.98, held / repeats, repeats)


@pytest.mark.slow
def test_nearly_equal_judges_do_not_make_the_interval_promise_too_much(repeats):
    random = Random(2311)
    found = [two_judges(random, 0.99, population=200).estimate for _ in range(repeats)]
    held = sum(each.low <= FRACTIONS_MEAN <= each.high for each in found)
    assert lies_within(0.95, 1.0, held / repeats, repeats)


@pytest.mark.slow
@pytest.mark.parametrize(("agreement", "most"), [(0.0, 1.06), (0.6, 0.92), (0.9, 0.75)])
def test_the_better_the_cheap_judge_the_narrower_the_interval(agreement, most):
    random = Random(7)
    ratios = []
    for _ in range(40):
        result = two_judges(random, agreement)
        ratios.append(result.estimate.width / result.classical.width)
    assert sum(ratios) / len(ratios) <= most
    # The classical interval is too narrow for scores near a bound, and this one is not.
    assert max(ratios) <= 1.15
