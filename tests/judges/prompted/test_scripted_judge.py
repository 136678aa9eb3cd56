"""The scripted judges decide as the test says and count."""

from __future__ import annotations

import pytest

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import JudgeTimeoutError
from ragaliq.judges import BatchingJudge
from ragaliq.testing import PlainScriptedJudge, ScriptedJudge

ANSWER = "Paris is in France. It has two airports."
CONTEXT = ["Nothing here.", "Paris is a city in France. It lies on the Seine."]


async def test_without_a_script_it_goes_by_wording():
    judge = ScriptedJudge()
    assert isinstance(judge, BatchingJudge)
    assert not isinstance(PlainScriptedJudge(), BatchingJudge)

    found = await judge.extract_statements("Where is Paris?", ANSWER)
    checked = await judge.verify_claims(found.claims, CONTEXT)
    scored = await judge.evaluate_relevance("Where is Paris?", ANSWER)

    assert found.claims == ["Paris is in France.", "It has two airports."]
    assert [item.verdict for item in checked.verdicts] == ["SUPPORTED", "NOT_ENOUGH_INFO"]
    assert checked.verdicts[0].supporting_chunk_ids == [1]
    assert checked.verdicts[0].evidence == "Paris is a city in France."
    assert scored.score == 0.5


@pytest.mark.parametrize(
    "script",
    [
        {"claims": ["a", "b"], "verdicts": "CONTRADICTED", "relevance": 0.2},
        {
            "claims": lambda query, response: [response, "b"],
            "verdicts": lambda claim, context: "CONTRADICTED",
            "relevance": lambda query, response: 0.2,
        },
    ],
)
async def test_claims_verdicts_and_scores_can_be_fixed_or_functions(script):
    judge = ScriptedJudge(**script)

    graded = await judge.grade_statements("q", "a", ["c"])

    assert [item.statement for item in graded.verdicts] == ["a", "b"]
    assert {item.verdict for item in graded.verdicts} == {"CONTRADICTED"}
    assert (await judge.extract_claims("a")).claims == ["a", "b"]
    assert (await judge.verify_claim("b", ["c"])).verdict == "CONTRADICTED"
    assert (await judge.evaluate_relevance("q", "a")).score == 0.2


async def test_calls_are_kept_and_counted_and_each_costs_what_the_test_says():
    usage = JudgeUsage(input_tokens=10, output_tokens=5, requests=1, cost_usd=0.5)
    judge = ScriptedJudge(usage=usage)
    await judge.verify_claim("a", ["b"])
    result = await judge.verify_claims(["c", "d"], ["e"])

    assert judge.call_counts == {"verify_claim": 1, "verify_claims": 1}
    assert judge.calls[1].arguments == {"claims": ["c", "d"], "context": ["e"]}
    assert (result.spent(), result.tokens_used) == (usage, 15)
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
