"""Results added up: means, intervals, repeats, pipelines, time."""

import math
import random

import pytest

from ragaliq import Evaluation, RAGTestCase, RunInfo
from ragaliq.core.results import JudgeUsage, Status
from ragaliq.records import Summary
from ragaliq.records.record import run_id_of
from ragaliq.records.summary import SeriesKey
from ragaliq.reports.contents import bucket_width
from ragaliq.statistics import hajek_mean

DAY = 86400.0
FAITHFULNESS = SeriesKey("faithfulness")


@pytest.fixture
def summary_of(result_of):
    """`summary_of((score or None, what is known of the run), ...)`, one case each."""

    def make(*evaluations):
        summary = Summary()
        for number, (score, known) in enumerate(evaluations):
            status = Status.SCORED if score is not None else Status.JUDGE_TIMEOUT
            error = {} if score is not None else {"error_type": "JudgeTimeoutError"}
            case_id, repeat = known.get("case", (f"case-{number}", 0))
            run = RunInfo(
                run_id=run_id_of(case_id, repeat),
                **{name: value for name, value in known.items() if name != "case"},
            )
            results = {
                name: result_of(score, name=name, status=status, **error)
                for name in ("faithfulness", "relevance")
            }
            case = RAGTestCase(id=case_id, query="q", response="r", run=run)
            summary.add(Evaluation(case=case, results=results))
        return summary

    return make


def scored(scores, **known):
    return [(score, known) for score in scores]


def test_the_interval_is_that_of_the_statistics_module_in_whatever_order_results_come(summary_of):
    scores = [random.Random(1).random() for _ in range(50)]
    expected = hajek_mean(sorted(scores), [1.0] * len(scores))
    for order in (scores, scores[::-1]):
        found = summary_of(*scored(order)).metrics["faithfulness"]
        assert (found.mean, found.interval) == (expected.value, expected.interval)
        assert (found.interval_method, found.measured) == (expected.method, 50)


def test_runs_with_unequal_chances_count_for_those_they_stand_for(summary_of):
    rare = {"sampling_probability": 0.1}
    found = summary_of((0.2, {}), (0.9, rare), (0.8, rare)).metrics["faithfulness"]

    expected = hajek_mean([0.2, 0.9, 0.8], [1.0, 0.1, 0.1])
    assert found.mean == expected.value > 0.8


def test_a_metric_of_its_own_rate_has_its_own_weight(summary_of):
    rare = {
        "sampling_probability": 0.5,
        "metric_probabilities": {"faithfulness": 0.5, "relevance": 0.1},
    }
    found = summary_of((0.0, rare), (1.0, {})).metrics

    assert math.isclose(found["faithfulness"].mean, 1 / (2 + 1))
    assert math.isclose(found["relevance"].mean, 1 / (10 + 1))


def test_runs_chosen_by_feedback_are_counted_and_in_no_mean(summary_of):
    complaint = {"represents_traffic": False, "sampling_rules": ("tag", "feedback")}
    found = summary_of((0.0, complaint), (1.0, {}), (0.5, {}))

    assert found.without_weight == 1
    assert found.metrics["faithfulness"].mean == 0.75
    assert summary_of((0.25, complaint)).metrics["faithfulness"].mean is None


def test_failures_are_counted_and_in_no_mean(summary_of):
    summary = summary_of(*scored([0.5, None, None]))
    found = summary.metrics["faithfulness"]

    assert found.statuses == {"scored": 1, "judge_timeout": 2}
    assert (found.mean, found.measured, found.cases) == (0.5, 1, 3)
    assert found.errors == {"JudgeTimeoutError": 2}
    assert summary.errors == {"JudgeTimeoutError": 4}
    assert summary.failed_throughout == []
    assert summary_of((None, {})).failed_throughout == ["faithfulness", "relevance"]


def test_what_it_cost_is_added_up_by_pipeline(summary_of):
    found = summary_of((0.5, {"pipeline": "x"}), (0.5, {"pipeline": "y"}), (1.0, {"pipeline": "y"}))

    assert found.usage.requests == 6
    assert [(each.name, each.answers, each.requests) for each in found.pipelines] == [
        ("x", 1, 2),
        ("y", 2, 4),
    ]
    series = found.series[FAITHFULNESS]
    assert series.estimate(1).value == pytest.approx(0.75)
    assert sum(series.histogram(1)) == 2
    assert series.passed == 1


def test_a_price_that_is_not_known_is_in_no_sum(result_of):
    summary = Summary()
    unknown = result_of().model_copy(update={"usage": JudgeUsage(requests=1, cost_usd=None)})
    for result in (result_of(), unknown):
        case = RAGTestCase(query="q", response="r")
        summary.add(Evaluation(case=case, results={"faithfulness": result}))

    (pipeline,) = summary.pipelines
    assert (pipeline.cost, pipeline.unknown_costs) == (0.001, 1)
    assert summary.usage.cost_usd is None


def test_a_case_that_is_evaluated_several_times_counts_once_with_its_mean(summary_of):
    summary = summary_of(
        (1.0, {"case": ("a", 0)}), (0.8, {"case": ("a", 1)}), (0.2, {"case": ("b", 0)}),
        (None, {"case": ("b", 1)}), (None, {"case": ("c", 1)}), (None, {"case": ("c", 0)}),
    )  # fmt: skip
    found = summary.metrics["faithfulness"]

    assert summary.series[FAITHFULNESS].measured == 2
    assert found.statuses == {"scored": 2, "judge_timeout": 1}
    assert found.passed == 1
    assert found.spread == pytest.approx(0.1 * 2**0.5)
    assert found.unscored_repeats == {"judge_timeout": 1}
    assert (summary.cases, summary.records) == (3, 6)
    assert summary.pipelines[0].answers == 3


def test_cases_of_two_pipelines_are_never_one(summary_of):
    summary = summary_of(
        (1.0, {"case": ("a", 0), "pipeline": "x"}),
        (0.0, {"case": ("a", 1), "pipeline": "x"}),
        (0.4, {"case": ("a", 0), "pipeline": "y"}),
    )

    series = summary.series[FAITHFULNESS]
    assert [series.estimate(pipeline).value for pipeline in (0, 1)] == [0.5, 0.4]
    assert [pipeline.answers for pipeline in summary.pipelines] == [1, 1]


def test_runs_of_one_name_are_not_repeats(summary_of):
    summary = summary_of((1.0, {"case": ("a", 0)}), (0.4, {"case": ("a", 0)}))

    assert summary.metrics["faithfulness"].mean == 0.7
    assert summary.metrics["faithfulness"].spread is None
    assert summary.cases == 2


def test_judges_are_kept_apart_where_asked(result_of, record_of):
    summary = Summary(by_judge=True, max_series=1)
    for judge in ("a", "b", "a"):
        summary.add(record_of(results=[result_of().model_copy(update={"judge": judge})]))

    (series,) = summary.series.values()
    assert (series.key.judge, series.measured, summary.skipped) == ("a", 2, 1)


def test_a_trend_has_a_point_for_each_span_of_time_with_scores(record_of, result_of):
    summary = Summary()
    for score, time in ((0.2, 0.0), (0.4, 10.0), (1.0, 2.5 * DAY)):
        summary.add(record_of(results=[result_of(score)], created_at=time or 1e-9))

    points = summary.series[FAITHFULNESS].trend(DAY)

    found = [(start, mean.value, mean.n) for start, mean in points]
    assert found == [(0.0, pytest.approx(0.3), 2), (2 * DAY, 1.0, 1)]
    assert all(mean.low <= mean.value <= mean.high for _, mean in points)


@pytest.mark.parametrize("length", [600.0, DAY, 40 * DAY, 400 * DAY, 40_000 * DAY])
def test_a_trend_never_has_more_points_than_can_be_read(length):
    width = bucket_width(1e9, 1e9 + length)
    assert 1 < length / width <= 40


def test_each_score_falls_into_one_bin_and_one_belongs_to_the_last(summary_of):
    series = summary_of(*scored([0.0, 0.049, 0.05, 0.15, 0.999, 1.0])).series[FAITHFULNESS]
    bins = series.histogram()
    assert (bins[0], bins[1], bins[3], bins[19]) == (2, 1, 1, 2)
