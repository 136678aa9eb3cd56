import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragaliq import (
    ChunkUtilityEvaluator,
    ContextRecallEvaluator,
    FaithfulnessEvaluator,
    HallucinationEvaluator,
    RAGTestCase,
    ScoringPolicy,
)
from ragaliq.evaluators.claims import split_context, split_text
from ragaliq.judges import ClaimsResult, ClaimVerdict, VerdictsResult
from ragaliq.testing import ScriptedJudge


@given(st.text(), st.integers(1, 40))
def test_pieces_are_short_enough_and_together_the_text(text, limit):
    pieces = split_text(text, limit)
    assert "".join(pieces) == text
    assert all(len(piece) <= limit for piece in pieces)


@given(st.lists(st.text(), max_size=8), st.none() | st.integers(1, 30))
def test_every_character_of_every_chunk_is_in_one_part(texts, limit):
    parts = split_context(texts, limit)
    rebuilt = [""] * len(texts)
    for part in parts:
        assert limit is None or sum(map(len, part.texts)) <= limit
        for text, position in zip(part.texts, part.positions, strict=True):
            rebuilt[position] += text
    assert rebuilt == texts
    assert len(parts) >= 1


class Narrow(ScriptedJudge):
    """Sees thirty characters at a time and supports a claim it finds literally."""

    max_context_chars = 30

    def __init__(self, contradicts="", **options):
        super().__init__(**options)
        self.seen = []
        self.contradicts = contradicts

    async def verify_claims(self, claims, context):
        self.seen.append(list(context))
        return VerdictsResult(
            verdicts=[self._verdict(i, claim, context) for i, claim in enumerate(claims)]
        )

    def _verdict(self, index, claim, context):
        for position, text in enumerate(context):
            if claim in text:
                return ClaimVerdict(
                    index=index,
                    verdict="SUPPORTED",
                    evidence=claim,
                    supporting_chunk_ids=[position],
                )
        against = bool(self.contradicts) and any(self.contradicts in text for text in context)
        return ClaimVerdict(index=index, verdict="CONTRADICTED" if against else "NOT_ENOUGH_INFO")


CONTEXT = ["a" * 25, "b" * 25, "Paris is the capital."]


async def test_a_long_context_is_judged_in_parts_and_the_result_says_so():
    judge = Narrow(claims=["Paris is the capital."])
    case = RAGTestCase(query="q", context=CONTEXT, response="Paris is the capital.")
    result = await FaithfulnessEvaluator().evaluate(case, judge)
    assert judge.seen == [["a" * 25], ["b" * 25], ["Paris is the capital."]]
    assert result.score == 1.0
    assert result.claims[0].supporting_chunk_ids == (2,)
    assert result.raw_response["context_parts"] == 3


async def test_supported_by_any_part_wins_over_contradicted_by_another():
    judge = Narrow(contradicts="bbb", claims=["Paris is the capital.", "Something else."])
    case = RAGTestCase(query="q", context=CONTEXT, response="Two claims.")
    result = await FaithfulnessEvaluator().evaluate(case, judge)
    assert [claim.verdict for claim in result.claims] == ["SUPPORTED", "CONTRADICTED"]


@pytest.mark.parametrize("strategy", ["batched", "single_pass"])
async def test_a_long_answer_is_taken_apart_in_parts(strategy):
    class ShortSighted(ScriptedJudge):
        max_answer_chars = 12

    judge = ShortSighted()
    case = RAGTestCase(query="q", context=["c"], response="One two. Three four. Five.")
    result = await FaithfulnessEvaluator(strategy=strategy).evaluate(case, judge)
    assert [claim.claim for claim in result.claims] == ["One two.", "Three four.", "Five."]
    assert judge.call_counts == {"extract_statements": 3, "verify_claims": 1}


async def test_many_claims_are_decided_in_groups():
    class Grouping(ScriptedJudge):
        max_claims = 2

    judge = Grouping(claims=[f"Claim {i}." for i in range(5)], verdicts="SUPPORTED")
    case = RAGTestCase(query="q", context=["c"], response="r")
    result = await FaithfulnessEvaluator().evaluate(case, judge)
    assert (len(result.claims), result.score) == (5, 1.0)
    assert judge.call_counts["verify_claims"] == 3


async def test_a_claim_one_part_leaves_open_is_undecided_unless_another_supports_it():
    class Forgetful(Narrow):
        async def verify_claims(self, claims, context):
            reply = await super().verify_claims(claims, context)
            return reply if "a" not in context[0][:1] else VerdictsResult(verdicts=[])

        async def extract_statements(self, query, response):
            return ClaimsResult(claims=["Paris is the capital.", "Unknown."])

    policy = ScoringPolicy.LIVE
    case = RAGTestCase(query="q", context=CONTEXT[1:], response="r")
    result = await FaithfulnessEvaluator(policy=policy).evaluate(case, Forgetful())
    assert [claim.verdict for claim in result.claims] == ["SUPPORTED", "NOT_ENOUGH_INFO"]


@pytest.mark.parametrize(
    "evaluator",
    [FaithfulnessEvaluator, HallucinationEvaluator, ChunkUtilityEvaluator, ContextRecallEvaluator],
)
async def test_where_the_parts_leave_every_claim_open_there_is_no_score(evaluator):
    class Halves(Narrow):
        """Decides one claim of two from each part, and not the same."""

        async def verify_claims(self, claims, context):
            mine = "One." if "a" in context[0] else "Two."
            verdicts = [ClaimVerdict(index=i, verdict="NOT_ENOUGH_INFO") for i in range(2)]
            wanted = [v for v, claim in zip(verdicts, claims, strict=False) if claim == mine]
            return VerdictsResult(verdicts=wanted)

    case = RAGTestCase(
        query="q", context=CONTEXT[:2], response="One. Two.", expected_facts=["One.", "Two."]
    )
    result = await evaluator(policy=ScoringPolicy.LIVE).evaluate(case, Halves())
    assert (result.status, result.score) == ("judge_error", None)
