"""The choices: which method where, and what few or equal values give."""

import pytest

import ragaliq.statistics as rs


def mean(values):
    return rs.hajek_mean(values, [1.0] * len(values))


@pytest.mark.parametrize(
    ("values", "method"),
    [
        ([1.0, 0.0, 1.0], "wilson"),
        ([1.0] * 5, "wilson"),
        ([0.5] * 5, "unseen_share"),
        ([0.2, 0.4, 0.9], "logit_t"),
        ([i / 2000 for i in range(2000)], "logit_t"),
    ],
)
def test_the_interval_that_fits_is_chosen_and_named(values, method):
    assert mean(values).method == method


def test_of_a_few_mostly_good_scores_the_interval_reaches_down_to_the_bad_ones_it_missed():
    # Nine answers in ten are right, the others by half: Student's t says at least 0.93 of these.
    assert mean([1.0] * 11 + [0.8]).low < 0.87


def test_equal_scores_get_narrower_intervals_the_more_there_are():
    widths = [mean([0.7] * n).width for n in (1, 5, 50, 500)]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 0.7
    assert widths[-1] < 0.01


def test_a_paired_difference_weights_cases_by_their_chances():
    first, second = [0.5, 0.5, 0.5, 0.5], [0.6, 0.7, 0.5, 0.1]
    plain = rs.paired_difference(first, second)
    rare = rs.paired_difference(first, second, [1.0, 1.0, 1.0, 0.1])
    assert plain.difference.value == pytest.approx(-0.025)
    assert rare.difference.value == pytest.approx((0.1 + 0.2 - 4.0) / 13.0)
    assert (plain.higher, plain.lower) == (2, 1)


def test_few_or_equal_samples_leave_a_wide_interval():
    assert rs.hajek_mean([1.0], [0.01]).interval == pytest.approx((0.2065, 1.0), abs=1e-3)
    assert rs.hajek_mean([1.0] * 4, [0.01] * 4).low < 0.6
    assert rs.hajek_mean([0.9, 0.8], [0.1, 0.1]).width > 0.4


def test_the_interval_of_a_high_mean_reaches_farther_towards_the_scores_it_may_have_missed():
    estimate = rs.hajek_mean([1.0] * 97 + [0.5] * 3, [0.1] * 100)

    assert estimate.value - estimate.low > 2.0 * (estimate.high - estimate.value)
    assert estimate.high < 1.0


def test_one_heavy_sample_counts_as_little_more_than_one():
    estimate = rs.hajek_mean([1.0, 0.2, 0.4, 0.9], [0.001, 1.0, 1.0, 1.0])
    assert estimate.effective_n == pytest.approx(1.006, abs=1e-3)
    assert estimate.low < 0.8


def test_even_a_census_is_not_certain_of_the_long_run():
    assert rs.hajek_mean([0.2, 0.9, 0.6], [1.0] * 3).width > 0.5
