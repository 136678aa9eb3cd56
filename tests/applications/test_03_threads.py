"""Line 3: turns and interrupts of a checkpointed thread."""

from __future__ import annotations

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import tool
from langchain_core.documents import Document
from langchain_parts import ANSWER, HOURS, REFUNDS, generate, graph, model, retrieve, thread
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from rag_parts import QUESTION, calling


def test_a_chunk_that_is_found_again_in_the_next_turn_counts_again(watch):
    def search(state):
        # As a vector store is asked: no retriever reports anything.
        return {"documents": [Document(REFUNDS, id="r"), Document(HOURS, id="h")]}

    rag = graph(search, generate, checkpointer=InMemorySaver())
    for question in (QUESTION, "And how long for parcels?"):
        rag.invoke({"question": question}, thread(watch))
    assert watch.contexts == [[REFUNDS, HOURS]] * 2


def test_documents_from_before_an_interrupt_count_after_it(watch):
    def approve(state):
        return {"context": interrupt("May I?")}

    rag = graph(retrieve, approve, generate, checkpointer=InMemorySaver())
    rag.invoke({"question": QUESTION}, thread(watch))
    rag.invoke(Command(resume="yes"), thread(watch))
    assert watch.only.context_texts == [REFUNDS, HOURS]
    assert watch.only.query == QUESTION
    assert dict(watch.monitor.stats().incomplete) == {"interrupted": 1}


def test_what_an_agent_found_before_a_human_was_asked_counts(watch):
    @tool
    def search(query: str) -> str:
        """Searches."""
        return REFUNDS

    @tool
    def send(text: str) -> str:
        """Sends a mail."""
        return "sent"

    agent = create_agent(
        model(calling("search", query="refunds"), calling("send", text="Five days."), ANSWER),
        [search, send],
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"send": True})],
        checkpointer=InMemorySaver(),
    )
    agent.invoke({"messages": [("user", QUESTION)]}, thread(watch))
    agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread(watch))
    assert (watch.only.query, watch.only.context_texts) == (QUESTION, [REFUNDS, "sent"])
