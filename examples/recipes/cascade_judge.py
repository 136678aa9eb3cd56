"""Asks two judges: a free one first, and a better one about what the first may not decide.

The second judge is scripted here; in your application it is `ClaudeJudge()`. Without a calibration
made from claims you have labelled, the first judge's word is never accepted: it only finds the
claims, and every claim goes to the second. Each claim says who decided.
"""

from ragaliq import CascadeJudge, LocalJudge, RAGTestCase, evaluate
from ragaliq.testing import ScriptedJudge

second = ScriptedJudge()
judge = CascadeJudge(LocalJudge(), second, escalate=0.5)

run = evaluate(
    [
        RAGTestCase(
            query="How long do refunds take?",
            context=["Refunds are paid within five working days."],
            response="Refunds are paid within five working days. They come in cash.",
        )
    ],
    metrics=["faithfulness"],
    judge=judge,
)
for claim in run[0].results["faithfulness"].claims:
    print(claim.verdict, "by", claim.decided_by, "-", claim.claim)
print("judge:", judge.name, "- calls of the second:", dict(second.call_counts))
