"""Runs in spans by OpenInference's convention, with chains and without, written by hand."""

import json

import pytest
from hand_written import (
    ANSWER,
    QUESTION,
    TEXTS,
    chain,
    documents,
    io,
    model,
    only,
    reason,
    retriever,
    span,
    triple,
)

from ragaliq.traces import AttributeNames, cases_of_trace


def test_question_answer_and_documents_with_their_ids():
    root = chain()
    found = only([model(root), retriever(root), root])
    assert triple(found) == (QUESTION, TEXTS, ANSWER)
    assert [passage.id for passage in found.log.found.passages] == ["doc-0", "doc-1"]
    assert found.target.span_id == root.span_id


def test_langchain_s_javascript_spans():
    found = [
        {"pageContent": text, "metadata": {"loc": 1}, "id": f"js{i}"}
        for i, text in enumerate(TEXTS)
    ]
    root = chain({"input": QUESTION}, {"answer": ANSWER, "context": found})
    result = only([root, retriever(root, TEXTS[:1]), model(root)])
    assert triple(result) == (QUESTION, TEXTS, ANSWER)
    assert [passage.id for passage in result.log.found.passages] == ["js0", "js1"]


def test_documents_in_one_attribute_as_json():
    root = chain()
    held = json.dumps([{"document": {"content": text}} for text in TEXTS])
    found = span("RETRIEVER", parent=root, attributes={"retrieval.documents": held})
    assert triple(only([root, found]))[1] == TEXTS


def test_a_reranker_leaves_the_documents_of_another_retriever_alone():
    root = chain()
    offered = documents(TEXTS[:1], "reranker.input_documents")
    reranker = span("RERANKER", parent=root, at=(21, 22), attributes=offered)
    both = [retriever(root, TEXTS[:1]), retriever(root, TEXTS[1:], at=(12, 14))]
    assert triple(only([root, *both, reranker]))[1] == TEXTS[1:]


def test_spans_that_are_no_steps_are_looked_through():
    request = span(name="GET /ask")
    root = chain(parent=request)
    database = span(parent=root, name="SELECT", at=(9, 21))
    found = only([request, root, database, retriever(database), model(root)])
    assert triple(found) == (QUESTION, TEXTS, ANSWER)
    assert found.target.span_id == root.span_id


def test_several_chains_of_one_request_are_runs_of_their_own():
    request = span(name="POST /batch")
    first, second = chain(parent=request), chain("Second?", "Yes.", parent=request, at=(50, 90))
    spans = [request, first, retriever(first), second, retriever(second, TEXTS[1:], at=(51, 52))]
    found = cases_of_trace(spans)
    assert [triple(each) for each in found] == [
        ("Second?", TEXTS[1:], "Yes."),
        (QUESTION, TEXTS, ANSWER),
    ]


def test_a_chain_whose_parent_is_missing_is_a_run():
    root = chain(parent="f" * 16)
    assert triple(only([root, retriever(root)])) == (QUESTION, TEXTS, ANSWER)


def test_the_application_s_own_attributes_go_before_everything():
    names = AttributeNames(question="app.question", answer="app.answer", contexts="app.context")
    said = {"app.question": "Asked?", "app.answer": "Said.", "app.context": ["One.", "Two."]}
    root = span("CHAIN", attributes=io(QUESTION, ANSWER) | said)
    (found,) = cases_of_trace([root, retriever(root)], attribute_names=names)
    assert triple(found) == ("Asked?", ["One.", "Two."], "Said.")


HIT = {"_id": "d0", "_score": 0.5, "_source": {"text": TEXTS[0]}}


@pytest.mark.parametrize(
    ("returned", "texts"),
    [
        ({"text": TEXTS[0]}, TEXTS[:1]),
        ({"days": 5}, [json.dumps({"days": 5})]),
        (json.dumps(TEXTS[0]), TEXTS[:1]),
        (TEXTS, TEXTS),
        ({"result": "\n".join(TEXTS)}, ["\n".join(TEXTS)]),
        ({"name": "f", "response": {"result": TEXTS[0]}}, TEXTS[:1]),
        ({"type": "text", "value": TEXTS[0]}, TEXTS[:1]),
        ({"content": [{"type": "text", "text": text} for text in TEXTS], "isError": False}, TEXTS),
        ([{"page_content": text, "metadata": {}} for text in TEXTS], TEXTS),
        ({"retrievalResults": [{"content": {"text": t}, "score": 0.5} for t in TEXTS]}, TEXTS),
        ({"results": [{"file_id": "f", "score": 0.5, "text": text} for text in TEXTS]}, TEXTS),
        ({"data": [{"file_id": "f", "content": [{"type": "text", "text": TEXTS[0]}]}]}, TEXTS[:1]),
        ({"took": 1, "hits": {"total": {"value": 1}, "hits": [HIT]}}, TEXTS[:1]),
        ({"nodes": 1, "documents": [{"node": {"id_": "n", "text": TEXTS[0]}}]}, TEXTS[:1]),
    ],
)
def test_what_a_tool_returned_is_read(returned, texts):
    root = chain(answer="Within a week.")
    tool = span("TOOL", parent=root, at=(10, 20), attributes=io(answer=returned))
    found = triple(only([root, tool, model(root, "Within a week.")]))
    assert found == (QUESTION, texts, "Within a week.")


def test_hits_keep_ids_and_scores():
    root = chain(answer="Within a week.")
    tool = span("TOOL", parent=root, at=(10, 20), attributes=io(answer={"hits": {"hits": [HIT]}}))
    (passage,) = only([root, tool]).log.found.passages
    assert (passage.id, passage.score) == ("d0", 0.5)


def test_what_begins_after_a_run_is_over_is_no_part_of_it():
    over = chain(at=(0, 50))
    later = chain("And the shops?", "At nine.", parent=over, at=(60, 99))
    first, second = cases_of_trace(
        [over, retriever(over, at=(10, 20)), later, retriever(later, TEXTS[1:], at=(70, 80))]
    )
    assert triple(first) == (QUESTION, TEXTS, ANSWER)
    assert triple(second) == ("And the shops?", TEXTS[1:], "At nine.")


def test_what_another_service_writes_may_have_another_clock():
    root = chain(at=(0, 50))
    elsewhere = retriever(root, at=(60, 70), resource={"service.name": "search"})
    assert triple(only([root, elsewhere])) == (QUESTION, TEXTS, ANSWER)


def test_session_and_pipeline():
    root = span("CHAIN", name="support", attributes=io(QUESTION, ANSWER) | {"session.id": "s1"})
    found = only([root, retriever(root)])
    assert (found.pipeline, found.session_id) == ("support", "s1")


@pytest.mark.parametrize(
    ("name", "pipeline"),
    [
        ("Crew_0f3c1a52-7f0e-4a5b-9c57-0a1b2c3d4e5f.kickoff", "Crew.kickoff"),
        ("run 0F3C1A527F0E4A5B9C570A1B2C3D4E5F", "run"),
        ("0f3c1a52-7f0e-4a5b-9c57-0a1b2c3d4e5f", "0f3c1a52-7f0e-4a5b-9c57-0a1b2c3d4e5f"),
        ("support-2024", "support-2024"),
    ],
)
def test_a_pipeline_s_name_is_the_same_in_each_run(name, pipeline):
    root = chain(name=name)
    assert only([root, retriever(root)]).pipeline == pipeline


def test_clocks_that_differ_by_a_tenth_of_a_millisecond():
    root = chain(None)
    spans = [root, retriever(root), model(root, at=(30, 125_000))]
    assert triple(only(spans)) == (QUESTION, TEXTS, ANSWER)


@pytest.mark.parametrize("key", ["session_id", "model", "system_prompt"])
def test_a_lone_text_in_the_input_is_not_taken_for_the_question(key):
    root = chain({key: "You are kind."})
    assert triple(only([root, retriever(root), model(root)]))[0] == QUESTION


def test_what_a_tool_says_that_hands_the_answer_on_is_not_context():
    root = chain(answer="Within a week.")
    search = span("TOOL", parent=root, at=(10, 20), attributes=io("r", TEXTS[1]))
    final = span("TOOL", parent=root, at=(50, 60), attributes=io("r", "Within a week."))
    assert triple(only([root, search, model(root, "Within a week."), final]))[1] == TEXTS[1:]
    assert triple(only([root, search, final]))[1] == TEXTS[1:]


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
