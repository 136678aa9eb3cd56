"""Whatever the requests of one case end in, the other cases of the run keep their results."""

import pytest

from loopback import MessagesServer, Reply, faults
from ragaliq import ClaudeJudge, RAGTestCase, evaluate

RETRIES = 1
FAULTS = {
    "judge_refused": faults.refusal,
    "judge_timeout": lambda: faults.slow(1.0),
    "judge_error": faults.overloaded,
}


@pytest.mark.parametrize("status", FAULTS)
@pytest.mark.parametrize("step", ["claims", "verdicts"])
def test_a_fault_costs_one_case_its_score_and_at_most_the_sdks_own_requests(status, step):
    cases = [
        RAGTestCase(query="q", context=["Lamps shine."], response=f"Lamps shine. {mark}")
        for mark in ("First.", "Second.", "Third.")
    ]

    def respond(request):
        is_hit = "Second." in request.text and step in request.schema["properties"]
        return FAULTS[status]() if is_hit else Reply()

    with MessagesServer(respond=respond) as server:
        judge = ClaudeJudge(
            api_key="not-a-key", base_url=server.url, max_retries=RETRIES, timeout=0.4
        )
        run = evaluate(cases, metrics=["faithfulness"], judge=judge, concurrency=3)
        asked = sum("Second." in request.text for request in server.requests)
    results = [row.results["faithfulness"] for row in run]
    assert [result.status.value for result in results] == ["scored", status, "scored"]
    assert results[1].score is None
    assert asked <= (1 + RETRIES) + (step == "verdicts")
    assert run.metrics["faithfulness"].measured == 2


def test_two_hundred_claims_over_a_hundred_chunks_are_all_decided():
    chunks = [f"Number {i} was made in {1000 + i}." for i in range(100)]
    answer = " ".join(f"Number {i} was made in {1000 + i % 150}." for i in range(200))
    case = RAGTestCase(query="When?", context=chunks, response=answer)
    with MessagesServer() as server:
        judge = ClaudeJudge(api_key="not-a-key", base_url=server.url)
        run = evaluate([case], metrics=["faithfulness", "hallucination"], judge=judge)
        calls = len(server.requests)
    result = run[0].results["faithfulness"]
    assert result.status.value == "scored"
    assert len(result.claims) == 200
    assert result.raw_response["total_claims"] == 200
    assert result.raw_response["supported_claims"] == 100
    assert calls == 1 + 200 / judge.max_claims
