"""A guarded answer is scored once, whoever else watches the chain."""

from __future__ import annotations

import pytest
from langchain.agents import create_agent
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from rag_parts import ANSWER, QUESTION, REFUNDS, calling, model, rag_chain, retrieval_chain

from langchain_ragaliq import RagaliqGuard, RagaliqGuardMiddleware, attach
from ragaliq import Guard, GuardRejected, Monitor
from ragaliq.testing import ScriptedJudge

WRONG = "Refunds take nine days."
FALLBACK = "I do not know."


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


def test_by_the_guard_only(watched, monitor, invoke):
    watch, config = watched
    for reply, action in [(ANSWER, "fallback"), (WRONG, "fallback"), (WRONG, "annotate")]:
        guard = RagaliqGuard(
            rag_chain(llm=model(reply)), guard=Guard(monitor, action=action, fallback=FALLBACK)
        )
        invoke(guard, QUESTION, config)
    assert monitor.stats().outcomes == {"evaluated": 3}
    assert watch.stats.started == 0


def test_also_by_the_same_monitor(watched, invoke):
    watch, config = watched
    invoke(RagaliqGuard(rag_chain(), guard=Guard(watch.monitor)), QUESTION, config)
    assert watch.stats.outcomes == {"evaluated": 1}
    assert watch.stats.started == 1


def test_also_when_it_raises(watched, monitor, invoke):
    watch, config = watched
    guard = RagaliqGuard(rag_chain(llm=model(WRONG)), guard=Guard(monitor, action="raise"))
    with pytest.raises(GuardRejected):
        invoke(guard, QUESTION, config)
    assert watch.stats.started == 0


def test_also_in_the_middle_of_a_chain(watched, monitor, invoke):
    watch, config = watched
    chain = retrieval_chain() | RagaliqGuard(guard=Guard(monitor)) | (lambda out: out["answer"])
    assert invoke(chain, {"input": QUESTION}, config) == ANSWER
    assert (watch.stats.started, monitor.stats().started) == (0, 1)


def test_an_answer_made_from_a_guarded_one_is_another_answer(watched, monitor, invoke):
    watch, config = watched
    guard = RagaliqGuard(rag_chain(), guard=Guard(monitor))
    chain = guard | RunnableLambda(lambda answer: f"In short: {answer}")
    invoke(chain, QUESTION, config)
    assert (watch.stats.outcomes, monitor.stats().started) == ({"evaluated": 1}, 1)


def test_also_in_an_agent(watched, monitor, invoke):
    watch, config = watched

    @tool
    def search(query: str) -> str:
        """Search."""
        return REFUNDS[0]

    agent = create_agent(
        model(calling("search", query="refunds"), WRONG),
        [search],
        middleware=[RagaliqGuardMiddleware(Guard(monitor, fallback=FALLBACK))],
    )
    output = invoke(agent, {"messages": [("user", QUESTION)]}, config)
    assert output["messages"][-1].text == FALLBACK
    assert (watch.stats.started, monitor.stats().outcomes) == (0, {"evaluated": 1})


def test_a_disabled_guard_leaves_the_scoring_to_the_handler(watched, invoke):
    watch, config = watched
    off = Guard(judge=ScriptedJudge(), enabled=False)
    invoke(RagaliqGuard(rag_chain(), guard=off), QUESTION, config)
    assert watch.only.contexts == REFUNDS
