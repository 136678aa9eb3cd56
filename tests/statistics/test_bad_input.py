import math

import pytest

import ragaliq.statistics as rs
from ragaliq import ConfigurationError, DatasetError

NUMBERS = {
    "mean_estimate": rs.mean_estimate,
    "hajek_mean": lambda v: rs.hajek_mean(v, [0.5] * len(v)),
    "prediction_powered_mean": lambda v: rs.prediction_powered_mean(v, v, []),
    "auroc": lambda v: rs.auroc(v, [1, 0][: len(v)]),
    "risk_coverage": lambda v: rs.risk_coverage(v, [1, 0][: len(v)]),
    "brier_score": lambda v: rs.brier_score(v, [1, 0][: len(v)]),
    "fit_platt": lambda v: rs.fit_platt(v, [1, 0][: len(v)]),
    "fit_isotonic": lambda v: rs.fit_isotonic(v, [1, 0][: len(v)]),
    "paired_difference": lambda v: rs.paired_difference(v, v),
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize(
    "values", [[], [0.5, math.nan], [0.5, math.inf], [0.5, "0.5"], [0.5, None]]
)
def test_values_that_are_no_numbers_are_refused(name, values):
    with pytest.raises(DatasetError):
        NUMBERS[name](values)


@pytest.mark.parametrize(
    ("chance", "reason"),
    [(0.0, "the chance"), (-0.1, "the chance"), (1.01, "the chance"), (math.nan, "exclude")],
)
def test_an_inclusion_probability_outside_its_range_is_refused(chance, reason):
    with pytest.raises(DatasetError, match=rf"probabilities\[1\] is .*{reason}"):
        rs.hajek_mean([0.5, 0.5], [0.5, chance])


def test_a_score_outside_the_bounds_is_named_by_its_place():
    with pytest.raises(DatasetError, match=r"values\[1\] is 1.5"):
        rs.mean_estimate([0.5, 1.5])


@pytest.mark.parametrize(
    "call",
    [
        lambda: rs.hajek_mean([0.5], [0.5, 0.5]),
        lambda: rs.auroc([0.5], [0, 1]),
        lambda: rs.confusion(["a"], ["a", "b"]),
        lambda: rs.cohen_kappa(["a"], ["a", "b"]),
        lambda: rs.mcnemar([1], [1, 0]),
        lambda: rs.brier_score([0.5], [0, 1]),
        lambda: rs.paired_difference([0.5], [0.5, 0.5]),
        lambda: rs.prediction_powered_mean([0.5], [0.5, 0.5], []),
        lambda: rs.percentile_interval([1, 2], len, clusters=["a"]),
        lambda: rs.cross_validated([0.1, 0.9], [0, 1], rs.fit_platt, folds=2, groups=[1]),
    ],
)
def test_lengths_that_differ_are_refused(call):
    with pytest.raises(DatasetError, match="differ in length"):
        call()


@pytest.mark.parametrize("call", [rs.auroc, rs.fit_platt, rs.fit_isotonic])
def test_one_class_only_is_refused(call):
    with pytest.raises(DatasetError, match="all are the same"):
        call([0.1, 0.9], [1, 1])


@pytest.mark.parametrize(
    "call",
    [
        lambda: rs.mean_estimate([0.1, 0.5], resamples=10),
        lambda: rs.wilson(0.5, n=4, confidence=1.0),
        lambda: rs.expected_calibration_error([0.5], [1], bins=0),
        lambda: rs.cross_validated([0.1, 0.9], [0, 1], rs.fit_platt, folds=1),
        lambda: rs.cross_validated([0.1, 0.9], [0, 1], rs.fit_platt, folds=3),
        lambda: rs.cross_validated([0.1, 0.2, 0.9], [0, 0, 1], rs.fit_platt, folds=3),
    ],
)
def test_settings_out_of_range_are_refused(call):
    with pytest.raises(ConfigurationError):
        call()


def test_a_figure_that_resamples_cannot_define_is_refused_rather_than_guessed():
    with pytest.raises(DatasetError, match="not defined"):
        rs.percentile_interval([1, 2], lambda rows: None)
