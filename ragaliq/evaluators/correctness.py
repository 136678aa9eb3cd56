"""Correctness: an answer against a reference answer, claim by claim, in both directions."""

from __future__ import annotations

from ragaliq.core.results import EvaluationResult, Status
from ragaliq.core.spending import paid, spending
from ragaliq.core.test_case import ContextChunk, RAGTestCase
from ragaliq.errors import MissingReferenceError
from ragaliq.evaluators.alignment import EvidenceSource
from ragaliq.evaluators.claims import Verifier, check_claims
from ragaliq.evaluators.evaluator import Evaluator
from ragaliq.evaluators.registry import register_evaluator
from ragaliq.judges.base import LLMJudge

_REFERENCE = "expected_answer"


@register_evaluator("correctness")
class CorrectnessEvaluator(Evaluator):
    """Agreement of the answer with a reference answer: says all of it and nothing else.

    The answer's claims are checked against the reference (`expected_answer` and `expected_facts`),
    and the reference's facts against the answer: `score = confirmed / (confirmed + (unconfirmed +
    missing) / 2)`, the F1 of RAGAS's answer correctness. The facts are the case's `expected_facts`,
    else the claims of its `expected_answer`. The retrieved context is ignored.

    `raw_response`: `confirmed_claims`, `unconfirmed_claims`, `missing_facts` (lists of texts),
    `total_claims`, `total_facts`.
    """

    description = "Measures whether the answer says what the reference answer says"
    threshold = 0.7
    checks_claims = True
    needs = ("expected_answer",)

    async def measure(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Check the answer against the reference, and the reference against the answer.

        Raises:
            MissingReferenceError: The case has no reference, or one that makes no claims.
        """
        facts = [fact for fact in test_case.expected_facts if fact.strip()]
        answer = (test_case.expected_answer or "").strip()
        if not answer and not facts:
            raise _no_reference(test_case)
        reference = [answer, *facts] if answer else facts
        against = test_case.model_copy(
            update={
                "context": [
                    ContextChunk(id=f"{_REFERENCE}.{position}", text=text)
                    for position, text in enumerate(reference)
                ],
                "prompt_context": "",
                "history": [],
                "citations": [],
            }
        )
        with spending() as spent:
            check = await check_claims(against, judge, policy=self.policy)
            if not check.status.is_measured:
                return self.result(
                    judge,
                    status=check.status,
                    reasoning="The answer makes no claims that the reference could confirm.",
                    usage=spent.usage,
                )
            if not facts:
                extracted = await paid(judge.extract_claims(answer))
                facts = [claim for claim in extracted.claims if claim.strip()]
            if not facts:
                raise _no_reference(test_case)
            source = EvidenceSource([test_case.response])
            verifier = Verifier(judge, source, policy=self.policy, batched=True)
            verdicts = await verifier.decide(dict(enumerate(facts)))
        confirmed = [each for each in check.decided if each.verdict == "SUPPORTED"]
        unconfirmed = [each for each in check.decided if each.verdict != "SUPPORTED"]
        missing = [facts[at] for at, each in verdicts.items() if each.verdict != "SUPPORTED"]
        faults = len(unconfirmed) + len(missing)
        found = len(confirmed)
        is_whole = check.status is Status.SCORED and len(verdicts) == len(facts)
        return self.result(
            judge,
            status=Status.SCORED if is_whole else Status.PARTIAL,
            score=found / (found + faults / 2) if found or faults else 0.0,
            reasoning=f"The reference confirms {found} of {len(check.decided)} claims; "
            f"{len(missing)} of {len(verdicts)} expected facts are missing.",
            usage=spent.usage,
            claims=check.claims,
            raw_response={
                "confirmed_claims": [each.claim for each in confirmed],
                "unconfirmed_claims": [each.claim for each in unconfirmed],
                "missing_facts": missing,
                "total_claims": len(check.decided),
                "total_facts": len(verdicts),
            },
        )


def _no_reference(case: RAGTestCase) -> MissingReferenceError:
    return MissingReferenceError(
        f"case {case.id!r} has nothing to compare the answer with; correctness needs an "
        "expected_answer that makes claims, or expected_facts"
    )
