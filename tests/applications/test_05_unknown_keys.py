"""Line 5: questions and answers under keys that nobody knows."""

from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda
from langchain_parts import ANSWER, Finding, model
from langgraph.graph import START, MessagesState, StateGraph
from rag_parts import PROMPT, QUESTION, joined


@pytest.mark.parametrize(
    "inputs",
    [
        {"wish": QUESTION},
        {"wish": QUESTION, "lang": "en"},
        {"wish": QUESTION, "tenant": "acme", "user_id": "u1"},
    ],
)
def test_a_question_under_an_unknown_key_is_never_the_answer(watch, inputs):
    def answer(given):
        asked = {"context": joined(Finding().invoke("x")), "question": given["wish"]}
        return {"reply": (PROMPT | model()).invoke(asked).text}

    RunnableLambda(answer).invoke(inputs, watch.config)
    assert (watch.only.query, watch.only.response) == (QUESTION, ANSWER)


def test_what_a_chain_returns_under_an_unknown_key_is_no_question(watch):
    RunnableLambda(lambda given: {"reply": model().invoke("x").text}).invoke(3, watch.config)
    assert watch.cases == []
    assert dict(watch.monitor.stats().incomplete) == {"no_question": 1}


class ReportState(MessagesState):
    final_report: str


def test_a_report_next_to_messages_that_hold_only_the_question_is_the_answer(watch):
    def write(state):
        given = {"question": QUESTION, "context": joined(Finding().invoke(QUESTION))}
        return {"final_report": (PROMPT | model() | StrOutputParser()).invoke(given)}

    builder = StateGraph(ReportState).add_node(write)
    builder.add_edge(START, "write")
    builder.compile().invoke({"messages": [HumanMessage(QUESTION)]}, watch.config)
    assert (watch.only.query, watch.only.response) == (QUESTION, ANSWER)
