"""Judges with code of your own: three methods are enough.

This one looks claims up word by word. Yours may ask a model of your company: return what it said,
and raise a `JudgeError` when it could not decide, which is counted and never becomes a score.
"""

from ragaliq import (
    ClaimsResult,
    ClaimVerdict,
    JudgeAPIError,
    JudgeResult,
    LLMJudge,
    Monitor,
    RAGTestCase,
)


class WordJudge(LLMJudge):
    """Supports a claim if one chunk has all its words."""

    name = "words"
    default_metrics = ("faithfulness",)

    async def extract_claims(self, response: str) -> ClaimsResult:
        return ClaimsResult(claims=[part.strip(". ") for part in response.split(". ") if part])

    async def verify_claim(self, claim: str, context: list[str]) -> ClaimVerdict:
        words = set(claim.lower().split())
        for number, chunk in enumerate(context):
            if words <= set(chunk.lower().strip(".").split()):
                return ClaimVerdict(
                    verdict="SUPPORTED", evidence=chunk, supporting_chunk_ids=[number]
                )
        return ClaimVerdict(verdict="NOT_ENOUGH_INFO", confidence=0.6)

    async def evaluate_relevance(self, query: str, response: str) -> JudgeResult:  # noqa: ARG002
        raise JudgeAPIError("this judge knows nothing about relevance")


with Monitor(judge=WordJudge()) as monitor:
    monitor.submit(
        RAGTestCase(
            query="How heavy is the lamp?",
            context=["The lamp weighs 310 grams."],
            response="The lamp weighs 310 grams. The lamp is blue.",
        )
    )
    monitor.flush(timeout=30)
    result = monitor.stats()

print(result.evaluations)
