"""Tests that are asked after every score, and estimates from a sample of a sample."""

import math
from random import Random

import pytest

from ragaliq.errors import ConfigurationError
from ragaliq.lab.prediction_powered import prediction_powered_mean
from ragaliq.lab.sequential import ShiftTest, confidence_sequence
from ragaliq.statistics import hajek_mean
from ragaliq.statistics.sampling import WeightedSums


def sums_of(scores, weight=1.0):
    sums = WeightedSums()
    for score in scores:
        sums.add(score, 1.0 / weight)
    return sums


def scores_around(mean, count, random):
    """Shares of four claims, so that the mean is as wanted."""
    return [sum(random.random() < mean for _ in range(4)) / 4 for _ in range(count)]


def first_shift(test, scores, weight=1.0):
    """The number of scores until the test sees a move, and the move."""
    for number, score in enumerate(scores, 1):
        test.add(score, weight)
        if shift := test.shift():
            return number, shift
    return None, None


@pytest.mark.parametrize(
    ("before", "after", "direction"), [(0.9, 0.7, "fell"), (0.6, 0.85, "rose")]
)
@pytest.mark.parametrize("weight", [1.0, 4.0])
def test_a_moved_mean_is_seen_with_its_direction_and_size(before, after, direction, weight):
    random = Random(7)
    test = ShiftTest(sums_of(scores_around(before, 1000, random), weight), heaviest=weight)
    test.start()
    seen, shift = first_shift(test, scores_around(after, 1000, random), weight)
    assert seen < 200
    assert shift.direction == direction
    assert shift.difference.low <= after - before <= shift.difference.high
    assert (shift.difference.high < 0) is (direction == "fell")
    assert shift.now.low <= after <= shift.now.high


@pytest.mark.parametrize("after", [0.9, 0.89])
def test_scores_within_the_tolerance_raise_nothing(after):
    random = Random(8)
    test = ShiftTest(sums_of(scores_around(0.9, 1000, random)))
    test.start()
    assert first_shift(test, scores_around(after, 3000, random)) == (None, None)


def test_a_reference_of_full_marks_still_sees_a_fall_and_can_see_no_rise():
    test = ShiftTest(sums_of([1.0] * 500))
    test.start()
    assert first_shift(test, [1.0] * 500) == (None, None)
    assert first_shift(test, [0.0, 1.0] * 100)[1].direction == "fell"


def test_no_more_bets_begin_than_were_foreseen():
    test = ShiftTest(sums_of([0.5, 0.6] * 50), starts=2)
    for _ in range(5):
        test.start()
    assert test.started == 2


@pytest.mark.parametrize("wrong", [{"alpha": 0.0}, {"starts": 0}, {"tolerance": 1.0}])
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(ConfigurationError):
        ShiftTest(sums_of([0.5]), **wrong)


def test_a_confidence_sequence_is_that_of_its_theorem():
    sums = sums_of([0.0, 1.0] * 50)
    estimate = confidence_sequence(sums)
    rho = (-2 * math.log(0.05) + math.log(-2 * math.log(0.05)) + 1) / 500
    reach = 0.5 * math.sqrt(
        2 * (100 * rho + 1) / (100**2 * rho) * math.log(math.sqrt(100 * rho + 1) / 0.05)
    )
    assert estimate.interval == pytest.approx((0.5 - reach, 0.5 + reach))


# Two phases: judged runs are a sample of the traffic, labelled ones a sample of the judged.

TRUTH, JUDGED, RUNS = [1.0, 0.5, 1.0, 0.0], [1.0, 0.5, 0.5, 0.0], [1.0, 2.0, 4.0, 2.0]
CHANCES, OTHERS, RUNS_OF_OTHERS = [0.5, 0.2, 0.5, 0.8], [1.0, 0.5, 0.0], [2.0, 1.0, 4.0]


def test_a_two_phase_estimate_is_the_one_worked_out_by_hand():
    found = prediction_powered_mean(
        TRUTH * 2,
        JUDGED * 2,
        OTHERS * 2,
        probabilities=CHANCES * 2,
        weights=RUNS * 2,
        unlabelled_weights=RUNS_OF_OTHERS * 2,
    )
    # The judge's mean over all runs: (1 + 1 + 2 + 0 + 2 + 0.5 + 0) / 16.
    assert found.cheap_mean == pytest.approx(6.5 / 16)
    # Labelled answers stand for runs / chance: 2, 10, 8 and 2.5 runs.
    mean, judged = (2 + 5 + 8) / 22.5, (2 + 5 + 4) / 22.5
    assert found.classical.value == pytest.approx(mean)
    assert 0.0 < found.weight < 1.0
    corrected = mean + found.weight * (6.5 / 16 - judged)
    assert found.estimate.value == pytest.approx(corrected)
    by_traffic = sum(
        runs**2 * (y - mean) ** 2 / p for y, runs, p in zip(TRUTH, RUNS, CHANCES, strict=True)
    )
    assert found.fixed_variance == pytest.approx(by_traffic / 22.5**2 / 2)


def test_runs_that_stand_for_one_each_change_nothing():
    plain = prediction_powered_mean(TRUTH, JUDGED, OTHERS, probabilities=CHANCES)
    ones = prediction_powered_mean(
        TRUTH,
        JUDGED,
        OTHERS,
        probabilities=CHANCES,
        weights=[1.0] * 4,
        unlabelled_weights=[1.0] * 3,
    )
    assert ones == plain


def test_the_scores_of_labels_alone_weigh_as_one_sample_of_both_chances():
    found = prediction_powered_mean(TRUTH, JUDGED, [], probabilities=CHANCES, weights=RUNS)
    both = [chance / runs for chance, runs in zip(CHANCES, RUNS, strict=True)]
    assert found.classical == hajek_mean(TRUTH, both)


def test_a_plan_says_how_many_labels_make_an_interval_so_narrow():
    random = Random(3)
    truth = scores_around(0.8, 2000, random)
    judged = [score if random.random() < 0.8 else random.random() for score in truth]

    def estimate(labels):
        return prediction_powered_mean(
            truth[:labels], judged[:labels], judged[labels:], probabilities=[labels / 2000] * labels
        )

    planned = estimate(100).labels_for(0.02)
    assert 0.015 < estimate(planned).estimate.width / 2 < 0.025
    assert estimate(100).labels_for(0.0001) is None
