"""Context that the application names in the middle of a run, wherever its code runs."""

import asyncio

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from rag_parts import ANSWER, QUESTION, REFUNDS, calling, model, rag_chain
from typing_extensions import TypedDict

from ragaliq import Monitor, Passage

NOTE = "The till is closed on Monday."


class State(TypedDict, total=False):
    question: str
    answer: str


def in_a_chain(watch):
    noted = RunnablePassthrough(lambda _: Monitor.add_context(NOTE))
    (noted | rag_chain()).invoke(QUESTION, watch.config)


def in_a_coroutine(watch):
    async def note(value):
        await asyncio.sleep(0)
        Monitor.add_context(NOTE)
        return value

    asyncio.run((RunnableLambda(note) | rag_chain()).ainvoke(QUESTION, watch.config))


def in_a_node(watch):
    def answer(state):
        Monitor.add_context([Document(NOTE)])
        return {"answer": rag_chain().invoke(state["question"])}

    graph = StateGraph(State)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    graph.compile().invoke({"question": QUESTION}, watch.config)


def in_a_tool(watch):
    @tool
    def look_up(query: str) -> str:
        """Looks up."""
        Monitor.add_context(Passage(NOTE, "n1"))
        return "\n".join(REFUNDS)

    agent = create_agent(model(calling("look_up", query="x"), ANSWER), [look_up])
    agent.invoke({"messages": [("user", QUESTION)]}, watch.config)


def in_a_frame(watch):
    with watch.handler.run(QUESTION) as run:
        Monitor.add_context({"text": NOTE})
        run.answer = rag_chain().invoke(QUESTION, watch.config)


@pytest.mark.parametrize("run", [in_a_chain, in_a_coroutine, in_a_node, in_a_tool, in_a_frame])
def test_context_that_is_added_inside_a_run_joins_what_was_found(watch, run):
    run(watch)
    assert watch.only.contexts[-1] == NOTE
    assert "\n".join(watch.only.contexts[:-1]) == "\n".join(REFUNDS)


def test_context_may_replace_what_was_found(watch):
    def name(value):
        Monitor.add_context("Never mind.")
        Monitor.add_context(NOTE, replace=True)
        return value

    (RunnableLambda(name) | rag_chain()).invoke(QUESTION, watch.config)
    assert watch.only.contexts == [NOTE]


def test_context_reaches_no_other_run(new_watch):
    watch, other = new_watch(), new_watch()

    def name(value):
        rag_chain().invoke(QUESTION, {"callbacks": [other.handler]})
        Monitor.add_context(NOTE)
        return value

    (RunnableLambda(name) | rag_chain()).invoke(QUESTION, watch.config)
    Monitor.add_context("of nobody")
    assert watch.only.contexts == [*REFUNDS, NOTE]
    assert NOTE not in other.only.contexts
