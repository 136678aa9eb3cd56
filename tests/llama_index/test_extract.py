"""Reading texts off LlamaIndex's objects."""

import inspect

import pytest
from llama_index.core.agent.workflow.workflow_events import AgentOutput, AgentWorkflowStartEvent
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    ImageBlock,
    TextBlock,
)
from llama_index.core.base.response.schema import PydanticResponse, Response
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.schema import ImageNode, NodeWithScore, QueryBundle
from llama_index.core.workflow import StartEvent, StopEvent

from llama_index.evaluation.ragaliq.reading import (
    answer_of,
    inputs_of,
    passages_of,
    payload_of,
    question_of_call,
    question_of_run,
)


class Verdict(BaseModel):
    days: int


class Reply(BaseModel):
    answer: str
    confidence: float


class Done(StopEvent):
    answer: str
    confidence: float


def started(event):
    return inspect.signature(lambda init_state, start_event, tags: None).bind({}, event, {})


def called(*args, **kwargs):
    return inspect.signature(lambda str_or_query_bundle, **rest: None).bind(*args, **kwargs)


def test_nodes_without_text_are_left_out(nodes):
    found = [*nodes("text", "  "), NodeWithScore(node=ImageNode(image_path="x.png"))]
    assert [passage.text for passage in passages_of(found)] == ["text"]


@pytest.mark.parametrize(
    "question",
    ["Why?", QueryBundle("Why?"), ChatMessage("Why?"), ChatMessage([TextBlock(text="Why?")])],
    ids=type,
)
def test_a_question_may_be_a_string_a_bundle_or_a_message(question):
    assert question_of_call(inputs_of(called(question))).text == "Why?"
    assert question_of_call(inputs_of(called(str_or_query_bundle=question))).text == "Why?"


@pytest.mark.parametrize(
    ("event", "question"),
    [
        (StartEvent(query="Why?", user="bob"), "Why?"),
        (StartEvent(topic="Why?"), "Why?"),
        (AgentWorkflowStartEvent(user_msg="Why?", chat_history=None), "Why?"),
        (
            AgentWorkflowStartEvent(
                user_msg=None,
                chat_history=[ChatMessage("Why?"), ChatMessage("Hm.", role="assistant")],
            ),
            "Why?",
        ),
        (StartEvent(first="a", second="b"), ""),
        (None, ""),
    ],
)
def test_a_workflows_question_is_in_its_start_event(event, question):
    assert question_of_run(inputs_of(started(event))).text == question


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("five", "five"),
        (Response(None), ""),
        (PydanticResponse(Verdict(days=5)), "days: 5"),
        (PydanticResponse(Reply(answer="five", confidence=0.9)), "five"),
        (ChatResponse(message=ChatMessage("five")), "five"),
        (CompletionResponse(text="five"), "five"),
        (ChatMessage([ImageBlock(url="http://127.0.0.1/x.png"), TextBlock(text="five")]), "five"),
        (StopEvent(result=Response("five")), "five"),
        (StopEvent(result={"answer": "five", "cost": 1}), "five"),
        (StopEvent(result={"summary": "five", "cost": 1}), "summary: five"),
        (StopEvent(result={"one": "a", "two": "b"}), "one: a\n\ntwo: b"),
        (Done(answer="five", confidence=0.5), "five"),
        (
            StopEvent(
                result=AgentOutput(
                    response=ChatMessage(role="assistant", blocks=[]),
                    structured_response={"days": 5},
                    current_agent_name="a",
                )
            ),
            "days: 5",
        ),
        (None, ""),
    ],
)
def test_answers_are_found_in_whatever_a_run_returns(result, answer):
    assert answer_of(payload_of(result)) == answer
