"""Retrievers and models that an application calls itself, without any chain."""

from __future__ import annotations

from hand_written import ANSWER, QUESTION, TEXTS, model, only, reason, retriever, span, triple

from ragaliq.traces import cases_of_trace


def test_the_request_s_span_may_be_missing():
    found = only([retriever("f" * 16), model("f" * 16)])
    assert triple(found) == (QUESTION, TEXTS, ANSWER)


def test_a_prompt_with_the_context_in_it_is_not_the_question():
    request = span(name="GET /ask")
    prompt = f"Use this: {TEXTS[0]} Question: {QUESTION}"
    assert triple(only([request, retriever(request), model(request, asked=prompt)]))[0] == QUESTION


def test_each_request_of_a_trace_is_a_run():
    batch = span(name="batch")
    first, second = span(name="one", parent=batch), span(name="two", parent=batch, at=(200, 300))
    spans = [batch, first, retriever(first), model(first), second]
    spans += [retriever(second, at=(210, 220)), model(second, "No.", asked="Why?", at=(230, 240))]
    assert [triple(each)[2] for each in cases_of_trace(spans)] == [ANSWER, "No."]


def test_several_questions_in_one_request_cannot_be_told_apart():
    request = span(name="POST /batch")
    spans = [request, retriever(request), model(request)]
    spans += [retriever(request, at=(50, 60)), model(request, "No.", asked="Why?", at=(70, 80))]
    assert reason(spans) == "ambiguous"


def test_a_model_that_calls_a_tool_first_is_asked_twice_for_one_answer():
    request = span(name="GET /ask")
    spans = [request, model(request, "", at=(1, 5)), retriever(request), model(request)]
    assert triple(only(spans)) == (QUESTION, TEXTS, ANSWER)
