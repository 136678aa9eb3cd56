import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ragaliq.statistics as rs

SCORE = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.5, 1.0]))
CHANCE = st.floats(0.01, 1)
SCORES = st.lists(SCORE, min_size=1, max_size=40)
SAMPLE = st.lists(st.tuples(SCORE, CHANCE), min_size=1, max_size=40)
LABELLED = st.lists(st.tuples(SCORE, st.integers(0, 1)), min_size=2, max_size=40).filter(
    lambda rows: len({label for _, label in rows}) == 2
)
CATEGORY = st.sampled_from("SCN")


def columns(rows):
    return [list(column) for column in zip(*rows, strict=True)]


def is_sound(estimate):
    return 0.0 <= estimate.low <= estimate.value <= estimate.high <= 1.0


@given(SCORES)
def test_an_interval_lies_around_its_mean_within_the_bounds(scores):
    estimate = rs.mean_estimate(scores, resamples=100)
    assert estimate.low - 1e-12 <= estimate.value <= estimate.high + 1e-12
    assert estimate.low >= 0.0
    assert estimate.high <= 1.0
    assert estimate.width > 0.0
    assert rs.mean_estimate(scores[::-1], resamples=100).value == estimate.value


@given(SAMPLE)
def test_a_hajek_mean_is_the_weighted_mean_and_its_interval_is_sound(sample):
    estimate = rs.hajek_mean(*columns(sample))
    expected = math.fsum(y / p for y, p in sample) / math.fsum(1 / p for _, p in sample)
    assert estimate.value == pytest.approx(expected, abs=1e-12)
    assert is_sound(estimate)
    assert 1.0 - 1e-9 <= estimate.effective_n <= len(sample) + 1e-9


@given(st.lists(st.tuples(SCORE, SCORE, CHANCE), min_size=1, max_size=30), SCORES)
def test_a_prediction_powered_estimate_is_sound(rows, unlabelled):
    expensive, cheap, chances = columns(rows)
    result = rs.prediction_powered_mean(expensive, cheap, unlabelled, probabilities=chances)
    assert 0.0 <= result.weight <= 1.0
    assert result.estimate.low - 1e-12 <= result.estimate.value <= result.estimate.high + 1e-12
    classical = rs.hajek_mean(expensive, chances)
    assert result.classical == classical
    constant = [0.5] * len(unlabelled)
    none = rs.prediction_powered_mean(expensive, [0.5] * len(rows), constant, probabilities=chances)
    assert none.estimate.value == pytest.approx(classical.value)


@given(LABELLED)
def test_auroc_is_the_share_of_pairs_ranked_right(rows):
    scores, labels = columns(rows)
    above = [s for s, label in rows if label]
    below = [s for s, label in rows if not label]
    wins = sum((a > b) + 0.5 * (a == b) for a in above for b in below)
    area = rs.auroc(scores, labels)
    assert area == pytest.approx(wins / len(above) / len(below))
    assert rs.auroc([-s for s in scores], labels) == pytest.approx(1 - area)
    assert rs.auroc([s / 2 + 1 for s in scores], labels) == pytest.approx(area, abs=1e-6) or len(
        {s / 2 + 1 for s in scores}
    ) < len(set(scores))
    assert is_sound(rs.auroc_estimate(scores, labels, resamples=100))


@given(LABELLED)
def test_the_abstention_curve_ends_with_everything_decided(rows):
    confidences, right = columns(rows)
    curve = rs.risk_coverage(confidences, right)
    assert curve[-1].coverage == 1.0
    assert curve[-1].risk == pytest.approx(1 - sum(right) / len(right))
    assert [p.coverage for p in curve] == sorted({p.coverage for p in curve})
    assert curve == rs.risk_coverage(*columns(sorted(rows)))


@given(LABELLED, st.integers(1, 12))
def test_bins_hold_every_item_once_in_any_order(rows, bins):
    table = rs.reliability_table(*columns(rows), bins=bins)
    assert sum(row.n for row in table) == len(rows)
    assert len(table) <= bins
    assert all(row.low - 1e-12 <= row.confidence <= row.high + 1e-12 for row in table)
    assert table == rs.reliability_table(*columns(rows[::-1]), bins=bins)
    assert 0.0 <= rs.expected_calibration_error(*columns(rows), bins=bins) <= 1.0


@given(LABELLED)
def test_an_isotonic_curve_rises_and_is_nearer_to_the_labels_than_any_one_level(rows):
    curve = rs.fit_isotonic(*columns(rows))
    fitted = [curve(score) for score, _ in sorted(rows)]
    assert fitted == sorted(fitted)
    mean = sum(label for _, label in rows) / len(rows)
    ours = math.fsum((curve(s) - label) ** 2 for s, label in rows)
    assert ours <= math.fsum((mean - label) ** 2 for _, label in rows) + 1e-9


@given(LABELLED)
def test_platt_scaling_gives_probabilities_in_the_order_of_the_scores(rows):
    curve = rs.fit_platt(*columns(rows))
    fitted = [curve(score) for score, _ in sorted(rows, reverse=curve.slope < 0)]
    assert all(0.0 <= p <= 1.0 for p in fitted)
    assert fitted == sorted(fitted)


@given(st.lists(st.tuples(CATEGORY, CATEGORY), min_size=1, max_size=40))
def test_agreement_does_not_depend_on_who_is_first_or_on_the_order(rows):
    first, second = columns(rows)
    kappa, swapped = rs.cohen_kappa(first, second), rs.cohen_kappa(second, first)
    if kappa is None:
        assert swapped is None
        assert len({*first, *second}) == 1
        return
    assert kappa.value == pytest.approx(swapped.value)
    assert kappa.interval == pytest.approx(swapped.interval)
    assert kappa.low <= kappa.value <= kappa.high
    table = rs.confusion(first, second)
    assert sum(table.counts.values()) == len(rows)
    assert 0.0 <= table.macro_f1 <= 1.0
    assert 0.0 <= table.balanced_accuracy <= 1.0


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=60))
def test_mcnemar_is_the_binomial_test_of_the_items_they_differ_in(rows):
    test = rs.mcnemar(*columns(rows))
    n, least = test.only_first + test.only_second, min(test.only_first, test.only_second)
    tail = sum(math.comb(n, k) for k in range(least + 1)) / 2**n
    assert test.exact_p == pytest.approx(min(1.0, 2 * tail))
    assert test.mid_p <= test.exact_p + 1e-12


@given(SCORES, st.randoms(use_true_random=False))
def test_a_run_compared_with_itself_has_not_changed(scores, random):
    result = rs.paired_difference(scores, scores)
    assert result.difference.value == 0.0
    assert not result.is_clear
    assert (result.higher, result.lower, result.equal) == (0, 0, len(scores))
