"""What gives no case, and the reason that is counted."""

import pytest
from hand_written import (
    ANSWER,
    QUESTION,
    TEXTS,
    chain,
    io,
    model,
    only,
    reason,
    retriever,
    span,
    triple,
)

from ragaliq.traces import SpanEvent, cases_of_trace


def in_question(root, *others):
    return reason([root, retriever(root), *others])


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("ValueError", "errored"),
        ("asyncio.exceptions.CancelledError", "cancelled"),
        ("GeneratorExit", "cancelled"),
        ("langgraph.errors.GraphInterrupt", "interrupted"),
    ],
)
def test_a_run_that_did_not_end_well(error, expected):
    assert in_question(chain(error=error)) == expected


def test_a_graph_that_waits_for_a_person():
    root = chain()
    asks = SpanEvent(name="exception", attributes={"exception.type": "GraphInterrupt"})
    assert in_question(root, span("CHAIN", parent=root, events=(asks,))) == "interrupted"


def test_a_failed_step_does_not_spoil_a_run():
    root = chain()
    found = only([root, retriever(root), span("LLM", parent=root, error="RateLimitError")])
    assert found.log.had_errors


def test_a_run_without_question_or_answer():
    root = chain(None)
    assert reason([root, retriever(root, query=None)]) == "no_question"
    assert in_question(chain(QUESTION, {"state": 1})) == "no_answer"


@pytest.mark.parametrize(
    ("question", "answer"), [("__REDACTED__", ANSWER), (QUESTION, "__REDACTED__")]
)
def test_hidden_questions_and_answers(question, answer):
    root = chain(question, answer)
    assert reason([root, retriever(root, query=None)]) == "content_hidden"


def test_hidden_documents():
    root = chain()
    attributes = {"retrieval.documents.0.document.content": "__REDACTED__"}
    assert reason([root, span("RETRIEVER", parent=root, attributes=attributes)]) == "content_hidden"


def test_json_that_was_cut():
    cut = {"input.value": '{"question": "How lo', "input.mime_type": "application/json"}
    root = span("CHAIN", attributes=io(None, ANSWER) | cut)
    assert in_question(root) == "attributes_cut"


def test_texts_as_long_as_json_of_the_same_trace_that_was_cut():
    root = chain(answer="Five days.")
    length = len(TEXTS[0])
    state = '{"state": "' + "x" * 99
    cut = {"output.value": state[:length], "output.mime_type": "application/json"}
    elsewhere = span("CHAIN", parent=root, attributes=cut)
    assert in_question(root, elsewhere) == "attributes_cut"
    assert triple(only([root, retriever(root, TEXTS[1:]), elsewhere]))[1] == TEXTS[1:]


def test_attributes_that_were_dropped():
    root = chain()
    incomplete = retriever(root, dropped_attributes=3)
    assert reason([root, incomplete]) == "attributes_cut"


def test_evaluations_are_no_runs():
    root = chain()
    judged = span("EVALUATOR", parent=root, at=(60, 70))
    judging = chain("Is it faithful?", "yes", parent=judged, at=(61, 65))
    own = chain(scope="ragaliq", parent=None)
    assert triple(only([root, retriever(root), judged, judging, own]))[0] == QUESTION


def test_a_bare_retriever_and_a_bare_model_are_no_rag():
    assert reason([retriever(None)]) == "not_rag"
    assert reason([model(None)]) == "not_rag"


def test_parents_in_a_circle():
    first = chain(parent="2" * 16, id="1" * 16)
    second = chain(parent="1" * 16, id="2" * 16)
    assert reason([first, second]) == "malformed"
    assert reason([chain(parent="1" * 16, id="1" * 16)]) == "malformed"
    whole = chain()
    found = cases_of_trace([first, second, whole, retriever(whole)])
    assert sorted(each.reason for each in found) == ["", "malformed"]


def test_a_span_that_comes_twice_counts_once():
    root = chain(id="1" * 16)
    early = chain(answer="Refu", id="1" * 16, at=(0, 50))
    assert triple(only([early, root, retriever(root), root]))[2] == ANSWER
    assert triple(only([root, early, retriever(root)]))[2] == ANSWER


def test_a_value_nested_too_deeply_for_python():
    deep = "[" * 100_000 + "]" * 100_000
    held = {"output.value": deep, "output.mime_type": "application/json"}
    assert in_question(span("CHAIN", attributes=io(QUESTION) | held)) == "attributes_cut"
    listed = {"retrieval.documents": deep}
    root = chain()
    assert reason([root, span("RETRIEVER", parent=root, attributes=listed)]) == "attributes_cut"


def test_a_chain_of_ten_thousand_spans():
    spans = [chain()]
    for _ in range(10_000):
        spans.append(span("CHAIN", parent=spans[-1], at=(1, 99)))
    assert triple(only([*spans, retriever(spans[-1])]))[1] == TEXTS
