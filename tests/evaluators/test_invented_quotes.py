"""A SUPPORTED verdict whose quote stands nowhere in the context is not taken at its word."""

import pytest

from ragaliq import FaithfulnessEvaluator, JudgeAPIError, RAGTestCase, ScoringPolicy
from ragaliq.judges import ClaimVerdict, VerdictsResult
from ragaliq.testing import PlainScriptedJudge, ScriptedJudge

CASE = RAGTestCase(
    query="q",
    context=["The lamp weighs 310 grams.", "It folds flat for the bag."],
    response="It weighs 310 grams. It folds.",
)


def verdict(index, evidence, value="SUPPORTED"):
    return ClaimVerdict(index=index, verdict=value, evidence=evidence, confidence=0.8)


class Quoting(ScriptedJudge):
    def __init__(self, *replies):
        super().__init__(claims=["The lamp weighs 310 grams.", "The lamp folds."])
        self.replies = list(replies)
        self.asked = []

    async def verify_claims(self, claims, context):
        self.asked.append(list(claims))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return VerdictsResult(verdicts=reply)


FOUND = verdict(0, "The lamp weighs 310 grams.")
FOUND_TOO = verdict(1, "It folds flat")
INVENTED = verdict(1, "The lamp has a hinge in the middle of its arm.")


async def check(*replies):
    judge = Quoting(*replies)
    return judge, await FaithfulnessEvaluator().evaluate(CASE, judge)


@pytest.mark.parametrize(("quote", "verified"), [("It folds flat", True), ("", False)])
async def test_a_quote_that_is_there_or_none_costs_no_second_question(quote, verified):
    judge, result = await check([FOUND, verdict(1, quote)])
    assert len(judge.asked) == 1
    assert [claim.evidence_verified for claim in result.claims] == [True, verified]


OTHER = verdict(0, "The lamp weighs 410 grams.")


@pytest.mark.parametrize(
    ("first", "second", "verdict", "verified", "confidence"),
    [
        (INVENTED, [verdict(0, "It folds flat for the bag.")], "SUPPORTED", True, 0.8),
        (INVENTED, [verdict(0, "A hinge, somewhere in the arm.")], "SUPPORTED", False, 0.4),
        (INVENTED, [verdict(0, "", "NOT_ENOUGH_INFO")], "NOT_ENOUGH_INFO", False, 0.8),
        (INVENTED, [], "SUPPORTED", False, 0.4),
        (INVENTED, JudgeAPIError("down"), "SUPPORTED", False, 0.4),
        (verdict(1, "The lamp weighs 410 grams."), [OTHER], "SUPPORTED", False, 0.4),
    ],
    ids=[
        "a real quote",
        "another invented quote",
        "a changed mind",
        "no answer",
        "a failure",
        "another number",
    ],
)
async def test_only_the_claim_with_an_invented_quote_is_asked_again_and_doubted_unless_cleared(
    first, second, verdict, verified, confidence
):
    judge, result = await check([FOUND, first], second, second)
    claim = result.claims[1]
    assert judge.asked[1:2] == [["The lamp folds."]]
    assert (claim.verdict, claim.evidence_verified) == (verdict, verified)
    assert claim.confidence == confidence
    assert [span.chunk_id for span in claim.evidence_spans] == ([1] if verified else [])


@pytest.mark.parametrize("value", ["SUPPORTED", "CONTRADICTED"])
async def test_a_quote_that_says_the_opposite_is_not_there_whatever_it_is_to_prove(value):
    denied = verdict(1, "It does not fold flat for the bag.", value)
    judge, result = await check([FOUND, denied], [denied.model_copy(update={"index": 0})])
    claim = result.claims[1]
    assert judge.asked[1:] == [["The lamp folds."]]
    assert (claim.verdict, claim.evidence_verified, claim.confidence) == (value, False, 0.4)
    assert claim.is_unsure


async def test_a_claim_is_unsure_below_the_confidence_that_its_judge_names():
    class Careful(Quoting):
        sure_from = 0.75

    for confidence, unsure, unsure_if_careful in (
        (0.8, False, False),
        (0.76, True, False),
        (0.74, True, True),
    ):
        replies = [FOUND, FOUND_TOO.model_copy(update={"confidence": confidence})]
        for judge, expected in ((Quoting(replies), unsure), (Careful(replies), unsure_if_careful)):
            result = await FaithfulnessEvaluator().evaluate(CASE, judge)
            assert [claim.is_unsure for claim in result.claims] == [False, expected]


async def test_in_a_single_pass_chunks_that_do_not_exist_are_left_out():
    class Miscounting(ScriptedJudge):
        async def grade_statements(self, query, response, context):
            statement = ClaimVerdict(
                index=0,
                statement="It folds.",
                verdict="SUPPORTED",
                evidence="It folds flat",
                supporting_chunk_ids=[2, -1, 1],
            )
            return VerdictsResult(verdicts=[statement])

    result = await FaithfulnessEvaluator(strategy="single_pass").evaluate(CASE, Miscounting())
    assert result.claims[0].supporting_chunk_ids == (1,)
    assert result.claims[0].evidence_verified


@pytest.mark.parametrize(("claims", "coverage"), [(["It folds."], 0.3), (None, None)])
async def test_a_result_whose_claims_cover_little_of_the_answer_says_so(claims, coverage):
    metric = FaithfulnessEvaluator(policy=ScoringPolicy.LIVE)
    result = await metric.evaluate(CASE, ScriptedJudge(claims=claims))
    assert result.raw_response.get("coverage") == coverage
    assert result.status == ("partial" if coverage else "scored")
    assert ("The claims cover 30% of the answer." in result.reasoning) is bool(coverage)


async def test_a_plain_judges_remark_is_no_quote_to_hold_it_to():
    judge = PlainScriptedJudge(
        claims=["The lamp folds."],
        verdicts=ClaimVerdict(verdict="SUPPORTED", evidence="The context states this"),
    )
    result = await FaithfulnessEvaluator().evaluate(CASE, judge)
    assert judge.call_counts["verify_claim"] == 1
    assert (result.claims[0].confidence, result.claims[0].evidence_verified) == (1.0, False)
