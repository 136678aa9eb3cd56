"""Context recall: whether everything a complete answer needs was retrieved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragaliq.core.results import EvaluationResult, Status
from ragaliq.core.spending import paid, spending
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import DatasetError
from ragaliq.evaluators.claim_based import claim_rows
from ragaliq.evaluators.context_based import ContextEvaluator
from ragaliq.evaluators.details import claim_details
from ragaliq.evaluators.registry import register_evaluator
from ragaliq.evaluators.verification import Verifier
from ragaliq.judges.base import BatchingJudge, LLMJudge

__all__ = ["ContextRecallEvaluator"]


@register_evaluator("context_recall")
class ContextRecallEvaluator(ContextEvaluator):
    """The share of expected facts that the retrieved context covers.

    `score = covered facts / decided facts`, as RAGAS's context recall. The facts are the case's
    `expected_facts`, else the claims of its `expected_answer`.

    `raw_response`: `facts` (a list of `{claim, verdict, evidence, ...}`), `covered_facts`,
    `total_facts`.
    """

    description = "Measures whether the retrieved context covers the expected facts"
    threshold = 0.7

    async def measure(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Measure the context of a case that says what to expect of it.

        Raises:
            DatasetError: The case says nothing of what is expected.
        """
        expected = [*test_case.expected_facts, test_case.expected_answer or ""]
        if not any(text.strip() for text in expected):
            raise _nothing_expected(test_case)
        return await super().measure(test_case, judge)

    async def measure_context(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Decide each expected fact from the context.

        Raises:
            DatasetError: The expected answer makes no claims.
        """
        batched = isinstance(judge, BatchingJudge)
        verifier = Verifier(judge, test_case.context_texts, policy=self.policy, batched=batched)
        with spending() as spent:
            facts = await self._facts(test_case, judge)
            decided = await verifier.decide(facts)
        details = await claim_details(test_case, facts, decided, judge, evidence=verifier.evidence)
        raw = self.raw_response(claim_rows(tuple(d for d in details if d.verdict is not None)))
        covered, total = raw["covered_facts"], raw["total_facts"]
        return self.result(
            judge,
            status=Status.SCORED if total == len(facts) else Status.PARTIAL,
            score=covered / total,
            reasoning=f"The context covers {covered} of {total} expected facts.",
            usage=spent.usage,
            raw_response=raw,
        )

    def raw_response(self, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """`facts`, `covered_facts`, `total_facts`."""
        return {
            "facts": list(rows),
            "covered_facts": sum(row["verdict"] == "SUPPORTED" for row in rows),
            "total_facts": len(rows),
        }

    async def _facts(self, test_case: RAGTestCase, judge: LLMJudge) -> list[str]:
        if facts := [fact for fact in test_case.expected_facts if fact.strip()]:
            return facts
        extracted = await paid(judge.extract_claims(test_case.expected_answer or ""))
        if facts := [claim for claim in extracted.claims if claim.strip()]:
            return facts
        raise _nothing_expected(test_case)


def _nothing_expected(case: RAGTestCase) -> DatasetError:
    return DatasetError(
        f"case {case.id!r} says nothing of what to expect; context_recall needs expected_facts, "
        "or an expected_answer that makes claims"
    )
