"""The choices: which method where, and what few or equal values give."""

from random import Random

import pytest

import ragaliq.statistics as rs


@pytest.mark.parametrize(
    ("values", "method"),
    [
        ([1.0, 0.0, 1.0], "wilson"),
        ([1.0] * 5, "wilson"),
        ([0.5] * 5, "unseen_share"),
        ([0.2, 0.4, 0.9], "logit_t"),
        ([i / 30 for i in range(30)], "bca_bootstrap"),
        ([i / 2000 for i in range(2000)], "student_t"),
    ],
)
def test_the_interval_that_fits_is_chosen_and_named(values, method):
    assert rs.mean_estimate(values).method == method


def test_of_a_few_mostly_good_scores_the_interval_reaches_down_to_the_bad_ones_it_missed():
    # Nine answers in ten are right, the others by half: Student's t says at least 0.93 of these.
    assert rs.mean_estimate([1.0] * 11 + [0.8]).low < 0.87


def test_equal_scores_get_narrower_intervals_the_more_there_are():
    widths = [rs.mean_estimate([0.7] * n).width for n in (1, 5, 50, 500)]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 0.7
    assert widths[-1] < 0.01


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


def test_judges_that_agree_on_the_few_pairs_seen_are_not_taken_for_the_same():
    scores = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    result = rs.prediction_powered_mean(scores, scores, [1.0] * 500)
    assert result.weight == 1.0
    assert 0.1 < result.estimate.width < result.classical.width


def test_a_cheap_judge_without_signal_is_left_out():
    random = Random(3)
    expensive = [random.random() for _ in range(50)]
    result = rs.prediction_powered_mean(expensive, [0.5] * 50, [0.5] * 500)
    assert result.weight == 0.0
    assert result.estimate.value == pytest.approx(result.classical.value)


def test_kappa_of_full_agreement_keeps_an_interval_and_one_category_has_no_kappa():
    kappa = rs.cohen_kappa("SSNC", "SSNC")
    assert (kappa.value, kappa.high, kappa.method) == (1.0, 1.0, "wilson_agreement")
    assert kappa.low < 0.5
    assert rs.cohen_kappa("SSS", "SSS") is None


def test_classes_that_are_apart_keep_an_interval():
    estimate = rs.auroc_estimate([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
    assert (estimate.value, estimate.method) == (1.0, "wilson_smaller_class")
    assert estimate.low < 0.5


def test_clusters_are_drawn_whole():
    rows = [float(i % 2) for i in range(40)]

    def mean(drawn):
        return sum(drawn) / len(drawn)

    alone = rs.percentile_interval(rows, mean)
    together = rs.percentile_interval(rows, mean, clusters=[i % 2 for i in range(40)])
    assert alone[0] > 0.3
    assert together == (0.0, 1.0)  # two clusters: one may be drawn twice


def test_cross_validation_keeps_groups_together_and_never_fits_on_what_it_predicts():
    seen = []

    def fit(scores, labels):
        seen.append(set(scores))
        return lambda score: float(score in seen[-1])

    scores = [i / 100 for i in range(40)]
    labels = [i % 4 < 2 for i in range(40)]
    groups = [i // 2 for i in range(40)]
    assert set(rs.cross_validated(scores, labels, fit, groups=groups)) == {0.0}
    for kept in seen:
        assert all((scores[i] in kept) == (scores[i + 1] in kept) for i in range(0, 40, 2))
