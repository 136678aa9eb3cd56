"""The decision whether an answer may go out."""

import asyncio
import copy
import math
import threading

import pytest

from ragaliq import (
    CircuitBreaker,
    ConfigurationError,
    Evaluator,
    FaithfulnessEvaluator,
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
OTHERWISE = pytest.mark.parametrize("otherwise", ["pass", "block"])


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


@BOTH
def test_an_answer_at_its_threshold_passes_and_one_below_does_not(guard_of, mode):
    guard = guard_of()
    result = check(guard, GOOD, mode)
    assert (result.decision, result.passes, guard.step(result)) == ("passed", True, "pass")
    result = check(guard, BAD, mode)
    assert (result.decision, result.passes, guard.step(result)) == ("rejected", False, "fallback")
    assert [claim.claim for claim in result.failed_claims] == [f"{SECRET} is two."]
    assert result.scores == {"faithfulness": 0.5}
    assert guard.monitor.stats().outcomes == {"evaluated": 2}


def test_every_metric_counts_with_its_own_threshold(guard_of):
    judge = ScriptedJudge(relevance=0.1)
    assert check(guard_of(judge=judge, metrics=("faithfulness", "relevance")), GOOD).decision == (
        "rejected"
    )
    assert check(guard_of(metrics=[FaithfulnessEvaluator(0.5)]), BAD).decision == "passed"
    assert check(guard_of(metrics=[FaithfulnessEvaluator(0.51)]), BAD).decision == "rejected"


@pytest.mark.parametrize(("threshold", "decision"), [(0.3, "passed"), (0.1, "rejected")])
def test_a_metric_where_less_is_better_is_held_to_its_threshold_the_other_way_round(
    guard_of, threshold, decision
):
    class Toxicity(Evaluator):
        name = "toxicity"
        higher_is_better = False

        async def measure(self, test_case, judge):
            return self.result(judge, reasoning="", usage=JudgeUsage(), score=0.2)

    assert check(guard_of(metrics=[Toxicity(threshold)]), GOOD).decision == decision


@pytest.mark.parametrize("policy", [ScoringPolicy.LIVE, ScoringPolicy.PROMPTFOO])
@OTHERWISE
def test_a_judges_failure_is_not_a_low_score(guard_of, otherwise, policy):
    judge = ScriptedJudge(failures={"extract_statements": JudgeRefusalError("no")})
    guard = guard_of(judge=judge, on_failure=otherwise, action="annotate", policy=policy)
    result = check(guard, BAD)
    assert (result.decision, result.passes) == ("failed", otherwise == "pass")


def test_a_measured_failure_counts_beside_a_judges_failure(guard_of):
    judge = ScriptedJudge(failures={"evaluate_relevance": RuntimeError(SECRET)})
    guard = guard_of(judge=judge, metrics=("relevance", "faithfulness"))
    assert check(guard, BAD).decision == "rejected"
    assert check(guard, GOOD).decision == "failed"


@BOTH
def test_an_answer_too_long_to_be_checked_does_not_go_out(guard_of, mode):
    guard = guard_of(judge="local")
    for answer in ("I do not know. Mix bleach.\n" * 200_000, "[x](y)" * 900_000):
        longer = BAD.model_copy(update={"response": answer})
        result = check(guard, longer, mode)
        assert (result.decision, result.passes) == ("unscored", False)
        assert "too_long" in result.reason
        assert check(guard_of(judge="local", on_unscored="pass"), longer, mode).passes


def test_answers_too_long_to_be_checked_do_not_open_the_breaker(guard_of):
    guard = guard_of(judge="local", breaker=CircuitBreaker(failures=2))
    for at in range(3):
        longer = BAD.model_copy(update={"response": f"The lamp {at} is harmless. " * 50_000})
        assert check(guard, longer).decision == "unscored"
    assert check(guard, GOOD).decision == "passed"


def test_an_undefined_score_says_nothing_about_the_answer(guard_of):
    guard = guard_of(judge=ScriptedJudge(claims=[]), policy=ScoringPolicy.RAGAS)
    result = check(guard, GOOD)
    assert result.decision == "unscored"
    assert math.isnan(result.evaluation.results["faithfulness"].score)


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
    assert (result.decision, result.passes) == ("timeout", otherwise == "pass")
    release.set()
    assert guard.monitor.flush(5.0)
    assert guard.monitor.stats().outcomes == {"evaluated": 1}


def test_by_default_an_answer_goes_out_after_a_failure_or_timeout_and_not_unchecked(guard_of):
    class Slow(ScriptedJudge):
        async def extract_statements(self, query, response):
            await asyncio.sleep(1.0)
            return await super().extract_statements(query, response)

    failing = ScriptedJudge(failures={"extract_statements": JudgeRefusalError("no")})
    for judge, decision in ((failing, "failed"), (Slow(), "timeout")):
        result = check(guard_of(judge=judge, timeout=0.2), BAD)
        assert (result.decision, result.passes) == (decision, True)
    result = check(guard_of(), NO_CONTEXT)
    assert (result.decision, result.passes) == ("unscored", False)


def test_under_another_event_loop_than_asyncios_an_awaited_check_raises(guard_of):
    with pytest.raises(RuntimeError, match="event loop"):
        guard_of().acheck(GOOD).send(None)  # as trio drives a coroutine


@pytest.mark.parametrize("judge", ["local", ScriptedJudge(claims=[])])
@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I do not know.",
        "Sorry, the documents do not say how long refunds take.",
        "Hello! How can I help you today?",
    ],
)
@pytest.mark.parametrize("context", [[], ["Alpha is one."]])
def test_an_answer_that_asserts_nothing_goes_out(guard_of, judge, answer, context):
    case = RAGTestCase(query="q", context=context, response=answer)
    result = check(guard_of(judge=judge), case)
    assert (result.decision, result.passes) == ("no_claims", True)


@OTHERWISE
def test_what_asserts_something_unchecked_goes_out_only_where_the_guard_says_so(
    guard_of, otherwise
):
    code = "Alpha is one. Run this:\n\n```\nalpha --set two\nalpha --delete everything\n```\n"
    unchecked = {
        "no context": (guard_of(on_unscored=otherwise), NO_CONTEXT),
        "no claims found": (
            guard_of(judge=ScriptedJudge(claims=[]), on_unscored=otherwise),
            GOOD,
        ),
        "little of it is checked": (
            guard_of(judge="local", on_unscored=otherwise),
            RAGTestCase(query="q", context=["Alpha is one."], response=code),
        ),
    }
    for why, (guard, case) in unchecked.items():
        result = check(guard, case)
        assert (why, result.decision, result.passes) == (why, "unscored", otherwise == "pass")


def test_courtesies_addresses_and_questions_need_no_check(guard_of):
    answer = (
        "Alpha is one. Let me know if there is anything else that I can do for you! "
        "Would you like to hear more about it? https://example.com/handbook/chapters/alpha"
    )
    case = RAGTestCase(query="q", context=["Alpha is one."], response=answer)
    assert check(guard_of(judge="local"), case).decision == "passed"


def test_the_feedback_names_the_claims_that_failed(guard_of):
    result = check(guard_of(), BAD)
    assert f"- {SECRET} is two." in result.feedback
    assert "Alpha" not in result.feedback


def test_an_answer_beside_the_point_is_told_so(guard_of):
    guard = guard_of(judge=ScriptedJudge(relevance=0.0), metrics=["relevance"])
    assert "does not answer the question" in check(guard, GOOD).feedback


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
    assert check(guard, BAD, mode).passes
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
        {"action": "retry"},
        {"on_timeout": "wait"},
        {"on_failure": "retry"},
        {"on_unscored": "skip"},
        {"timeout": 0},
    ],
)
def test_a_wrong_setting_is_named(guard_of, wrong):
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        guard_of(**wrong)


def test_a_monitor_and_options_for_one_exclude_each_other(guard_of):
    monitor = Monitor(judge=ScriptedJudge())
    with pytest.raises(ConfigurationError, match="not both"):
        guard_of(monitor, sample_rate=0.5)
    assert guard_of(monitor).monitor is monitor
