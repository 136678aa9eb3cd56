from __future__ import annotations

from random import Random
from types import SimpleNamespace

import pytest

from ragaliq import ConfigurationError, DatasetError, EvaluationResult, RAGTestCase, RunInfo
from ragaliq.core.results import Evaluation
from ragaliq.live.estimate import OTHER_PIPELINES, TrafficEstimator, estimate_traffic
from ragaliq.live.two_judges import TwoJudgeEstimator, estimate_with_two_judges
from ragaliq.testing import ScriptedJudge

CASE = RAGTestCase(query="q", context=["c"], response="r")


def result(score, *, run_id="1", probability=1.0, status="scored", pipeline="p", metric="m"):
    outcome = EvaluationResult(
        evaluator_name=metric,
        score=score,
        passed=None if score is None else score >= 0.7,
        status=status,
    )
    run = RunInfo(run_id=run_id, pipeline=pipeline, sampling_probability=probability)
    return Evaluation(case=CASE, results={metric: outcome}, run=run, lag=0.0)


def test_the_mean_over_all_traffic_undoes_what_rules_sampled_more_often():
    bad = [result(0.0, probability=1.0) for _ in range(10)]
    good = [result(1.0, probability=0.1) for _ in range(9)]
    (estimate,) = estimate_traffic(bad + good)
    assert estimate.mean.value == pytest.approx(0.9)
    assert estimate.passing.value == pytest.approx(0.9)
    assert estimate.traffic == pytest.approx(100)
    assert estimate.sampled == 19
    assert estimate.mean.low < 0.9 < estimate.mean.high


def test_what_has_no_score_is_no_score_and_failures_say_nothing_of_the_traffic():
    results = [
        *(result(1.0, probability=0.5) for _ in range(3)),
        result(0.5, status="partial", probability=0.5),
        result(None, status="no_claims", probability=0.5),
        result(None, status="judge_error", probability=0.5),
        result(None, status="judge_timeout", probability=0.5),
    ]
    (estimate,) = estimate_traffic(results)
    assert estimate.mean.value == pytest.approx(3.5 / 4)
    assert estimate.scorable.value == pytest.approx(4 / 5)
    assert estimate.judge_failures == 2
    assert estimate.statuses == {
        "scored": 3,
        "partial": 1,
        "no_claims": 1,
        "judge_error": 1,
        "judge_timeout": 1,
    }
    assert estimate.sampled == sum(estimate.statuses.values()) == 7


def test_a_score_that_a_policy_made_up_is_not_in_the_mean():
    (estimate,) = estimate_traffic([result(1.0, status="no_claims"), result(float("nan"))])
    assert estimate.mean is None
    assert estimate.passing is None
    assert estimate.scorable.value == 0.0


def test_nothing_but_failures_gives_counts_and_no_figure():
    (estimate,) = estimate_traffic([result(None, status="judge_refused")])
    assert (estimate.mean, estimate.passing, estimate.scorable) == (None, None, None)
    assert estimate.judge_failures == 1


def test_a_metric_sampled_more_rarely_than_its_run_counts_with_its_own_probability():
    scores = {name: EvaluationResult(evaluator_name=name, score=0.5, passed=False) for name in "ab"}
    run = RunInfo(
        pipeline="p",
        sampling_probability=0.5,
        metric_probabilities={"a": 0.5, "b": 0.1},
        run_id="1",
    )
    a, b = estimate_traffic([SimpleNamespace(run=run, results=scores)])
    assert (a.traffic, b.traffic) == (pytest.approx(2), pytest.approx(10))


def test_a_run_chosen_for_its_feedback_is_counted_but_in_no_figure():
    scores = {"a": EvaluationResult(evaluator_name="a", score=0.0, passed=False)}
    run = RunInfo(pipeline="p", sampling_probability=1.0, represents_traffic=False, run_id="1")
    chosen = SimpleNamespace(run=run, results=scores)
    (estimate,) = estimate_traffic([result(1.0, metric="a"), chosen])
    assert (estimate.mean.value, estimate.sampled, estimate.left_out) == (1.0, 1, 1)
    (pair,) = estimate_with_two_judges([result(1.0, metric="a"), chosen], [chosen])
    assert (pair.powered, pair.cheap_only, pair.expensive_only) == (None, 1, 0)


def test_pipelines_beyond_the_bound_are_counted_together():
    estimator = TrafficEstimator(max_pipelines=2)
    for number in range(50):
        estimator.add(result(0.5, pipeline=f"p{number}"))
    found = {e.pipeline: e.sampled for e in estimator.estimates()}
    assert found == {"p0": 1, "p1": 1, OTHER_PIPELINES: 48}


def test_rows_of_a_sink_can_be_fed_too():
    estimator = TrafficEstimator()
    estimator.add_score(0.5, metric="m", passed=False, status="scored", probability=0.5)
    estimator.add_score(None, metric="m", status="judge_error")
    (estimate,) = estimator.estimates()
    assert (estimate.mean.value, estimate.sampled) == (0.5, 2)


@pytest.mark.parametrize(
    "wrong", [{"probability": 0.0}, {"probability": 1.5}, {"status": "odd"}, {"score": 1.5}]
)
def test_wrong_rows_are_refused_and_not_counted(wrong):
    estimator = TrafficEstimator()
    with pytest.raises(DatasetError):
        estimator.add_score(wrong.pop("score", 0.5), metric="m", **wrong)
    assert estimator.estimates() == []


def test_a_monitor_feeds_it(monitor_of, case):
    estimator = TrafficEstimator()
    monitor = monitor_of(
        judge=ScriptedJudge(verdicts="SUPPORTED"),
        evaluators=["faithfulness"],
        on_result=estimator.add,
    )
    for number in range(3):
        monitor.submit(case, run_id=str(number), pipeline="shop")
    assert monitor.flush(10)
    (estimate,) = estimator.estimates()
    assert (estimate.pipeline, estimate.metric, estimate.mean.value) == ("shop", "faithfulness", 1)
    assert estimate.mean.interval == (1.0, 1.0)  # all of the traffic was scored
    assert estimator.estimates(target="process")[0].mean.low < 0.5


def two_judges(seed=1, *, runs=600, rate=0.2):
    random = Random(seed)
    cheap, dear, truth = [], [], []
    for number in range(runs):
        score = random.choices([0.0, 0.5, 1.0], [0.1, 0.2, 0.7])[0]
        truth.append(score)
        other = score if random.random() < 0.9 else random.choice([0.0, 0.5, 1.0])
        cheap.append(result(other, run_id=str(number)))
        if random.random() < rate:
            dear.append(result(score, run_id=str(number), probability=rate))
    return cheap, dear, sum(truth) / runs


def test_two_judges_give_a_narrower_interval_at_the_same_cost():
    cheap, dear, truth = two_judges()
    (estimate,) = estimate_with_two_judges(cheap, dear)
    assert estimate.powered.estimate.method == "ppi++"
    assert estimate.powered.estimate.width < 0.8 * estimate.powered.classical.width
    assert estimate.powered.estimate.low <= truth <= estimate.powered.estimate.high
    assert estimate.powered.labelled == len(dear)
    assert estimate.cheap_only == 600 - len(dear)
    assert (estimate.expensive_only, estimate.expensive_failures) == (0, 0)


def test_results_are_matched_in_whichever_order_they_come():
    cheap, dear, _ = two_judges(runs=100)
    together = TwoJudgeEstimator()
    for one in cheap:
        together.add_cheap(one)
    for one in dear:
        together.add_expensive(one)
    (here,), (there,) = together.estimates(), estimate_with_two_judges(cheap, dear)
    assert here.powered.estimate.value == pytest.approx(there.powered.estimate.value)
    assert here.powered.estimate.interval == pytest.approx(there.powered.estimate.interval)


def test_scores_given_up_while_waiting_are_counted():
    estimator = TwoJudgeEstimator(max_waiting=10)
    for number in range(50):
        estimator.add_cheap(result(0.5, run_id=str(number)))
    for number in range(50):
        estimator.add_expensive(result(0.5, run_id=str(number), probability=0.9))
    (estimate,) = estimator.estimates()
    assert estimate.powered.labelled == 10
    assert estimate.expensive_only == estimate.cheap_only == 40


def test_a_failed_expensive_judge_leaves_the_run_to_the_cheap_one():
    cheap = [result(0.5, run_id="1"), result(1.0, run_id="2")]
    dear = [result(None, status="judge_error", run_id="1", probability=0.5)]
    (estimate,) = estimate_with_two_judges(cheap, dear)
    assert (estimate.powered, estimate.expensive_failures) == (None, 1)
    assert (estimate.cheap_only, estimate.expensive_only) == (2, 0)


def test_a_run_without_an_id_cannot_be_matched():
    with pytest.raises(ConfigurationError, match="without an id"):
        TwoJudgeEstimator().add_cheap(result(0.5, run_id=""))


@pytest.mark.parametrize("make", [TrafficEstimator, TwoJudgeEstimator])
def test_wrong_settings_are_refused(make):
    with pytest.raises(ConfigurationError, match="max_pipelines"):
        make(max_pipelines=0)
    with pytest.raises(ConfigurationError, match="target"):
        make().estimates(target="week")
