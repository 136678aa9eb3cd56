"""A conversation is content like any other: redacted before the judge, and stored when opted in."""

import pytest

from ragaliq import Citation, RAGTestCase, Turn, evaluate, read_records

SECRET = "Anna Keller"
CASE = RAGTestCase(
    query=f"I am {SECRET}. And how long do refunds take?",
    context=["Dogs are welcome in the garden."],
    response=f"You are {SECRET}. Refunds are paid within five days.",
    history=[
        Turn(role="user", text=f"My name is {SECRET}."),
        Turn(
            role="assistant",
            text=f"Hello {SECRET}.",
            context=["Refunds are paid within five days."],
        ),
    ],
    citations=[Citation(start=0, end=20, quote=SECRET, source=SECRET)],
)


def test_the_judge_and_the_results_see_the_redacted_conversation_only():
    def redact(text, kind):
        return text.replace(SECRET, "[name]")

    [evaluation] = evaluate(
        [CASE], metrics=["faithfulness"], judge="local", redact_for_judge=redact
    )
    assert SECRET not in repr(evaluation)
    [citation] = evaluation.case.citations
    assert evaluation.case.response[citation.start : citation.end] == "You are [name]."


@pytest.mark.parametrize("is_captured", [False, True])
def test_it_is_stored_where_content_is_captured_alone(is_captured, tmp_path, monkeypatch):
    monkeypatch.setenv("RAGALIQ_CAPTURE_CONTENT", str(is_captured).lower())
    path = tmp_path / "results.db"
    evaluate([CASE], metrics=["faithfulness"], judge="local", sinks=[f"sqlite:///{path}"])
    [record] = read_records(f"sqlite:///{path}")
    sources = [claim.support_source for claim in record.results["faithfulness"].claims]
    assert sources == ["user", "earlier_turn"]
    assert (SECRET in record.model_dump_json()) is is_captured
    assert bool(record.case and record.case.history) is is_captured
