"""Runs in spans by the conventions, written by hand: the case of each, or why there is none."""

import json

import pytest
from hand_written import (
    ANSWER,
    QUESTION,
    ROOT,
    TEXTS,
    chain,
    chat,
    documents,
    genai,
    message,
    model,
    only,
    reason,
    request,
    retriever,
    span,
    tool,
    triple,
)

from ragaliq.traces import AttributeNames, SpanEvent, cases_of_trace
from ragaliq.traces.llama_index import SCOPE as LLAMA_INDEX_SCOPE

WEEK = "Within a week."
IN_JSON = {"output.mime_type": "application/json"}
HITS = [{"id": f"d{i}", "content": text, "score": 0.5} for i, text in enumerate(TEXTS)]
ASKED, SAID = message("user", QUESTION), message("assistant", ANSWER)


def event(name, **attributes):
    return SpanEvent(name=name, attributes=attributes)


def search(found=HITS):
    return genai("retrieval", at=(10, 20), retrieval__documents=found)


def agent(**more):
    return genai(
        "invoke_agent", parent=None, input__messages=ASKED, output__messages=SAID, **more
    )._replace(span_id=ROOT)


def workflow(operation="invoke_workflow", **more):
    return genai(operation, parent=None, **more)._replace(span_id=ROOT)


HIDDEN = {"retrieval.documents.0.document.content": "__REDACTED__"}
OFFERED = documents(TEXTS[:1], "reranker.input_documents")
ONE_ATTRIBUTE = {
    "retrieval.documents": json.dumps([{"document": {"content": text}} for text in TEXTS])
}
# As an SDK holds them that allows lists in attributes.
LISTS = {
    "gen_ai.operation.name": "invoke_agent",
    "gen_ai.input.messages": ASKED,
    "gen_ai.output.messages": SAID,
}
IN_AN_EVENT = event(
    "gen_ai.client.inference.operation.details",
    **{"gen_ai.input.messages": json.dumps(ASKED), "gen_ai.output.messages": json.dumps(SAID)},
)
EVENTS = (
    event("gen_ai.user.message", content=QUESTION),
    event("gen_ai.choice", message=json.dumps({"content": ANSWER})),
)
PROMPT = f"Use this: {' '.join(TEXTS)} Question: {QUESTION}"
LATE = {"at": (60, 70), "resource": {"service.name": "search"}}
EARLY = chain(answer="Refu", at=(0, 50))
LOOKED_THROUGH = (request("a" * 16), span(parent=ROOT, name="SELECT", at=(9, 21), id="b" * 16))
JUDGED = span("EVALUATOR", parent=ROOT, at=(60, 70), id="e" * 16)
JUDGING = chain("Is it faithful?", "yes", parent="e" * 16, at=(61, 65), id="2" * 16)

# By behaviour: spans of the usual question, documents and answer.
READ = {
    "spans come in any order": [model(), retriever(), chain()],
    "documents may be in one attribute": [
        chain(),
        span("RETRIEVER", parent=ROOT, attributes=ONE_ATTRIBUTE),
    ],
    "spans that are no steps are looked through": [
        *LOOKED_THROUGH,
        *(chain(parent="a" * 16), retriever("b" * 16), model()),
    ],
    "a chain's parent may be missing": [chain(parent="f" * 16), retriever()],
    "a request's span may be missing": [retriever(), model()],
    "another service may have another clock": [chain(at=(0, 50)), retriever(**LATE)],
    "clocks may differ a little": [chain(None), retriever(), model(at=(30, 125_000))],
    **{
        f"a lone text in the input, a {key}, is no question": [
            *(chain({key: "You are kind."}), retriever(), model()),
        ]
        for key in ("session_id", "model", "system_prompt")
    },
    "a prompt around the context is no question": [request(), retriever(), model(asked=PROMPT)],
    "a model that calls a tool is asked twice": [
        *(request(), model(reply="", at=(1, 5)), retriever(), model()),
    ],
    "evaluations are no runs": [
        *(chain(), retriever(), JUDGED, JUDGING, chain(scope="ragaliq", id="3" * 16)),
    ],
    "of a span that comes twice the whole counts": [EARLY, chain(), retriever(), chain()],
    "of a span that comes twice the later counts": [chain(), EARLY, retriever()],
    "an agent by GenAI": [agent(), search(), chat()],
    "messages by GenAI may be lists": [span(attributes=LISTS, id=ROOT), search()],
    "a workflow by GenAI may say nothing itself": [workflow(), search(), chat()],
    "messages by GenAI may be events": [
        *(workflow(), search(), genai("chat", at=(30, 40), events=EVENTS)),
    ],
    "messages by GenAI may be in an event": [
        workflow("invoke_agent", events=(IN_AN_EVENT,)),
        search(),
    ],
}


@pytest.mark.parametrize("spans", READ.values(), ids=READ)
def test_a_run_is_read(spans):
    assert triple(only(spans)) == (QUESTION, TEXTS, ANSWER)


def test_a_reranker_leaves_the_documents_of_another_retriever_alone():
    both = [retriever(texts=TEXTS[:1]), retriever(texts=TEXTS[1:], at=(12, 14))]
    reranker = span("RERANKER", parent=ROOT, at=(21, 22), attributes=OFFERED)
    assert triple(only([chain(), *both, reranker]))[1] == TEXTS[1:]


@pytest.mark.parametrize("models", [[model(reply=WEEK)], []])
def test_what_a_tool_says_that_hands_the_answer_on_is_not_context(models):
    spans = [chain(answer=WEEK), tool(TEXTS[1]), *models, tool(WEEK, at=(50, 60))]
    assert triple(only(spans))[1] == TEXTS[1:]


@pytest.mark.parametrize(
    ("result", "text"),
    [({"text": "Five days."}, "Five days."), ({"days": 5}, '{"days": 5}')],
)
def test_of_a_tool_s_result_the_texts_are_context(result, text):
    held = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.result": result}
    called = span(parent=ROOT, at=(10, 20), attributes=held)
    assert triple(only([agent(), called, chat()]))[1] == [text]


def test_texts_as_long_as_json_of_the_same_trace_that_was_cut():
    state = ('{"state": "' + "x" * 99)[: len(TEXTS[0])]
    elsewhere = span("CHAIN", parent=ROOT, attributes={"output.value": state, **IN_JSON})
    root = chain(answer="Five days.")
    assert reason([root, retriever(), elsewhere]) == "attributes_cut"
    assert triple(only([root, retriever(texts=TEXTS[1:]), elsewhere]))[1] == TEXTS[1:]


CUT = {"input.value": '{"question": "How lo', "input.mime_type": "application/json"}
DEEP = "[" * 100_000 + "]" * 100_000
WAITS = event("exception", **{"exception.type": "GraphInterrupt"})
SECOND = [retriever(at=(50, 60)), model(reply="No.", asked="Why?", at=(70, 80))]


def of_finished(finish):
    called = genai("chat", at=(10, 20), response__finish_reasons=[finish])
    return [request(), called, genai("chat")]


def found_in(held):
    return [chain(), span("RETRIEVER", parent=ROOT, attributes=held)]


REASONS = [
    ("ambiguous", [request(), retriever(), model(), *SECOND]),
    ("content_hidden", [agent(), search([{"id": "d0", "score": 1.0}]), chat()]),
    ("content_hidden", [agent(), search("hidden"), chat()]),
    ("content_hidden", of_finished("tool_calls")),
    ("not_rag", of_finished("stop")),
    ("no_answer", [workflow("invoke_agent", input__messages=ASKED), search()]),
    ("errored", [chain(error="ValueError"), retriever()]),
    ("cancelled", [chain(error="asyncio.exceptions.CancelledError"), retriever()]),
    ("cancelled", [chain(error="GeneratorExit"), retriever()]),
    ("interrupted", [chain(error="langgraph.errors.GraphInterrupt"), retriever()]),
    ("interrupted", [chain(), retriever(), span("CHAIN", parent=ROOT, events=(WAITS,))]),
    ("no_question", [chain(None), retriever(query=None)]),
    ("no_answer", [chain(QUESTION, {"state": 1}), retriever()]),
    ("content_hidden", [chain("__REDACTED__"), retriever(query=None)]),
    ("content_hidden", [chain(answer="__REDACTED__"), retriever(query=None)]),
    ("content_hidden", found_in(HIDDEN)),
    ("attributes_cut", [chain(None, attributes=CUT), retriever()]),
    ("attributes_cut", [chain(), retriever(dropped_attributes=3)]),
    (
        "attributes_cut",
        [chain(answer=None, attributes={"output.value": DEEP, **IN_JSON}), retriever()],
    ),
    ("attributes_cut", found_in({"retrieval.documents": DEEP})),
    ("not_rag", [retriever(None)]),
    ("not_rag", [model(None)]),
    ("malformed", [chain(parent="2" * 16), chain(parent=ROOT, id="2" * 16)]),
    ("malformed", [chain(parent=ROOT)]),
]


@pytest.mark.parametrize(("expected", "spans"), REASONS)
def test_a_run_without_a_case_has_a_reason(expected, spans):
    assert reason(spans) == expected


def test_ids_session_and_pipeline():
    found = only([chain(name="support", attributes={"session.id": "s1"}), retriever()])
    assert (found.run.pipeline, found.run.session_id, found.target.span_id) == (
        "support",
        "s1",
        ROOT,
    )
    assert [passage.id for passage in found.log.found_context.passages] == ["doc-0", "doc-1"]
    found = only([agent(conversation__id="c1"), search(), chat()])
    assert [passage.id for passage in found.log.found_context.passages] == ["d0", "d1"]
    assert (found.run.session_id, found.target.source) == ("c1", "genai")


def test_langchain_s_javascript_spans():
    found = [
        {"pageContent": text, "metadata": {"loc": 1}, "id": f"js{i}"}
        for i, text in enumerate(TEXTS)
    ]
    root = chain({"input": QUESTION}, {"answer": ANSWER, "context": found})
    result = only([root, retriever(texts=TEXTS[:1]), model()])
    assert triple(result) == (QUESTION, TEXTS, ANSWER)
    assert [passage.id for passage in result.log.found_context.passages] == ["js0", "js1"]


def test_several_runs_of_one_trace():
    first, second = "a" * 16, "b" * 16
    other = {"at": (51, 52), "texts": TEXTS[1:]}
    chains = [
        request(),
        chain(parent=ROOT, id=first),
        retriever(first),
        chain("Second?", "Yes.", parent=ROOT, at=(50, 90), id=second),
        retriever(second, **other),
    ]
    assert [triple(each) for each in cases_of_trace(chains)] == [
        ("Second?", TEXTS[1:], "Yes."),
        (QUESTION, TEXTS, ANSWER),
    ]
    requests = [
        request(),
        *(request(first, parent=ROOT), retriever(first), model(first)),
        *(request(second, parent=ROOT, at=(200, 300)), retriever(second, at=(210, 220))),
        model(second, "No.", asked="Why?", at=(230, 240)),
    ]
    assert [triple(each)[2] for each in cases_of_trace(requests)] == [ANSWER, "No."]
    below_one_that_is_over = [
        chain(at=(0, 50)),
        retriever(at=(10, 20)),
        chain("And the shops?", "At nine.", parent=ROOT, at=(60, 99), id=second),
        retriever(second, TEXTS[1:], at=(70, 80)),
    ]
    assert [triple(each) for each in cases_of_trace(below_one_that_is_over)] == [
        (QUESTION, TEXTS, ANSWER),
        ("And the shops?", TEXTS[1:], "At nine."),
    ]
    knotted = [chain(parent="3" * 16, id="2" * 16), chain(parent="2" * 16, id="3" * 16)]
    found = cases_of_trace([*knotted, chain(), retriever()])
    assert sorted(each.reason for each in found) == ["", "malformed"]


def test_the_application_s_own_attributes_go_before_everything():
    names = AttributeNames(question="app.question", answer="app.answer", contexts="app.context")
    said = {"app.question": "Asked?", "app.answer": "Said.", "app.context": ["One.", "Two."]}
    (found,) = cases_of_trace([chain(attributes=said), retriever()], attribute_names=names)
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
    found = triple(only([chain(answer=WEEK), tool(returned), model(reply=WEEK)]))
    assert found == (QUESTION, texts, WEEK)


def test_hits_keep_ids_and_scores():
    (passage,) = only(
        [chain(answer=WEEK), tool({"hits": {"hits": [HIT]}})]
    ).log.found_context.passages
    assert (passage.id, passage.score) == ("d0", 0.5)


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
    assert only([chain(name=name), retriever()]).run.pipeline == pipeline


def test_a_failed_step_does_not_spoil_a_run():
    found = only([chain(), retriever(), span("LLM", parent=ROOT, error="RateLimitError")])
    assert found.log.had_errors


# --- many spans; tests/benchmarks times these ----------------------------------------------------

MANY = 1_000


def a_chain_of_spans(many=10 * MANY):
    spans = [chain()]
    for _ in range(many):
        spans.append(span("CHAIN", parent=spans[-1], at=(1, 99)))
    return [*spans, retriever(spans[-1])]


def said(number):
    return f"Paragraph {number} says that item {number * 7919} costs {number} crowns."


def found(number):
    return {"retrieval.documents.0.document.content": said(number)}


def retrievers_that_embed(many=MANY):
    steps = [span("RETRIEVER", parent=ROOT, attributes=found(n)) for n in range(many)]
    return [chain(), *steps, *(span("EMBEDDING", parent=step) for step in steps)]


def a_reranker_each(many=MANY):
    steps = [chain(at=(0, 3 * many))]
    for number in range(many):
        ranked = {
            f"reranker.{side}_documents.0.document.content": said(number)
            for side in ("input", "output")
        }
        at = (2 * number, 2 * number + 1)
        steps.append(span("RETRIEVER", parent=ROOT, at=at, attributes=found(number)))
        steps.append(span("RERANKER", parent=ROOT, at=(at[1], at[1]), attributes=ranked))
    return steps


def documents_in_one_prompt(many=MANY):
    texts = [said(number) for number in range(many)]
    held = {f"retrieval.documents.{n}.document.content": text for n, text in enumerate(texts)}
    search = span("RETRIEVER", parent=ROOT, at=(10, 20), attributes=held)
    return [chain(), search, model(asked="\n".join([*texts, QUESTION]))]


def tools_in_one_prompt(many=MANY):
    texts = [said(number) for number in range(many)]
    tools = [tool(text, at=(number, number + 1)) for number, text in enumerate(texts)]
    asked = model(asked="\n".join([*texts, QUESTION]), at=(many + 1, many + 2))
    return [chain(at=(0, 9 * many)), *tools, asked]


def syntheses(many=MANY):
    made = {"name": "S.synthesize", "scope": LLAMA_INDEX_SCOPE, "parent": ROOT}
    root = chain(name="E.query", scope=LLAMA_INDEX_SCOPE)
    return [root, *(span("CHAIN", **made) for _ in range(many))]


@pytest.mark.parametrize(
    ("steps", "passages"),
    [
        (a_chain_of_spans, len(TEXTS)),
        (retrievers_that_embed, MANY),
        (a_reranker_each, MANY),
        (documents_in_one_prompt, MANY),
        (tools_in_one_prompt, MANY),
        (syntheses, 0),
    ],
)
def test_many_steps(steps, passages):
    assert len(only(steps()).log.found_context.passages) == passages


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
