"""An application's own way to decline is a status, not a score."""

import json

import pytest

from ragaliq import (
    ChatModelJudge,
    JudgeUsage,
    LocalJudge,
    Monitor,
    RAGTestCase,
    ScoringPolicy,
    evaluate,
)
from ragaliq.errors import ConfigurationError, JudgeAPIError
from ragaliq.evaluators import FaithfulnessEvaluator, RelevanceEvaluator

OWN = ("Ask the front desk!", "/nothing on .{1,40} in our files/")


def case(response, **fields):
    context = ["Refunds take five days."]
    return RAGTestCase(query="When?", context=context, response=response, **fields)


@pytest.mark.parametrize(
    ("answer", "is_declined"),
    [
        ("Ask the front desk!", True),
        ("**ask the  front desk**", True),
        ("Nothing on refunds in our files.", False),  # the pattern has no full stop
        ("Nothing on refunds in our files", True),
        ("Hello! Ask the front desk! Is there anything else I can do?", True),
        ("Ask the front desk! Refunds take nine days.", False),
        ("The front desk asks.", False),
    ],
)
def test_a_text_or_pattern_of_the_application_is_a_decline(answer, is_declined):
    run = evaluate([case(answer)], judge="local", declines=OWN)
    assert (run[0].results["faithfulness"].status == "answer_refused") is is_declined


@pytest.mark.parametrize("policy", [ScoringPolicy.RAGALIQ, ScoringPolicy.LIVE])
async def test_evaluators_take_them_with_their_policy(policy):
    metric = FaithfulnessEvaluator(policy=policy.with_declines(OWN))
    assert (await metric.evaluate(case(OWN[0]), LocalJudge())).status == "answer_refused"


def test_a_monitor_takes_them():
    monitor = Monitor(judge="local", declines=OWN[0], mode="inline", executor="thread")
    assert monitor.submit(case(OWN[0], id="1"))
    monitor.flush()
    assert [each.policy.declines for each in monitor.metrics] == [(OWN[0],)]


@pytest.mark.parametrize("wrong", ["", "  ", "/(/", "//", 5])
def test_a_wrong_one_is_refused_at_once(wrong):
    with pytest.raises(ConfigurationError, match="declines"):
        evaluate([case("Yes.")], judge="local", declines=[wrong])


UNKNOWN = "Our team is unable to help with that one."
DECLINED = {"declined": True, "claims": []}
RELEVANCE = {"reasoning": "It is there.", "score": 0.9}


def judge_saying(*replies):
    """A judge with these replies in turn, and the requests that it gets."""
    left, asked = list(replies), []

    async def complete(system, user):
        asked.append(user)
        reply = left.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return json.dumps(reply), JudgeUsage(input_tokens=10, output_tokens=1, requests=1)

    return ChatModelJudge(complete, model="m"), asked


@pytest.mark.parametrize(
    ("answer", "replies", "status"),
    [
        ("I do not know.", [RELEVANCE], "answer_withheld"),
        ("I do not know.", [RELEVANCE | {"score": 0.4}], "answer_refused"),
        (UNKNOWN, [DECLINED, RELEVANCE], "answer_withheld"),
        (UNKNOWN, [DECLINED, RELEVANCE | {"score": 0.1}], "answer_refused"),
        (UNKNOWN, [DECLINED | {"declined": False}], "no_claims"),
        (UNKNOWN, [{"claims": []}], "no_claims"),
        # The judge failed, and nobody knows what the context holds.
        ("I do not know.", [JudgeAPIError("broke")], "answer_refused"),
    ],
)
async def test_a_judge_tells_a_decline_from_one_whose_context_held_the_answer(
    answer, replies, status
):
    judge, asked = judge_saying(*replies)
    metric = FaithfulnessEvaluator(policy=ScoringPolicy.LIVE)
    result = await metric.evaluate(case(answer), judge)
    assert (result.status, result.score) == (status, None)
    assert len(asked) == len(replies)
    assert result.usage.requests == sum(not isinstance(each, Exception) for each in replies)
    if RELEVANCE in replies:
        assert "Refunds take five days." in asked[-1]
        assert "though the context holds one" in result.reasoning


async def test_what_is_claimed_counts_more_than_that_a_judge_calls_it_a_decline():
    verdict = {"claim_id": "c1", "reason": "so", "evidence": "", "chunk_ids": []}
    verdict |= {"verdict": "NOT_ENOUGH_INFO", "confidence": 0.9}
    claimed = DECLINED | {"claims": ["Refunds take nine days."]}
    judge, _ = judge_saying(claimed, {"verdicts": [verdict]})
    metric = FaithfulnessEvaluator(policy=ScoringPolicy.LIVE)
    result = await metric.evaluate(case("Hard to say, nine days."), judge)
    assert (result.status, result.score) == ("scored", 0.0)


async def test_a_judge_that_is_not_trusted_with_relevance_is_not_asked_what_the_context_holds():
    metric = FaithfulnessEvaluator(policy=ScoringPolicy.LIVE)
    result = await metric.evaluate(case("I do not know."), LocalJudge())
    assert result.status == "answer_refused"


async def test_a_decline_in_one_pass_is_told_by_the_same_reply():
    judge, asked = judge_saying({"declined": True, "statements": []}, RELEVANCE)
    metric = FaithfulnessEvaluator(policy=ScoringPolicy.LIVE, strategy="single_pass")
    assert (await metric.evaluate(case(UNKNOWN), judge)).status == "answer_withheld"
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("answer", "policy"),
    [
        (OWN[0], ScoringPolicy.LIVE.with_declines(OWN)),
        (OWN[0], ScoringPolicy.RAGALIQ.with_declines(OWN)),
    ],
)
async def test_an_own_decline_is_irrelevant_for_every_judge_without_a_call(answer, policy):
    prompted, asked = judge_saying(RELEVANCE)
    for judge in (prompted, LocalJudge()):
        result = await RelevanceEvaluator(policy=policy).evaluate(case(answer), judge)
        assert (result.status, result.score, result.usage) == ("scored", 0.0, JudgeUsage())
        assert result.reasoning == "The answer declines to answer."
    assert not asked


async def test_an_answer_that_declines_in_words_of_its_own_is_the_judges_to_score():
    judge, asked = judge_saying(RELEVANCE)
    result = await RelevanceEvaluator(policy=ScoringPolicy.LIVE).evaluate(case(UNKNOWN), judge)
    assert (result.score, len(asked)) == (0.9, 1)


async def test_an_answer_with_more_than_an_own_decline_is_judged_for_relevance():
    policy = ScoringPolicy.LIVE.with_declines(OWN)
    judge, asked = judge_saying(RELEVANCE)
    answer = f"{OWN[0]} Refunds take five days."
    result = await RelevanceEvaluator(policy=policy).evaluate(case(answer), judge)
    assert (result.score, len(asked)) == (0.9, 1)
