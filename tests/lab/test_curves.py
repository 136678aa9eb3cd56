"""Curves fitted to labels, and how far confidences are probabilities."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragaliq.lab.curves import (
    brier_score,
    cross_validated,
    expected_calibration_error,
    fit_isotonic,
    fit_platt,
    reliability_table,
)

SCORES = [0.1, 0.4, 0.35, 0.8, 0.8, 0.2, 0.9, 0.4, 0.55, 0.6, 0.15, 0.7]
LABELS = [0, 0, 1, 1, 0, 0, 1, 1, 0, 1, 0, 1]
SCORE = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.5, 1.0]))
LABELLED = st.lists(st.tuples(SCORE, st.integers(0, 1)), min_size=2, max_size=40).filter(
    lambda rows: len({label for _, label in rows}) == 2
)


def columns(rows):
    return [list(column) for column in zip(*rows, strict=True)]


def test_the_brier_score_is_the_mean_squared_distance():
    pairs = zip(SCORES, LABELS, strict=True)
    expected = sum((p - label) ** 2 for p, label in pairs) / len(LABELS)
    assert brier_score(SCORES, LABELS) == pytest.approx(expected)


@given(LABELLED)
def test_bins_hold_every_item_once_in_any_order(rows):
    table = reliability_table(*columns(rows))
    assert sum(row.n for row in table) == len(rows)
    assert len(table) <= 10
    assert all(row.low - 1e-12 <= row.confidence <= row.high + 1e-12 for row in table)
    assert table == reliability_table(*columns(rows[::-1]))
    assert 0.0 <= expected_calibration_error(*columns(rows)) <= 1.0


def test_platt_scaling_uses_softened_labels():
    platt = fit_platt(SCORES, LABELS)
    # sklearn.calibration._SigmoidCalibration().fit(scores, labels): -a_, -b_
    assert platt.slope == pytest.approx(3.1435112262897458, abs=1e-4)
    assert platt.intercept == pytest.approx(-1.5590199590477223, abs=1e-4)
    apart = fit_platt([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
    assert apart(0.9) == pytest.approx(0.75, abs=0.05)  # (2 + 1) / (2 + 2): never certain


@settings(max_examples=30, deadline=None)
@given(LABELLED)
def test_an_isotonic_curve_rises_and_is_nearer_to_the_labels_than_any_one_level(rows):
    curve = fit_isotonic(*columns(rows))
    fitted = [curve(score) for score, _ in sorted(rows)]
    assert fitted == sorted(fitted)
    mean = sum(label for _, label in rows) / len(rows)
    ours = math.fsum((curve(s) - label) ** 2 for s, label in rows)
    assert ours <= math.fsum((mean - label) ** 2 for _, label in rows) + 1e-9


def test_isotonic_regression():
    curve = fit_isotonic(SCORES, LABELS)
    # sklearn.isotonic.IsotonicRegression(out_of_bounds="clip").fit(scores, labels).predict(places)
    places = [0, 0.1, 0.2, 0.37, 0.4, 0.5, 0.58, 0.6, 0.75, 0.8, 0.85, 1]
    expected = [0, 0, 0, 0.5, 0.5, 0.5, 0.65, 0.75, 0.75, 0.75, 0.875, 1]
    assert [curve(x) for x in places] == pytest.approx(expected)


def test_cross_validation_keeps_groups_together_and_never_fits_on_what_it_predicts():
    seen = []

    def fit(scores, labels):
        seen.append(set(scores))
        return lambda score: float(score in seen[-1])

    scores = [i / 100 for i in range(40)]
    labels = [i % 4 < 2 for i in range(40)]
    groups = [i // 2 for i in range(40)]
    assert set(cross_validated(scores, labels, fit, groups=groups)) == {0.0}
    assert set(cross_validated(scores, labels, fit, groups=None)) == {0.0}
    for kept in seen[:5]:
        assert all((scores[i] in kept) == (scores[i + 1] in kept) for i in range(0, 40, 2))
