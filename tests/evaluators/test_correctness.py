"""Correctness: the answer against a reference, and the reference against the answer."""

import pytest

from ragaliq import CorrectnessEvaluator, RAGTestCase, ScoringPolicy, evaluate
from ragaliq.testing import ScriptedJudge

REFERENCE = "Refunds take five days. They are paid to the card."


def case(response, **fields):
    given = {"query": "How are refunds paid?", "context": ["Something else."], **fields}
    return RAGTestCase(response=response, **given)


def scored(response, **fields):
    metric = CorrectnessEvaluator(policy=ScoringPolicy.LIVE)
    [evaluation] = evaluate([case(response, **fields)], metrics=[metric], judge="local")
    return evaluation.results["correctness"]


@pytest.mark.parametrize(
    ("response", "score", "unconfirmed", "missing"),
    [
        (REFERENCE, 1.0, 0, 0),
        ("Refunds take five days.", 1 / 1.5, 0, 1),
        (f"{REFERENCE} Parking is free on Sundays.", 2 / 2.5, 1, 0),
        ("Parking is free on Sundays.", 0.0, 1, 2),
    ],
)
def test_what_is_added_and_what_is_missing_both_count(response, score, unconfirmed, missing):
    result = scored(response, expected_answer=REFERENCE)
    assert result.score == pytest.approx(score)
    assert len(result.raw_response["unconfirmed_claims"]) == unconfirmed
    assert len(result.raw_response["missing_facts"]) == missing
    assert (result.status, result.passed) == ("scored", score >= 0.7)


def test_the_context_plays_no_part():
    fields = {"context": ["Parking is free on Sundays."], "prompt_context": "Parking is free."}
    result = scored("Parking is free on Sundays.", expected_answer=REFERENCE, **fields)
    assert result.score == 0.0


def test_expected_facts_are_a_reference_too():
    facts = ["Refunds take five days.", "Refunds are paid to the card."]
    result = scored("Refunds take five days.", expected_facts=facts)
    assert result.raw_response["missing_facts"] == facts[1:]
    assert result.claims[0].supporting_chunk_ids == ("expected_answer.0",)


@pytest.mark.parametrize(
    ("response", "fields", "status"),
    [
        (REFERENCE, {}, "no_reference"),
        (REFERENCE, {"expected_answer": "  "}, "no_reference"),
        ("", {"expected_answer": REFERENCE}, "empty_answer"),
        ("I do not know.", {"expected_answer": REFERENCE}, "answer_refused"),
    ],
)
def test_where_nothing_can_be_compared_there_is_a_status_and_no_score(response, fields, status):
    result = scored(response, **fields)
    assert (result.status, result.score) == (status, None)


def test_it_is_measured_by_name():
    run = evaluate(
        [case(REFERENCE, expected_answer=REFERENCE)],
        metrics=["correctness"],
        judge=ScriptedJudge(),
    )
    assert run.metrics["correctness"].mean == 1.0


def test_a_summary_names_the_reference():
    run = evaluate(
        [case("Parking is free.", expected_answer=REFERENCE)],
        metrics=["correctness"],
        judge="local",
    )
    assert "'Parking is free.' is not in the reference" in run.summary()
