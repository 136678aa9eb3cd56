"""Agents: the contexts are what tools found in this turn, the answer is the last message."""

import json

import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import tool
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import create_retriever_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from pydantic import BaseModel
from rag_parts import (
    ANSWER,
    QUESTION,
    REFUNDS,
    FixedRetriever,
    calling,
    documents,
    joined,
    model,
)

EXPECTED = (QUESTION, REFUNDS, ANSWER)
USER = {"role": "user", "content": QUESTION}
ASK = {"messages": [USER]}


def search(texts=REFUNDS, *, name="search", response_format="content"):
    return create_retriever_tool(
        FixedRetriever(texts=texts), name, "Searches the handbook.", response_format=response_format
    )


@tool
def clock(city: str) -> str:
    """Tells the time."""
    return f"It is noon in {city}."


@pytest.mark.parametrize("response_format", ["content", "content_and_artifact"])
@pytest.mark.parametrize(
    "user",
    [
        USER,
        ("user", QUESTION),
        HumanMessage(QUESTION),
        HumanMessage([{"type": "text", "text": QUESTION}]),
    ],
)
def test_an_agent_with_a_retriever_tool(watch, invoke, response_format, user):
    agent = create_agent(
        model(calling("search", query="refunds"), ANSWER), [search(response_format=response_format)]
    )
    assert invoke(agent, {"messages": [user]}, watch.config)["messages"][-1].text == ANSWER
    assert watch.only == EXPECTED
    assert watch.results[0].pipeline == "LangGraph"


def test_content_blocks_of_a_message_in_dictionary_form_are_the_question(watch, invoke):
    blocks = [{"type": "text", "text": "How long "}, {"type": "text", "text": "do refunds take?"}]
    agent = create_agent(model(calling("search", query="refunds"), ANSWER), [search()])
    invoke(agent, {"messages": [{"role": "user", "content": blocks}]}, watch.config)
    assert watch.only == EXPECTED


@pytest.mark.parametrize("stream_mode", ["values", "updates", "messages"])
def test_an_agent_that_is_streamed(watch, stream, stream_mode):
    agent = create_agent(model(calling("search", query="refunds"), ANSWER), [search()])
    stream(agent, ASK, watch.config, stream_mode=stream_mode)
    assert watch.only == EXPECTED


def test_a_tool_that_asks_a_retriever_without_passing_callbacks_on(watch, invoke):
    @tool
    def look_up(query: str) -> str:
        """Looks things up."""
        return joined(FixedRetriever().invoke(query))

    invoke(create_agent(model(calling("look_up", query="r"), ANSWER), [look_up]), ASK, watch.config)
    assert watch.only == EXPECTED


@pytest.mark.parametrize(
    ("said", "contexts"), [(joined(documents()), REFUNDS), ("2 documents", ["2 documents"])]
)
def test_of_the_documents_that_a_plain_tool_keeps_those_count_that_it_tells(
    watch, invoke, said, contexts
):
    @tool(response_format="content_and_artifact")
    def look_up(query: str):
        """Looks things up."""
        return said, documents(prefix="d")

    invoke(create_agent(model(calling("look_up", query="r"), ANSWER), [look_up]), ASK, watch.config)
    assert watch.only == (QUESTION, contexts, ANSWER)


def test_a_tool_that_gave_the_answer_itself_is_no_context(watch, invoke):
    @tool
    def ask_colleague(question: str) -> str:
        """Answers."""
        return f"{ANSWER}\n"

    agent = create_agent(
        model(calling("ask_colleague", question="r"), calling("clock", city="Ulm"), ANSWER),
        [ask_colleague, clock],
    )
    invoke(agent, ASK, watch.config)
    assert watch.only == (QUESTION, ["It is noon in Ulm."], ANSWER)


def test_a_document_that_a_tool_found_is_context_even_if_it_is_the_answer(watch, invoke):
    agent = create_agent(model(calling("search", query="refunds"), ANSWER), [search([ANSWER])])
    invoke(agent, ASK, watch.config)
    assert watch.only == (QUESTION, [ANSWER], ANSWER)


class Refund(BaseModel):
    """How long it takes."""

    days: int


def test_what_langchain_says_about_a_structured_answer_is_no_context(watch, invoke):
    agent = create_agent(model(calling("Refund", days=5)), [], response_format=ToolStrategy(Refund))
    invoke(agent, ASK, watch.config)
    assert watch.only == (QUESTION, [], '{"days": 5}')


def test_a_conversation_that_is_kept_gives_each_turn_its_own_contexts(watch, invoke):
    llm = model(
        calling("search", query="refunds"), ANSWER, calling("clock", city="Ulm"), "Noon.", "Bye."
    )
    agent = create_agent(llm, [search(), clock], checkpointer=InMemorySaver())
    config = {**watch.config, "configurable": {"thread_id": "t-1"}}
    for text in (QUESTION, "What time is it?", "Goodbye!"):
        invoke(agent, {"messages": [("user", text)]}, config)
    assert watch.triples == [
        EXPECTED,
        ("What time is it?", ["It is noon in Ulm."], "Noon."),
        ("Goodbye!", [], "Bye."),
    ]
    assert {result.run.session_id for result in watch.results} == {"t-1"}


@pytest.mark.parametrize("streamed", [False, True])
def test_an_interrupted_run_is_counted_and_its_resumption_is_evaluated(
    watch, invoke, stream, streamed
):
    @tool
    def approve(action: str) -> str:
        """Asks a human."""
        return f"The human said {interrupt('Allow it?')}."

    agent = create_agent(
        model(calling("approve", action="refund"), ANSWER), [approve], checkpointer=InMemorySaver()
    )
    config = {**watch.config, "configurable": {"thread_id": "t-1"}}
    run = stream if streamed else invoke
    run(agent, ASK, config)
    assert watch.incomplete == {"interrupted": 1}
    run(agent, Command(resume="yes"), config)
    assert watch.triples == [(QUESTION, ["The human said yes."], ANSWER)]
    assert watch.stats.outcomes == {"incomplete_run": 1, "evaluated": 1}


def test_an_agent_that_stops_while_calling_a_tool_has_not_answered(watch, invoke):
    @tool(return_direct=True)
    def look_up(query: str) -> str:
        """Looks things up."""
        return "found"

    invoke(create_agent(model(calling("look_up", query="r")), [look_up]), ASK, watch.config)
    assert watch.incomplete == {"no_answer": 1}


def test_a_model_that_calls_a_tool_at_the_end_of_a_chain_has_not_answered(watch, invoke):
    chain = ChatPromptTemplate.from_template("{question}") | model(calling("clock", city="Ulm"))
    invoke(chain, QUESTION, watch.config)
    assert watch.incomplete == {"no_answer": 1}


def test_an_answer_in_blocks_is_its_text_without_the_reasoning(watch, invoke):
    blocks = AIMessage(
        [
            {"type": "reasoning", "reasoning": "Hm, they ask about money."},
            {"type": "text", "text": "Refunds take "},
            {"type": "text", "text": "five days."},
        ]
    )
    agent = create_agent(model(calling("search", query="refunds"), blocks), [search()])
    output = invoke(agent, ASK, watch.config)
    assert json.dumps(output["messages"][-1].content).count("reasoning") == 2
    assert watch.only == EXPECTED
