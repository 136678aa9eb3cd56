"""Teams, threads and interrupts: the question, the answer and the history of a turn. Line 3."""

import operator
from typing import Annotated, TypedDict

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import tool
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_parts import (
    ANSWER,
    HOURS,
    REFUNDS,
    Finding,
    generate,
    graph,
    model,
    retrieve,
    thread,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt
from rag_parts import PROMPT, QUESTION, calling, joined


def test_two_agents_that_answer_a_third_count_what_they_were_shown(watch):
    class Chat(TypedDict):
        messages: Annotated[list[AnyMessage], add_messages]
        found: Annotated[list, operator.add]

    def expert(text, reply):
        def node(state):
            found = Finding(texts=[text]).invoke("x")
            said = model(reply).invoke(f"{joined(found)}\n{QUESTION}")
            return {"messages": [AIMessage(said.text, name="expert")], "found": found}

        return node

    def lead(state):
        return {"messages": [model().invoke(state["messages"])]}

    builder = StateGraph(Chat)
    builder.add_node("refunds", expert(REFUNDS, "The expert says that it is five days."))
    builder.add_node("hours", expert(HOURS, "The other one says that it opens at nine."))
    builder.add_node("lead", lead)
    builder.add_edge(START, "refunds")
    builder.add_edge("refunds", "hours")
    builder.add_edge("hours", "lead")
    builder.compile().invoke({"messages": [HumanMessage(QUESTION)], "found": []}, watch.config)
    assert watch.only.context_texts == [REFUNDS, HOURS]


def team(*steps):
    """A router that calls the members one by one; their reports are messages of the user's."""

    def router(state):
        done = len([message for message in state["messages"] if message.name])
        model("FINISH" if done == len(steps) else f"member-{done}").invoke(state["messages"])
        return Command(goto=END if done == len(steps) else f"member-{done}")

    def member(reply, texts):
        def node(state):
            seen = [SystemMessage(joined(Finding(texts=texts).invoke("x"))), *state["messages"]]
            report = [HumanMessage(model(reply).invoke(seen).text, name="member")]
            return Command(goto="router", update={"messages": report})

        return node

    builder = StateGraph(MessagesState)
    builder.add_node("router", router)
    for number, (reply, texts) in enumerate(steps):
        builder.add_node(f"member-{number}", member(reply, texts))
    builder.add_edge(START, "router")
    return builder.compile(checkpointer=InMemorySaver())


def test_the_last_report_of_a_team_is_its_answer_and_no_statement_of_the_users(watch):
    found = "The policy says that it is nine days."
    members = team((found, [REFUNDS]), (ANSWER, [HOURS]))
    members.invoke({"messages": [HumanMessage(QUESTION)]}, thread(watch))
    assert (watch.only.query, watch.only.response) == (QUESTION, ANSWER)
    assert (watch.only.context_texts, watch.only.history) == ([REFUNDS, HOURS], [])
    chat = create_agent(model(), [], checkpointer=members.checkpointer)
    chat.invoke({"messages": [HumanMessage("And parcels?")]}, thread(watch))
    history = [(turn.role, turn.text) for turn in watch.cases[1].history]
    assert history == [("user", QUESTION), ("assistant", found), ("assistant", ANSWER)]


def test_pairs_of_questions_and_answers_are_a_history(watch):
    chain = RunnablePassthrough.assign(context=lambda given: joined(Finding().invoke("x")))
    said = model().invoke(QUESTION).text  # LangChain's own kind of string
    given = {"question": "And parcels?", "chat_history": [(QUESTION, said)]}
    prompt = ChatPromptTemplate.from_template("{context}\n{chat_history}\n{question}")
    (chain | prompt | model()).invoke(given, watch.config)
    history = [(turn.role, turn.text) for turn in watch.only.history]
    assert history == [("user", QUESTION), ("assistant", ANSWER)]


def test_turns_that_no_model_was_shown_are_no_history(watch):
    chain = RunnablePassthrough.assign(context=lambda given: joined(Finding().invoke("x")))
    given = {"question": "And parcels?", "chat_history": [(QUESTION, ANSWER)]}
    (chain | PROMPT | model()).invoke(given, watch.config)
    assert watch.only.history == []


def test_arrays_among_a_chains_values_lose_no_answer(watch):
    class Array:
        def __bool__(self):
            raise ValueError("the truth value of an array is ambiguous")

    chain = RunnablePassthrough.assign(context=lambda given: joined(Finding().invoke("x")))
    given = {"question": QUESTION, "embedding": Array(), "chat_history": Array()}
    whole = RunnablePassthrough.assign(answer=chain | PROMPT | model() | StrOutputParser())
    whole.invoke(given, watch.config)
    assert (watch.only.response, watch.only.context_texts) == (ANSWER, [REFUNDS, HOURS])


def test_a_routers_word_is_no_answer_to_a_question_that_nobody_answered(watch):
    team().invoke({"messages": [HumanMessage(QUESTION)]}, thread(watch))
    assert watch.cases == []
    assert dict(watch.monitor.stats().incomplete) == {"no_answer": 1}


def test_a_summary_that_middleware_wrote_is_no_statement_of_the_users(watch):
    summary = HumanMessage("So far: it takes nine days.", additional_kwargs={"lc_source": "x"})
    agent = create_agent(model(), [])
    agent.invoke({"messages": [summary, HumanMessage(QUESTION)]}, watch.config)
    assert (watch.only.query, watch.only.history) == (QUESTION, [])


def test_a_hand_off_is_no_evidence(watch):
    agent = create_agent(model(), [])
    handed = ToolMessage("Successfully transferred to refunds", tool_call_id="1")
    call = AIMessage("", tool_calls=[ToolCall(name="transfer", args={}, id="1")])
    agent.invoke({"messages": [HumanMessage(QUESTION), call, handed]}, watch.config)
    assert watch.only.context_texts == []


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
