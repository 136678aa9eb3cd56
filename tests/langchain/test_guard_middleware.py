"""The guard inside an agent: the final answer of a turn, checked against this turn's tools."""

import sys

import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.documents import Document
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel
from rag_parts import (
    ANSWER,
    FALLBACK,
    QUESTION,
    REFUNDS,
    WRONG,
    FixedRetriever,
    NeedsTheLoop,
    calling,
    model,
)

import langchain_ragaliq
from langchain_ragaliq import RagaliqGuardMiddleware
from ragaliq import ConfigurationError, Guard, GuardRejected
from ragaliq.testing import ScriptedJudge


@tool
def search(query: str) -> str:
    """Search the documents."""
    return "\n".join(document.page_content for document in FixedRetriever().invoke(query))


LOOK_UP = calling("search", query="refunds")


@pytest.fixture
def agent_of():
    made = []

    def build(*replies, agent=None, **options):
        options = {"judge": ScriptedJudge(), "fallback": FALLBACK, **options}
        middleware = RagaliqGuardMiddleware(**options)
        made.append(middleware)
        built = create_agent(model(*replies), [search], middleware=[middleware], **(agent or {}))
        return built, middleware.guard.monitor

    yield build
    for middleware in made:
        middleware.guard.monitor.close(1.0)


def ask(invoke, agent, question=QUESTION, config=None):
    return invoke(agent, {"messages": [("user", question)]}, config)["messages"]


def kinds(messages):
    return [message.type for message in messages]


def test_a_supported_answer_passes_and_tool_calls_are_no_answers(agent_of, invoke):
    got = []
    agent, monitor = agent_of(LOOK_UP, LOOK_UP, ANSWER, on_result=got.append)
    assert ask(invoke, agent)[-1].text == ANSWER
    assert monitor.flush(5)
    (result,) = got
    assert (result.case.query, result.case.context_texts) == (QUESTION, ["\n".join(REFUNDS)])


def test_an_answer_in_the_very_words_of_a_tool_passes(agent_of, invoke):
    repeated = "\n".join(REFUNDS)
    agent, monitor = agent_of(LOOK_UP, repeated)
    assert ask(invoke, agent)[-1].text == repeated
    assert monitor.stats().outcomes == {"evaluated": 1}


class Unprintable:
    """A lazy attribute whose row is gone."""

    def __str__(self):
        raise LookupError("gone")

    __repr__ = __str__


def test_metadata_that_cannot_be_read_costs_itself_only(invoke):
    middleware = RagaliqGuardMiddleware(judge=ScriptedJudge(), fallback=FALLBACK)

    @tool(response_format="content_and_artifact")
    def look_up(query: str):
        """Search the documents."""
        return REFUNDS[0], [Document(REFUNDS[0], metadata={"row": Unprintable()})]

    llm = model(calling("look_up", query="refunds"), WRONG)
    agent = create_agent(llm, [look_up], middleware=[middleware])
    assert ask(invoke, agent)[-1].text == FALLBACK
    assert middleware.guard.monitor.stats().outcomes == {"evaluated": 1}
    middleware.guard.monitor.close(1.0)


def test_an_answer_below_is_replaced_in_the_conversation(agent_of, invoke):
    agent, monitor = agent_of(LOOK_UP, WRONG)
    messages = ask(invoke, agent)
    assert kinds(messages) == ["human", "ai", "tool", "ai"]
    assert messages[-1].text == FALLBACK
    assert monitor.stats().outcomes == {"evaluated": 1}


def test_it_is_annotated_or_stops_the_turn_when_told_so(agent_of, invoke):
    agent, _ = agent_of(LOOK_UP, WRONG, action="annotate")
    message = ask(invoke, agent)[-1]
    assert message.text == WRONG
    assert message.response_metadata["ragaliq"]["below"] == ["faithfulness"]
    agent, _ = agent_of(LOOK_UP, WRONG, action="raise")
    with pytest.raises(GuardRejected):
        ask(invoke, agent)


def test_the_model_is_told_what_is_wrong_and_the_conversation_keeps_the_last_answer_only(
    agent_of, invoke
):
    heard = []
    agent, monitor = agent_of(
        LOOK_UP, WRONG, lambda messages: heard.append(messages[-1].text) or ANSWER, max_retries=1
    )
    messages = ask(invoke, agent)
    assert f"- {WRONG}" in heard[0]
    assert kinds(messages) == ["human", "ai", "tool", "ai"]
    assert messages[-1].text == ANSWER
    assert monitor.stats().outcomes == {"evaluated": 2}


def test_a_model_may_search_again_before_its_next_attempt(agent_of, invoke):
    agent, _ = agent_of(LOOK_UP, WRONG, calling("search", query="again"), ANSWER, max_retries=1)
    messages = ask(invoke, agent)
    assert kinds(messages) == ["human", "ai", "tool", "ai", "tool", "ai"]
    assert messages[-1].text == ANSWER


def test_attempts_are_bounded(agent_of, invoke):
    agent, monitor = agent_of(LOOK_UP, WRONG, WRONG, WRONG, max_retries=2)
    messages = ask(invoke, agent)
    assert kinds(messages) == ["human", "ai", "tool", "ai"]
    assert messages[-1].text == FALLBACK
    assert monitor.stats().outcomes == {"evaluated": 3}


def test_only_this_turns_tools_and_attempts_count(agent_of, invoke):
    agent, monitor = agent_of(
        LOOK_UP,
        WRONG,
        ANSWER,
        WRONG,
        ANSWER,
        agent={"checkpointer": InMemorySaver()},
        max_retries=1,
    )
    config = {"configurable": {"thread_id": "t1"}}
    ask(invoke, agent, config=config)
    # Nothing is looked up for the second question: the first one's documents are its context.
    messages = ask(invoke, agent, "How long, please?", config)
    assert messages[-1].text == ANSWER
    assert monitor.stats().outcomes == {"evaluated": 4}


def test_a_structured_answer_is_checked_and_replaced_as_such(agent_of, invoke):
    class Reply(BaseModel):
        days: str

    agent, monitor = agent_of(
        LOOK_UP,
        calling("Reply", days=WRONG),
        agent={"response_format": ToolStrategy(Reply)},
        fallback=lambda result: Reply(days="unknown"),
    )
    output = invoke(agent, {"messages": [("user", QUESTION)]})
    assert output["structured_response"] == Reply(days="unknown")
    assert monitor.stats().outcomes == {"evaluated": 1}


async def test_the_event_loop_is_free_while_an_answer_is_judged(agent_of):
    agent, _ = agent_of(LOOK_UP, WRONG, judge=NeedsTheLoop())
    output = await agent.ainvoke({"messages": [("user", QUESTION)]})
    assert output["messages"][-1].text == FALLBACK


def test_a_guard_and_options_for_one_exclude_each_other():
    with pytest.raises(ConfigurationError, match="not both"):
        RagaliqGuardMiddleware(Guard(judge=ScriptedJudge()), action="raise")


def test_without_langchain_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain.agents.middleware", None)
    monkeypatch.delitem(sys.modules, "langchain_ragaliq.middleware")
    with pytest.raises(ModuleNotFoundError, match=r"langchain-ragaliq\[agents\]"):
        _ = langchain_ragaliq.RagaliqGuardMiddleware
