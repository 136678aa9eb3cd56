"""Adds a metric of your own: does the answer cite one of the chunks it was given?

It is used by name like the others, offline, live, in tests and in guards.
"""

import re

from ragaliq import (
    EvaluationResult,
    Evaluator,
    JudgeUsage,
    LLMJudge,
    RAGTestCase,
    Status,
    evaluate,
    register_evaluator,
)

CITATION = re.compile(r"\[(\d+)\]")


@register_evaluator("known_citations")
class CitationEvaluator(Evaluator):
    """The share of citations such as [2] that lead to a chunk."""

    description = "Whether the citations lead to chunks"
    threshold = 1.0

    async def measure(self, test_case: RAGTestCase, judge: LLMJudge) -> EvaluationResult:
        """Count citations; the judge is not asked, so it costs nothing."""
        cited = [int(number) for number in CITATION.findall(test_case.response)]
        if not cited:  # nothing to measure: a status, and no score
            return self.result(
                judge,
                status=Status.NO_CLAIMS,
                reasoning="No citations.",
                usage=JudgeUsage(),
            )
        found = sum(1 <= number <= len(test_case.context) for number in cited)
        return self.result(
            judge,
            score=found / len(cited),
            reasoning=f"{found} of {len(cited)} citations lead to a chunk.",
            usage=JudgeUsage(),
            raw_response={"cited": cited},
        )


def case(answer: str) -> RAGTestCase:
    return RAGTestCase(query="How heavy is it?", context=["It weighs 3 kg."], response=answer)


run = evaluate(
    [case("It weighs 3 kg [1]."), case("It weighs 3 kg [2]."), case("It weighs 3 kg.")],
    metrics=["known_citations", "faithfulness"],
)
for scored in run:
    result = scored.results["known_citations"]
    print(result.status, result.score, result.passed, "-", result.reasoning)
print("mean of", run.metrics["known_citations"].measured, "is", run.metrics["known_citations"].mean)
