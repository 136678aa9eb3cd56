"""LocalJudge compares wording: nothing in a text speaks to it, and its verdicts stay."""

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


async def test_an_attempt_in_the_context_moves_no_verdict(attempt):
    first, second = CHUNKS
    for context in (
        [f"{attempt.text} {first}", second],
        [f"{first} {attempt.text}", second],
        [first, f"Ferries run. {attempt.text}\n{second}"],
        [first, attempt.text, second],
    ):
        assert await verdicts(context) == CLAIMS


async def graded(answer):
    return (await LocalJudge().grade_statements("When was it built?", answer, CHUNKS)).verdicts


async def test_an_attempt_in_the_answer_moves_no_verdict_and_is_not_supported(attempt):
    first, *others = CLAIMS
    for answer in (
        f"{attempt.text}\n\n{' '.join(CLAIMS)}",
        f"{' '.join(CLAIMS)}\n\n{attempt.text}",
        f"{first}\n\n{attempt.text}\n\n{' '.join(others)}",
    ):
        found = {item.statement: item.verdict for item in await graded(answer)}
        assert {claim: found.pop(claim, None) for claim in CLAIMS} == CLAIMS
        assert set(found.values()) <= {"NOT_ENOUGH_INFO", "CONTRADICTED"}


async def test_an_attempt_in_the_same_line_makes_no_false_claim_a_supported_one(attempt):
    claims = " ".join(CLAIMS)
    for answer in (f"{attempt.text} {claims}", f"{claims} {attempt.text}"):
        rows = await graded(answer)
        for claim, verdict in CLAIMS.items():
            # Without a full stop at its end an attempt runs into the claim that follows.
            held = {item.verdict for item in rows if claim[:-1] in item.statement}
            # Nor is what follows a fence that is never closed a claim: it is code, and not judged.
            assert held or "~~~" in attempt.text
            assert held <= {verdict, "NOT_ENOUGH_INFO"}


async def test_an_attempt_never_raises_the_score(attempt):
    false = "The keeper bred sheep and played the violin in winter."
    query = "Who was the keeper?"
    cases = [
        RAGTestCase(query=query, context=[*CHUNKS, attempt.text], response=false),
        RAGTestCase(query=query, context=CHUNKS, response=f"{false}\n\n{attempt.text}"),
    ]
    run = await evaluate_async(cases, metrics=["faithfulness"], judge=LocalJudge())
    assert [result.results["faithfulness"].score for result in run] == [0.0, 0.0]
