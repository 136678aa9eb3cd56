import random

import pytest

from ragaliq.reports.columns import Series, SeriesKey
from ragaliq.reports.figures import bucket_width, estimate_of, histogram, trend
from ragaliq.statistics import hajek_mean, mean_estimate

DAY = 86400.0


@pytest.fixture
def series(metric_of):
    def make(scores, *, weights=None, times=None, pipelines=None):
        made = Series(SeriesKey("faithfulness", "j", None))
        for i, score in enumerate(scores):
            made.add(
                metric_of("faithfulness", score),
                time=times[i] if times else float(i),
                weight=weights[i] if weights else 1.0,
                pipeline=pipelines[i] if pipelines else 0,
            )
        return made

    return make


def test_the_interval_is_that_of_the_statistics_module(series):
    scores = [random.Random(1).random() for _ in range(50)]
    assert estimate_of(series(scores)) == mean_estimate(scores)


def test_runs_with_unequal_chances_count_for_those_they_stand_for(series):
    scores, weights = [0.2, 0.9, 0.8], [1.0, 10.0, 10.0]
    expected = hajek_mean(scores, [1 / weight for weight in weights], target="process")
    assert estimate_of(series(scores, weights=weights)) == expected
    assert expected.value > 0.8


def test_runs_that_stand_for_no_traffic_are_in_no_mean(series):
    found = estimate_of(series([0.5, 0.5, 0.0], weights=[1.0, 1.0, 0.0]))
    assert (found.value, found.n) == (0.5, 2)
    assert estimate_of(series([0.5], weights=[0.0])) is None


def test_failures_are_counted_and_in_no_mean(series):
    found = series([0.5, None, None])
    assert found.statuses_of() == {"scored": 1, "judge_timeout": 2}
    assert estimate_of(found).n == 1


def test_pipelines_have_figures_of_their_own(series):
    made = series([0.2, 0.8, 1.0], pipelines=[0, 1, 1])
    assert estimate_of(made, 1).value == pytest.approx(0.9)
    assert sum(histogram(made, 1)) == 2
    assert made.passed_of(0) == 0
    assert made.passed_of() == 2


def test_a_trend_has_a_point_for_each_span_with_scores(series):
    made = series([0.2, 0.4, 1.0], times=[0.0, 10.0, 2.5 * DAY])
    points = trend(made, DAY)
    assert [(point[0], point[1], point[4]) for point in points] == [(0, 0.3, 2), (172800, 1.0, 1)]
    assert all(low <= mean <= high for _, mean, low, high, _ in points)


@pytest.mark.parametrize("length", [600.0, DAY, 40 * DAY, 400 * DAY, 40_000 * DAY])
def test_a_trend_never_has_more_points_than_can_be_read(length):
    width = bucket_width(1e9, 1e9 + length)
    assert 1 < length / width <= 40


def test_a_few_minutes_are_no_trend():
    assert bucket_width(0.0, 120.0) is None


def test_each_score_falls_into_one_bin_and_one_belongs_to_the_last(series):
    bins = histogram(series([0.0, 0.049, 0.05, 0.15, 0.999, 1.0]))
    assert (bins[0], bins[1], bins[3], bins[19]) == (2, 1, 1, 2)
