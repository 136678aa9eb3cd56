"""A guarded answer is scored once, whoever else watches the chain."""

from contextlib import nullcontext

import pytest
from langchain.agents import create_agent
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from rag_parts import (
    FALLBACK,
    QUESTION,
    REFUNDS,
    WRONG,
    calling,
    model,
    rag_chain,
    retrieval_chain,
)

from langchain_ragaliq import RagaliqGuard, RagaliqGuardMiddleware, attach
from ragaliq import Guard, GuardRejected, Monitor
from ragaliq.testing import ScriptedJudge


@pytest.fixture(params=["handler", "attached", "both"])
def watched(request, new_watch):
    """A watch, and the configuration with which chains are called."""
    watch = new_watch()
    if request.param != "handler":
        attach(watch.handler)
    return watch, (None if request.param == "attached" else watch.config)


@pytest.fixture
def monitor():
    built = Monitor(judge=ScriptedJudge(), evaluators=["faithfulness"])
    yield built
    built.close(1.0)


@tool
def search(query: str) -> str:
    """Search."""
    return REFUNDS[0]


def wrapped(guard):
    return RagaliqGuard(rag_chain(llm=model(WRONG)), guard=guard)


def at_the_end(guard):
    chain = RunnableLambda(lambda question: {"input": question}) | retrieval_chain()
    return chain | RagaliqGuard(guard=guard) | (lambda output: output["answer"])


def in_an_agent(guard):
    agent = create_agent(
        model(calling("search", query="refunds"), WRONG),
        [search],
        middleware=[RagaliqGuardMiddleware(guard)],
    )
    return RunnableLambda(lambda question: {"messages": [("user", question)]}) | agent


@pytest.mark.parametrize(
    ("made", "action"),
    [
        (wrapped, "fallback"),
        (wrapped, "annotate"),
        (wrapped, "raise"),
        (at_the_end, "fallback"),
        (in_an_agent, "fallback"),
    ],
)
def test_by_the_guard_only(watched, monitor, invoke, made, action):
    watch, config = watched
    guarded = made(Guard(monitor, action=action, fallback=FALLBACK))
    with pytest.raises(GuardRejected) if action == "raise" else nullcontext():
        invoke(guarded, QUESTION, config)
    assert monitor.stats().outcomes == {"evaluated": 1}
    assert watch.stats.started == 0


def test_also_by_the_same_monitor(watched, invoke):
    watch, config = watched
    invoke(RagaliqGuard(rag_chain(), guard=Guard(watch.monitor)), QUESTION, config)
    assert watch.stats.outcomes == {"evaluated": 1}
    assert watch.stats.started == 1


def test_an_answer_made_from_a_guarded_one_is_another_answer(watched, monitor, invoke):
    watch, config = watched
    guard = RagaliqGuard(rag_chain(), guard=Guard(monitor))
    chain = guard | RunnableLambda(lambda answer: f"In short: {answer}")
    invoke(chain, QUESTION, config)
    assert (watch.stats.outcomes, monitor.stats().started) == ({"evaluated": 1}, 1)


def test_a_disabled_guard_leaves_the_scoring_to_the_handler(watched, invoke):
    watch, config = watched
    off = Guard(judge=ScriptedJudge(), enabled=False)
    invoke(RagaliqGuard(rag_chain(), guard=off), QUESTION, config)
    assert watch.only.contexts == REFUNDS
