"""LocalJudge compares wording: nothing in a text speaks to it, and its verdicts stay."""

from __future__ import annotations

import pytest

from ragaliq import LocalJudge, RAGTestCase, evaluate_async

CHUNKS = [
    "The lighthouse on Kalle island was built in 1871. It is 34 metres high and painted white.",
    "Ferries to the island leave every morning at nine from Norby harbour.",
]
CLAIMS = {
    "The lighthouse on Kalle island was built in 1871.": "SUPPORTED",
    "Ferries to the island leave every morning at nine.": "SUPPORTED",
    "The lighthouse on Kalle island was built in 1925.": "CONTRADICTED",
    "The keeper bred sheep and played the violin in winter.": "NOT_ENOUGH_INFO",
}


async def verdicts(context: list[str]) -> dict[str, str]:
    found = (await LocalJudge().verify_claims(list(CLAIMS), context)).verdicts
    return {claim: found[index].verdict for index, claim in enumerate(CLAIMS)}


async def test_without_an_attempt_the_verdicts_are_these():
    assert await verdicts(CHUNKS) == CLAIMS


@pytest.mark.parametrize("place", ["before", "after", "between", "own chunk"])
async def test_an_attempt_in_the_context_moves_no_verdict(attempt, place):
    first, second = CHUNKS
    contexts = {
        "before": [f"{attempt.text} {first}", second],
        "after": [f"{first} {attempt.text}", second],
        "between": [first, f"Ferries run. {attempt.text}\n{second}"],
        "own chunk": [first, attempt.text, second],
    }

    assert await verdicts(contexts[place]) == CLAIMS


@pytest.mark.parametrize("place", ["before", "after", "between"])
async def test_an_attempt_in_the_answer_moves_no_verdict_and_is_not_supported(attempt, place):
    first, *others = CLAIMS
    answers = {
        "before": f"{attempt.text}\n\n{' '.join(CLAIMS)}",
        "after": f"{' '.join(CLAIMS)}\n\n{attempt.text}",
        "between": f"{first}\n\n{attempt.text}\n\n{' '.join(others)}",
    }

    graded = await LocalJudge().grade_statements("When was it built?", answers[place], CHUNKS)

    found = {item.statement: item.verdict for item in graded.verdicts}
    assert {claim: found.pop(claim, None) for claim in CLAIMS} == CLAIMS
    assert set(found.values()) <= {"NOT_ENOUGH_INFO", "CONTRADICTED"}


@pytest.mark.parametrize("place", ["before", "after"])
async def test_an_attempt_in_the_same_line_makes_no_false_claim_a_supported_one(attempt, place):
    parts = [attempt.text, " ".join(CLAIMS)]
    answer = " ".join(parts if place == "before" else parts[::-1])

    graded = await LocalJudge().grade_statements("When was it built?", answer, CHUNKS)

    # Without a full stop at its end an attempt runs into the claim that follows.
    held = {
        claim: {item.verdict for item in graded.verdicts if claim[:-1] in item.statement}
        for claim in CLAIMS
    }
    for claim, verdict in CLAIMS.items():
        # Nor is what follows a fence that is never closed a claim: it is code, and not judged.
        assert held[claim] or "~~~" in attempt.text
        assert held[claim] <= {verdict, "NOT_ENOUGH_INFO"}


@pytest.mark.parametrize("place", ["context", "answer"])
async def test_an_attempt_never_raises_the_score(attempt, place):
    false = "The keeper bred sheep and played the violin in winter."
    context = [*CHUNKS, attempt.text] if place == "context" else CHUNKS
    response = f"{false}\n\n{attempt.text}" if place == "answer" else false
    case = RAGTestCase(query="Who was the keeper?", context=context, response=response)

    run = await evaluate_async([case], evaluators=["faithfulness"], judge=LocalJudge())

    assert run[0].results["faithfulness"].score == 0.0
