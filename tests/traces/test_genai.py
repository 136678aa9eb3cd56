"""Runs in spans by OpenTelemetry's convention for generative AI, written by hand."""

import json

import pytest
from hand_written import ANSWER, QUESTION, TEXTS, only, reason, span, triple

from ragaliq.traces import SpanEvent

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
