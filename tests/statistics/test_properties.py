import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ragaliq.statistics as rs

SCORE = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.5, 1.0]))
CHANCE = st.floats(0.01, 1)
SCORES = st.lists(SCORE, min_size=1, max_size=40)
SAMPLE = st.lists(st.tuples(SCORE, CHANCE), min_size=1, max_size=40)


def columns(rows):
    return [list(column) for column in zip(*rows, strict=True)]


def is_sound(estimate):
    return 0.0 <= estimate.low <= estimate.value <= estimate.high <= 1.0


@given(SAMPLE)
def test_a_hajek_mean_is_the_weighted_mean_and_its_interval_is_sound(sample):
    estimate = rs.hajek_mean(*columns(sample))
    expected = math.fsum(y / p for y, p in sample) / math.fsum(1 / p for _, p in sample)
    assert estimate.value == pytest.approx(expected, abs=1e-12)
    assert is_sound(estimate)
    assert 1.0 - 1e-9 <= estimate.effective_n <= len(sample) + 1e-9


@given(SCORES, st.randoms(use_true_random=False))
def test_a_run_compared_with_itself_has_not_changed(scores, random):
    result = rs.paired_difference(scores, scores)
    assert result.difference.value == 0.0
    assert not result.is_clear
    assert (result.higher, result.lower) == (0, 0)
