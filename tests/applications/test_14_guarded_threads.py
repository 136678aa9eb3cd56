"""Line 14: what a guard replaces is replaced in the thread and in the history too."""

from contextlib import nullcontext
from operator import itemgetter
from uuid import uuid4

import pytest
from langchain.agents import create_agent
from langchain.tools import tool
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.messages import HumanMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_parts import ANSWER, HOURS, REFUNDS, Finding, State, graph, model, rag, retrieve
from langgraph.checkpoint.memory import InMemorySaver
from rag_parts import FALLBACK, QUESTION, WRONG, calling

from ragaliq import ConfigurationError, GuardRejected

THREAD = {"configurable": {"thread_id": "t-1"}}


def searching_agent(reply, **options):
    @tool
    def search(query: str) -> str:
        """Searches."""
        return REFUNDS

    said = model(calling("search", query="refunds"), reply, calling("search", query="x"), ANSWER)
    return create_agent(said, [search], **options)


def answering_graph(reply, **options):
    return graph(retrieve, lambda state: {"generation": reply}, **options)


HISTORY_PROMPT = ChatPromptTemplate.from_messages(
    [("system", f"{REFUNDS} {HOURS}"), ("placeholder", "{history}"), ("human", "{question}")]
)


def with_history(chain, kept):
    return RunnableWithMessageHistory(
        chain, lambda _: kept, input_messages_key="question", history_messages_key="history"
    )


@RunnableLambda
def down(value):
    raise ConnectionError


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda graph: graph,
        lambda graph: graph | (lambda out: out),
        lambda graph: down.with_fallbacks([graph]),
    ],
)
def test_a_guard_refuses_to_write_its_retries_into_a_thread(wrapped, guard_of):
    agent = create_agent(model(), [], checkpointer=InMemorySaver())
    with pytest.raises(ConfigurationError, match="RagaliqGuardMiddleware"):
        guard_of(wrapped(agent), action="retry")
    guard_of(wrapped(agent), action="fallback")


def test_a_guard_refuses_retries_with_a_checkpointer_that_it_is_given_with_the_call(guard_of):
    guard = guard_of(answering_graph(ANSWER), action="retry")

    def guarded(state):
        return guard.invoke(state)

    within = graph(guarded, checkpointer=InMemorySaver())
    with pytest.raises(ConfigurationError, match="RagaliqGuardMiddleware"):
        within.invoke({"question": QUESTION}, THREAD)
    assert graph(guarded).invoke({"question": QUESTION})


@pytest.mark.parametrize(
    ("made", "asked"),
    [
        (searching_agent, {"messages": [HumanMessage(QUESTION)]}),
        (answering_graph, {"question": QUESTION}),
    ],
)
def test_a_fallback_stands_in_the_thread_in_place_of_the_rejected_answer(
    made, asked, guard_of, invoke, stream
):
    for call in (invoke, stream):
        guarded = made(WRONG, checkpointer=InMemorySaver())
        assert FALLBACK in str(call(guard_of(guarded), asked, THREAD))
        state = guarded.get_state(THREAD)
        assert (WRONG in str(state.values), FALLBACK in str(state.values)) == (False, True)
        assert state.next == ()
        assert len(state.values.get("messages", "four")) == 4


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda graph: (lambda given: given) | graph,
        lambda graph: (lambda given: given) | graph | (lambda out: out["messages"][-1].text),
        lambda graph: ((lambda given: given) | graph).with_config(run_name="shop"),
        lambda graph: graph.with_retry(),
        lambda graph: down.with_fallbacks([graph]),
        lambda graph: graph.with_fallbacks([model()]),
    ],
    ids=["after a step", "before a parser", "bound", "retried", "fallback", "before a fallback"],
)
def test_a_fallback_stands_in_the_thread_of_a_graph_inside_a_chain(
    wrapped, guard_of, invoke, stream
):
    for call in (invoke, stream):
        agent = searching_agent(WRONG, checkpointer=InMemorySaver())
        asked = {"messages": [HumanMessage(QUESTION)]}
        assert FALLBACK in str(call(guard_of(wrapped(agent)), asked, THREAD))
        messages = [message.text for message in agent.get_state(THREAD).values["messages"]]
        assert messages == [QUESTION, "", REFUNDS, FALLBACK]


def test_the_thread_of_a_graph_that_did_not_answer_stays_as_it_is(guard_of):
    searching = graph(retrieve, state=State, checkpointer=InMemorySaver())
    chain = searching | (lambda state: {"answer": WRONG, "context": state["documents"]})
    assert guard_of(chain).invoke({"question": QUESTION}, THREAD)["answer"] == FALLBACK
    assert searching.get_state(THREAD).values.keys() == {"question", "documents"}


# Applications use it all the same.
@pytest.mark.filterwarnings("ignore:.*deprecated")
@pytest.mark.parametrize(
    "wrapped",
    [
        lambda chain: chain,
        lambda chain: chain | (lambda m: m.text),
        lambda chain: chain.with_retry().with_fallbacks([model()]),
    ],
)
def test_a_guard_around_a_history_of_messages_says_where_it_belongs(wrapped, guard_of):
    chain = wrapped(with_history(HISTORY_PROMPT | model(), InMemoryChatMessageHistory()))
    for action in ("fallback", "retry", "raise"):
        with pytest.raises(ConfigurationError, match="inside: RunnableWithMessageHistory"):
            guard_of(chain, action=action)
    guard_of(chain, action="annotate")


def test_a_chain_may_call_something_else_its_steps(guard_of):
    chain = RunnableLambda(lambda given: given)
    chain.steps = 3
    guard_of(chain, action="raise")


@pytest.mark.filterwarnings("ignore:.*deprecated")
@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, [QUESTION, FALLBACK]),
        ({"action": "retry"}, [QUESTION, REFUNDS]),
        ({"action": "raise"}, []),
    ],
)
def test_inside_one_the_history_keeps_what_went_out(options, kept, guard_of, invoke, stream):
    for call in (invoke, stream):
        chain = (
            RunnablePassthrough.assign(context=itemgetter("question") | Finding())
            | HISTORY_PROMPT
            | model(WRONG, REFUNDS)
        )
        history = InMemoryChatMessageHistory()
        chat = with_history(guard_of(chain, **options), history)
        config = {"configurable": {"session_id": "s-1"}}
        with nullcontext() if kept else pytest.raises(GuardRejected):
            assert call(chat, {"question": QUESTION}, config)
        assert [message.text for message in history.messages] == kept


def test_a_run_that_a_guard_stopped_is_explained(watch, guard_of):
    guard = guard_of(rag(Finding(), model("It takes nine days.")), action="raise")
    chain, run_id = guard | (lambda out: out), uuid4()
    with pytest.raises(GuardRejected):
        chain.invoke(QUESTION, {**watch.config, "run_id": run_id})
    assert watch.handler.explain(run_id).outcome == "withdrawn"
    assert watch.monitor.stats().started == 0
