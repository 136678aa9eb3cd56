"""Runs in spans by the conventions, written by hand: the case of each, or why there is none."""

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

from ragaliq.traces import AttributeNames, SpanEvent, cases_of_trace
from ragaliq.traces.conventions import LLAMA_INDEX_SCOPE


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


FOUND = [{"id": f"d{i}", "content": text, "score": 0.5} for i, text in enumerate(TEXTS)]


def message(role, text):
    return [{"role": role, "parts": [{"type": "text", "content": text}]}]


def step(operation, *, parent=None, at=(0, 100), events=(), **attributes):
    held = {"gen_ai.operation.name": operation}
    for name, value in attributes.items():
        full = "gen_ai." + name.replace("__", ".")
        held[full] = value if isinstance(value, str) else json.dumps(value)
    return span(parent=parent, at=at, attributes=held, events=events)


def agent(**more):
    said = {"input__messages": message("user", QUESTION)}
    said["output__messages"] = message("assistant", ANSWER)
    return step("invoke_agent", **said | more)


def retrieval(parent, found=FOUND):
    said = {"retrieval__query.text": QUESTION, "retrieval__documents": found}
    return step("retrieval", parent=parent, at=(10, 20), **said)


def chat(parent, reply=ANSWER, *, asked=QUESTION, at=(30, 40)):
    said = {"input__messages": message("user", asked)}
    return step("chat", parent=parent, at=at, output__messages=message("assistant", reply), **said)


def test_an_agent_with_its_retrieval():
    root = agent(conversation__id="c1")
    found = only([root, retrieval(root), chat(root)])
    assert triple(found) == (QUESTION, TEXTS, ANSWER)
    assert [passage.id for passage in found.log.found.passages] == ["d0", "d1"]
    assert (found.session_id, found.target.source) == ("c1", "genai")


def test_messages_as_attributes_of_other_types():
    root = span(
        attributes={
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.input.messages": message("user", QUESTION),
            "gen_ai.output.messages": message("assistant", ANSWER),
        }
    )
    assert triple(only([root, retrieval(root)])) == (QUESTION, TEXTS, ANSWER)


def test_a_workflow_that_says_nothing_itself():
    root = step("invoke_workflow")
    assert triple(only([root, retrieval(root), chat(root)])) == (QUESTION, TEXTS, ANSWER)


def test_messages_in_events():
    events = (
        SpanEvent(name="gen_ai.user.message", attributes={"content": QUESTION}),
        SpanEvent(name="gen_ai.choice", attributes={"message": json.dumps({"content": ANSWER})}),
    )
    root = step("invoke_workflow")
    model = step("chat", parent=root, at=(30, 40), events=events)
    assert triple(only([root, retrieval(root), model])) == (QUESTION, TEXTS, ANSWER)


def test_messages_in_the_event_with_all_details():
    details = {
        "gen_ai.input.messages": json.dumps(message("user", QUESTION)),
        "gen_ai.output.messages": json.dumps(message("assistant", ANSWER)),
    }
    event = SpanEvent(name="gen_ai.client.inference.operation.details", attributes=details)
    root = step("invoke_agent", events=(event,))
    assert triple(only([root, retrieval(root)])) == (QUESTION, TEXTS, ANSWER)


@pytest.mark.parametrize(
    ("result", "text"),
    [({"text": "Five days."}, "Five days."), ({"days": 5}, '{"days": 5}')],
)
def test_of_a_tool_s_result_the_texts_are_context(result, text):
    root = agent()
    held = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.result": result}
    tool = span(parent=root, at=(10, 20), attributes=held)
    assert triple(only([root, tool, chat(root)]))[1] == [text]


@pytest.mark.parametrize("found", [[{"id": "d0", "score": 1.0}], "hidden"])
def test_documents_without_their_texts(found):
    root = agent()
    assert reason([root, retrieval(root, found), chat(root)]) == "content_hidden"


@pytest.mark.parametrize(
    ("finish", "expected"), [("tool_calls", "content_hidden"), ("stop", "not_rag")]
)
def test_models_without_content_of_which_one_called_a_tool(finish, expected):
    request = span(name="POST /ask")
    reasons = {"response__finish_reasons": [finish]}
    calls = [step("chat", parent=request, at=(10, 20), **reasons), step("chat", parent=request)]
    assert reason([request, *calls]) == expected


def test_an_answer_that_was_not_captured():
    root = step("invoke_agent", input__messages=message("user", QUESTION))
    assert reason([root, retrieval(root)]) == "no_answer"


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


MANY = 1_000


def found(number):
    return {"retrieval.documents.0.document.content": f"Text {number}."}


def retrievers_that_embed(many=MANY):
    root = chain()
    steps = [span("RETRIEVER", parent=root, attributes=found(n)) for n in range(many)]
    return [root, *steps, *(span("EMBEDDING", parent=step) for step in steps)]


def a_reranker_each(many=MANY):
    root, steps = chain(at=(0, 3 * many)), []
    for number in range(many):
        (held,) = found(number).values()
        ranked = {
            f"reranker.{side}_documents.0.document.content": held for side in ("input", "output")
        }
        at = (2 * number, 2 * number + 1)
        steps.append(span("RETRIEVER", parent=root, at=at, attributes=found(number)))
        steps.append(span("RERANKER", parent=root, at=(at[1], at[1]), attributes=ranked))
    return [root, *steps]


def said(number):
    return f"Paragraph {number} says that item {number * 7919} costs {number} crowns."


def documents_in_one_prompt(many=MANY):
    root, texts = chain(), [said(number) for number in range(many)]
    held = {f"retrieval.documents.{n}.document.content": text for n, text in enumerate(texts)}
    search = span("RETRIEVER", parent=root, at=(10, 20), attributes=held)
    return [root, search, model(root, asked="\n".join([*texts, QUESTION]))]


def tools_in_one_prompt(many=MANY):
    root, texts = chain(at=(0, 9 * many)), [said(number) for number in range(many)]
    tools = [
        span("TOOL", parent=root, at=(number, number + 1), attributes=io("q", text))
        for number, text in enumerate(texts)
    ]
    asked = "\n".join([*texts, QUESTION])
    return [root, *tools, model(root, asked=asked, at=(many + 1, many + 2))]


@pytest.mark.parametrize(
    "steps",
    [retrievers_that_embed, a_reranker_each, documents_in_one_prompt, tools_in_one_prompt],
)
def test_searches(steps):
    assert len(only(steps()).log.found.passages) == MANY


def syntheses(many=MANY):
    root = span("CHAIN", name="E.query", scope=LLAMA_INDEX_SCOPE, attributes=io(QUESTION, ANSWER))
    made = {"name": "S.synthesize", "scope": LLAMA_INDEX_SCOPE, "parent": root}
    return [root, *(span("CHAIN", **made) for _ in range(many))]


def test_syntheses():
    assert list(only(syntheses()).log.found.passages) == []


def requests_inside_each_other(many=MANY):
    outer, steps = None, []
    for _ in range(many):
        outer = span(parent=outer)
        steps += [outer, model(outer)]
    return [*steps, retriever(outer)]


def test_requests_inside_each_other():
    steps = requests_inside_each_other()
    assert {case.target.span_id: case.reason for case in cases_of_trace(steps)} == {
        steps[-1].parent_id: "",
        steps[1].span_id: "not_rag",
    }
