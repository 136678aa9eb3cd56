import math

import pytest

import ragaliq.statistics as rs
from ragaliq import ConfigurationError, DatasetError

NUMBERS = {
    "hajek_mean": lambda v: rs.hajek_mean(v, [0.5] * len(v)),
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
        rs.hajek_mean([0.5, 1.5], [1.0, 1.0])


@pytest.mark.parametrize(
    "call",
    [
        lambda: rs.hajek_mean([0.5], [0.5, 0.5]),
        lambda: rs.paired_difference([0.5], [0.5, 0.5]),
        lambda: rs.paired_difference([0.5], [0.5], [0.5, 0.5]),
    ],
)
def test_lengths_that_differ_are_refused(call):
    with pytest.raises(DatasetError, match="differ in length"):
        call()


def test_a_confidence_out_of_range_is_refused():
    with pytest.raises(ConfigurationError):
        rs.wilson(0.5, n=4, confidence=1.0)
