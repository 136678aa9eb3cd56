"""The scripted judges decide as the test says and count."""

import pytest

from ragaliq.errors import JudgeTimeoutError
from ragaliq.testing import ScriptedJudge


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
