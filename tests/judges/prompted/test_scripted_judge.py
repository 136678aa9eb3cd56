"""The scripted judges decide as the test says and count."""

from __future__ import annotations

import pytest

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import JudgeTimeoutError
from ragaliq.judges import BatchingJudge, ClaimVerdict, LLMJudge
from ragaliq.testing import PlainScriptedJudge, ScriptedJudge

ANSWER = "Paris is in France. It has two airports."
CONTEXT = ["Nothing here.", "Paris is a city in France. It lies on the Seine."]


async def test_the_plain_one_has_only_what_every_judge_has():
    judge = PlainScriptedJudge()

    assert isinstance(judge, LLMJudge)
    assert not isinstance(judge, BatchingJudge)
    assert isinstance(ScriptedJudge(), BatchingJudge)


async def test_without_a_script_it_goes_by_wording():
    judge = ScriptedJudge()

    found = await judge.extract_statements("Where is Paris?", ANSWER)
    checked = await judge.verify_claims(found.claims, CONTEXT)
    scored = await judge.evaluate_relevance("Where is Paris?", ANSWER)

    assert found.claims == ["Paris is in France.", "It has two airports."]
    assert [item.verdict for item in checked.verdicts] == ["SUPPORTED", "NOT_ENOUGH_INFO"]
    assert checked.verdicts[0].supporting_chunk_ids == [1]
    assert checked.verdicts[0].evidence == "Paris is a city in France."
    assert scored.score == 0.5


async def test_claims_verdicts_and_scores_can_be_fixed():
    judge = ScriptedJudge(claims=["a", "b"], verdicts="CONTRADICTED", relevance=0.2)

    graded = await judge.grade_statements("q", "r", ["c"])

    assert [(item.statement, item.verdict) for item in graded.verdicts] == [
        ("a", "CONTRADICTED"),
        ("b", "CONTRADICTED"),
    ]
    assert (await judge.evaluate_relevance("q", "r")).score == 0.2


async def test_claims_verdicts_and_scores_can_be_functions():
    judge = ScriptedJudge(
        claims=lambda query, response: [query, response],
        verdicts=lambda claim, context: "SUPPORTED" if claim in context else None,
        relevance=lambda query, response: float(query == response),
    )

    assert (await judge.extract_statements("q", "r")).claims == ["q", "r"]
    assert (await judge.extract_claims("r")).claims == ["", "r"]
    assert (await judge.verify_claim("r", ["r"])).verdict == "SUPPORTED"
    assert (await judge.verify_claim("long words", ["r"])).verdict == "NOT_ENOUGH_INFO"
    assert (await judge.evaluate_relevance("x", "x")).score == 1.0


async def test_a_verdict_can_be_given_in_full_for_one_claim():
    full = ClaimVerdict(
        verdict="SUPPORTED", evidence="e", confidence=0.4, supporting_chunk_ids=[0], reason="r"
    )
    judge = ScriptedJudge(verdicts={"a": full, "b": "CONTRADICTED"})

    result = await judge.verify_claims(["b", "a"], ["c"])

    assert [(item.index, item.verdict) for item in result.verdicts] == [
        (0, "CONTRADICTED"),
        (1, "SUPPORTED"),
    ]
    assert (result.verdicts[1].evidence, result.verdicts[1].confidence) == ("e", 0.4)


async def test_calls_are_kept_and_counted():
    judge = ScriptedJudge()
    await judge.verify_claim("a", ["b"])
    await judge.verify_claim("c", ["d"])
    await judge.extract_claims("e")

    assert judge.call_counts == {"verify_claim": 2, "extract_claims": 1}
    assert judge.calls[1].arguments == {"claim": "c", "context": ["d"]}


async def test_each_call_costs_what_it_was_told():
    usage = JudgeUsage(input_tokens=10, output_tokens=5, requests=1, cost_usd=0.5)
    judge = ScriptedJudge(claims=["a", "b"], usage=usage)

    result = await judge.verify_claims(["a", "b"], ["c"])

    assert result.spent() == usage
    assert result.tokens_used == 15
    assert sum((item.spent() for item in result.verdicts), JudgeUsage()) == JudgeUsage()


async def test_a_method_can_fail_always_or_call_by_call():
    judge = ScriptedJudge(
        failures={
            "extract_claims": JudgeTimeoutError("slow"),
            "verify_claim": [None, JudgeTimeoutError("slow")],
        }
    )

    for _ in range(3):
        with pytest.raises(JudgeTimeoutError):
            await judge.extract_claims("a")
    await judge.verify_claim("a", ["b"])
    with pytest.raises(JudgeTimeoutError):
        await judge.verify_claim("a", ["b"])
    await judge.verify_claim("a", ["b"])
    assert judge.call_counts["verify_claim"] == 3
