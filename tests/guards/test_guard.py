"""The decision whether an answer may go out."""

import asyncio
import copy
import math
import threading

import pytest

from ragaliq import (
    ConfigurationError,
    Evaluator,
    Guard,
    GuardRejected,
    JudgeRefusalError,
    JudgeUsage,
    Monitor,
    RAGTestCase,
    ScoringPolicy,
    suppress,
)
from ragaliq.testing import ScriptedJudge

SECRET = "Zanzibar"
GOOD = RAGTestCase(query="q", context=["Alpha is one."], response="Alpha is one.")
BAD = RAGTestCase(query="q", context=["Alpha is one."], response=f"Alpha is one. {SECRET} is two.")
NO_CONTEXT = RAGTestCase(query="q", context=[], response="Alpha is one.")
BOTH = pytest.mark.parametrize("mode", ["sync", "async"])
OTHERWISE = pytest.mark.parametrize("otherwise", ["pass", "fallback", "raise"])


@pytest.fixture
def guard_of():
    made = []

    def build(monitor=None, **options):
        if monitor is None:
            options.setdefault("judge", ScriptedJudge())
        made.append(Guard(monitor, **options))
        return made[-1]

    yield build
    for guard in made:
        guard.monitor.close(1.0)


def check(guard, case, mode="sync"):
    return guard.check(case) if mode == "sync" else asyncio.run(guard.acheck(case))


def step_of(guard, result):
    try:
        return guard.step(result)
    except GuardRejected:
        return "raise"


@BOTH
def test_an_answer_at_its_threshold_passes_and_one_below_does_not(guard_of, mode):
    guard = guard_of()
    assert check(guard, GOOD, mode).decision == "passed"
    result = check(guard, BAD, mode)
    assert (result.decision, guard.step(result)) == ("rejected", "fallback")
    assert [claim.claim for claim in result.failed_claims] == [f"{SECRET} is two."]
    assert result.scores == {"faithfulness": 0.5}
    assert guard.monitor.stats().outcomes == {"evaluated": 2}


def test_thresholds_choose_the_metrics_that_count(guard_of):
    judge = ScriptedJudge(relevance=0.1)
    metrics = ("faithfulness", "relevance")
    assert check(guard_of(judge=judge, metrics=metrics), GOOD).decision == "rejected"
    strict = guard_of(judge=judge, metrics=metrics, thresholds={"faithfulness": 0.5})
    assert check(strict, GOOD).decision == "passed"
    assert check(strict, BAD).decision == "passed"
    strict = guard_of(judge=judge, metrics=metrics, thresholds={"faithfulness": 0.51})
    assert check(strict, BAD).decision == "rejected"


def test_a_metric_where_less_is_better_is_held_to_its_threshold_the_other_way_round(guard_of):
    class Toxicity(Evaluator):
        name = "toxicity"
        higher_is_better = False

        async def measure(self, test_case, judge):
            return self.result(judge, reasoning="", usage=JudgeUsage(), score=0.2)

    guard = guard_of(metrics=[Toxicity], thresholds={"toxicity": 0.3})
    assert check(guard, GOOD).decision == "passed"
    guard = guard_of(metrics=[Toxicity], thresholds={"toxicity": 0.1})
    assert check(guard, GOOD).decision == "rejected"


@pytest.mark.parametrize("policy", [ScoringPolicy.LIVE, ScoringPolicy.PROMPTFOO])
@OTHERWISE
def test_a_judges_failure_is_not_a_low_score(guard_of, otherwise, policy):
    judge = ScriptedJudge(failures={"extract_statements": JudgeRefusalError("no")})
    guard = guard_of(judge=judge, on_failure=otherwise, action="annotate", policy=policy)
    result = check(guard, BAD)
    assert result.decision == "failed"
    assert step_of(guard, result) == otherwise


def test_a_measured_failure_counts_beside_a_judges_failure(guard_of):
    judge = ScriptedJudge(failures={"evaluate_relevance": RuntimeError(SECRET)})
    guard = guard_of(judge=judge, metrics=("relevance", "faithfulness"))
    assert check(guard, BAD).decision == "rejected"
    assert check(guard, GOOD).decision == "failed"


def test_an_undefined_score_says_nothing_about_the_answer(guard_of):
    guard = guard_of(judge=ScriptedJudge(claims=[]), policy=ScoringPolicy.RAGAS)
    result = check(guard, GOOD)
    assert result.decision == "unscored"
    assert math.isnan(result.live.results["faithfulness"].score)


@BOTH
@OTHERWISE
def test_at_the_limit_it_does_as_told_and_the_run_is_counted_in_the_background(
    guard_of, otherwise, mode
):
    release = threading.Event()

    class Waiting(ScriptedJudge):
        async def extract_statements(self, query, response):
            await asyncio.to_thread(release.wait, 30)
            return await super().extract_statements(query, response)

    guard = guard_of(judge=Waiting(), timeout=0.01, on_timeout=otherwise)
    result = check(guard, BAD, mode)
    assert result.decision == "timeout"
    assert step_of(guard, result) == otherwise
    release.set()
    assert guard.monitor.flush(5.0)
    assert guard.monitor.stats().outcomes == {"evaluated": 1}


def test_an_answer_without_context_or_claims_is_left_alone_unless_told_otherwise(guard_of):
    assert check(guard_of(), NO_CONTEXT).decision == "unscored"
    assert check(guard_of(judge=ScriptedJudge(claims=[])), GOOD).decision == "unscored"
    assert check(guard_of(on_no_context="reject"), NO_CONTEXT).decision == "rejected"
    assert check(guard_of(on_no_context="reject"), GOOD).decision == "passed"


def test_it_retries_as_often_as_told_and_then_does_the_other_thing(guard_of):
    guard = guard_of(action="retry", max_retries=2, then="annotate")
    result = check(guard, BAD)
    steps = [guard.step(result, attempt=attempt) for attempt in range(3)]
    assert steps == ["retry", "retry", "annotate"]


def test_the_feedback_names_the_claims_that_failed_and_can_be_replaced(guard_of):
    guard = guard_of()
    result = check(guard, BAD)
    assert f"- {SECRET} is two." in guard.feedback(result)
    assert "Alpha" not in guard.feedback(result)
    guard = guard_of(feedback=lambda result: f"{len(result.failed_claims)} wrong")
    assert guard.feedback(result) == "1 wrong"


def test_an_answer_beside_the_point_is_told_so(guard_of):
    guard = guard_of(judge=ScriptedJudge(relevance=0.0), metrics=["relevance"])
    assert "does not answer the question" in guard.feedback(check(guard, GOOD))


def test_the_error_carries_the_result_and_quotes_nothing(guard_of):
    guard = guard_of(action="raise")
    with pytest.raises(GuardRejected) as caught:
        guard.step(check(guard, BAD))
    assert caught.value.result.failed_claims
    assert SECRET not in str(caught.value)
    assert SECRET not in str(caught.value.result.summary)
    assert "faithfulness 0.5 is below 0.7 (1 of 2 claims not supported)" in str(caught.value)


@BOTH
def test_it_is_off_inside_suppress_and_with_a_disabled_monitor(guard_of, mode):
    with suppress():
        assert check(guard_of(), BAD, mode).decision == "off"
    guard = guard_of(enabled=False, action="raise")
    assert guard.step(check(guard, BAD, mode)) == "pass"
    assert guard.monitor.stats().started == 0


def test_a_closed_monitor_is_a_failure_not_an_error(guard_of):
    guard = guard_of()
    guard.monitor.close()
    result = check(guard, BAD)
    assert (result.decision, result.reason) == ("failed", "the run was not evaluated: shutdown")


def test_a_copy_is_the_same_guard(guard_of):
    guard = guard_of()
    assert copy.deepcopy([guard])[0] is guard


@pytest.mark.parametrize(
    "wrong",
    [
        {"action": "ignore"},
        {"then": "retry"},
        {"on_timeout": "wait"},
        {"on_failure": "retry"},
        {"on_no_context": "skip"},
        {"timeout": 0},
        {"timeout": "10 s"},
        {"max_retries": -1},
        {"thresholds": {"relevance": 0.5}},
        {"thresholds": {"faithfulness": 1.5}},
        {"thresholds": {}},
    ],
)
def test_a_wrong_setting_is_named(guard_of, wrong):
    with pytest.raises(ConfigurationError, match=next(iter(wrong)).rstrip("s")):
        guard_of(**wrong)


def test_a_monitor_and_options_for_one_exclude_each_other(guard_of):
    monitor = Monitor(judge=ScriptedJudge())
    with pytest.raises(ConfigurationError, match="not both"):
        guard_of(monitor, sample_rate=0.5)
    assert guard_of(monitor).monitor is monitor
