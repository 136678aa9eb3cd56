"""A deadline strikes also while nothing is awaited but computed."""

import random

from ragaliq import ClaimVerdict, FaithfulnessEvaluator, RAGTestCase, RelevanceEvaluator
from ragaliq.evaluators.case import evaluate_case
from ragaliq.testing import ScriptedJudge

WORDS = "parcel lamp weighs grams cable opening refund shop folds flat metal black red".split()


def invented(seed, words=12):
    return " ".join(random.Random(seed).choices(WORDS, k=words))


async def test_looking_for_thousands_of_invented_quotes_ends_with_the_deadline():
    claims = [f"{invented(n)} {n}." for n in range(2000)]
    chunks = [". ".join(invented(f"{n} {i}") for i in range(12)) for n in range(50)]
    quotes = {
        claim: ClaimVerdict(verdict="SUPPORTED", evidence=invented(f"quote {claim}"))
        for claim in claims
    }
    judge = ScriptedJudge(claims=claims, verdicts=quotes, relevance=0.9)
    case = RAGTestCase(query="q", context=chunks, response=" ".join(claims))

    results = await evaluate_case(
        case, [FaithfulnessEvaluator(), RelevanceEvaluator()], judge, deadline=0.2
    )

    assert results["faithfulness"].status == "judge_timeout"
    assert results["relevance"].score == 0.9
