"""LangGraph graphs written by hand, with a state of the application's own."""

import asyncio
import dataclasses
import operator
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from pydantic import BaseModel
from rag_parts import (
    ANSWER,
    PROMPT,
    QUESTION,
    REFUNDS,
    SHIPPING,
    FixedRetriever,
    documents,
    joined,
    model,
    rag_chain,
)

from langchain_ragaliq import attach

EXPECTED = (QUESTION, REFUNDS, ANSWER)


class State(TypedDict, total=False):
    question: str
    documents: list[Document]
    generation: str


class Answer(TypedDict):
    generation: str


def retrieve(state):
    return {"documents": FixedRetriever().invoke(state["question"])}


def grade(state):
    """Keeps the first document, after asking a model about each."""
    for _ in state["documents"]:
        model("yes").invoke("Is this relevant?")
    return {"documents": state["documents"][:1]}


def generate(state):
    inputs = {"context": joined(state["documents"]), "question": state["question"]}
    return {"generation": (PROMPT | model()).invoke(inputs).text}


def check(state):
    """Asks a model about the answer that is already there."""
    model("grounded: yes").invoke(state["generation"])
    return {}


def graph(*nodes, state=State, output=None, **options):
    builder = StateGraph(state, output_schema=output or state)
    builder.add_sequence(nodes)
    builder.add_edge(START, nodes[0].__name__)
    builder.add_edge(nodes[-1].__name__, END)
    return builder.compile(**options)


def test_events_that_arrive_twice_change_nothing(watch, invoke):
    attach(watch.handler)
    rag = graph(retrieve, grade, generate, check, output=Answer)
    invoke(rag.with_config(watch.config), {"question": QUESTION}, watch.config)
    assert watch.only == (QUESTION, REFUNDS[:1], ANSWER)


@pytest.mark.parametrize("output", [State, Answer])
def test_a_grader_that_rejects_everything_leaves_no_context(watch, invoke, output):
    def reject(state):
        return {"documents": []}

    rag = graph(retrieve, reject, generate, output=output)
    invoke(rag, {"question": QUESTION}, watch.config)
    assert watch.only == (QUESTION, [], ANSWER)


def test_documents_collected_by_a_reducer_are_all_context(watch, invoke):
    class Collected(TypedDict, total=False):
        question: str
        documents: Annotated[list[Document], operator.add]
        generation: str

    def search_web(state):
        return {"documents": documents(SHIPPING)}

    rag = graph(retrieve, search_web, generate, state=Collected, output=Answer)
    invoke(rag, {"question": QUESTION}, watch.config)
    assert watch.only == (QUESTION, REFUNDS + SHIPPING, ANSWER)


def test_a_model_that_checks_the_answer_does_not_give_it(watch, invoke):
    invoke(graph(retrieve, generate, check), {"question": QUESTION}, watch.config)
    assert watch.only == EXPECTED


def test_a_state_without_an_answer_has_none_although_a_model_was_asked(watch, invoke):
    invoke(graph(retrieve, grade), {"question": QUESTION}, watch.config)
    assert watch.incomplete == {"no_answer": 1}


def test_a_graph_that_is_streamed(watch, stream):
    stream(graph(retrieve, generate), {"question": QUESTION}, watch.config)
    assert watch.only == EXPECTED


def test_documents_of_an_earlier_turn_in_the_kept_state_are_not_this_turns(watch, invoke):
    def maybe_retrieve(state):
        return retrieve(state) if state["question"] == QUESTION else {}

    def answer(state):
        shown = joined(state["documents"]) if state["question"] == QUESTION else "You're welcome."
        return {"generation": model(f"Answer to {state['question']}").invoke(shown).text}

    rag = graph(maybe_retrieve, answer, checkpointer=InMemorySaver())
    config = {**watch.config, "configurable": {"thread_id": "t-1"}}
    invoke(rag, {"question": QUESTION}, config)
    output = invoke(rag, {"question": "Thank you!"}, config)
    assert [doc.page_content for doc in output["documents"]] == REFUNDS
    assert watch.triples == [
        (QUESTION, REFUNDS, f"Answer to {QUESTION}"),
        ("Thank you!", [], "Answer to Thank you!"),
    ]


def test_a_question_in_a_pydantic_or_dataclass_state(watch, invoke):
    class Strict(BaseModel):
        question: str
        language: str = "en"
        generation: str = ""

    @dataclasses.dataclass
    class Plain:
        question: str
        language: str = "en"
        generation: str = ""

    def answer(state):
        return {"generation": rag_chain().invoke(state.question)}

    for kind in (Strict, Plain):
        invoke(graph(answer, state=kind), kind(question=QUESTION), watch.config)
    assert watch.triples == [EXPECTED] * 2


def test_a_conversation_with_a_hand_made_tool_loop(watch, invoke):
    class Chat(TypedDict):
        messages: Annotated[list[AnyMessage], add_messages]

    def use_tool(state):
        call = {"name": "search", "args": {}, "id": "1", "type": "tool_call"}
        said = [{"role": "tool", "content": text, "tool_call_id": "1"} for text in REFUNDS]
        return {"messages": [{"role": "assistant", "content": "", "tool_calls": [call]}, *said]}

    def reply(state):
        return {"messages": [model().invoke(state["messages"])]}

    chat = graph(use_tool, reply, state=Chat)
    invoke(chat, {"messages": [HumanMessage(QUESTION)]}, watch.config)
    assert watch.only == EXPECTED


def test_callbacks_passed_on_by_hand_inside_a_node_do_not_make_a_second_run(watch, mode, invoke):
    config = watch.config

    def retrieve_by_hand(state):
        return {"documents": FixedRetriever().invoke(state["question"], config)}

    def generate_by_hand(state):
        inputs = {"context": joined(state["documents"]), "question": state["question"]}
        return {"generation": (PROMPT | model()).invoke(inputs, config).text}

    async def aretrieve_by_hand(state):
        return {"documents": await FixedRetriever().ainvoke(state["question"], config)}

    async def agenerate_by_hand(state):
        inputs = {"context": joined(state["documents"]), "question": state["question"]}
        return {"generation": (await (PROMPT | model()).ainvoke(inputs, config)).text}

    nodes: Any = (retrieve_by_hand, generate_by_hand)
    if mode == "async":
        nodes = (aretrieve_by_hand, agenerate_by_hand)
    invoke(graph(*nodes, output=Answer), {"question": QUESTION}, config)
    assert watch.only == EXPECTED


def test_a_graph_inside_a_graph_is_one_run(watch):
    inner = graph(retrieve, generate)

    async def ask(state):
        return {"generation": (await inner.ainvoke({"question": state["question"]}))["generation"]}

    outer = graph(ask)
    asyncio.run(outer.ainvoke({"question": QUESTION}, watch.config))
    assert watch.only == EXPECTED
