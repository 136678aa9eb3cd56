"""The guard around chains: answers below are replaced, annotated, made again or stopped."""

from contextlib import nullcontext

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool
from rag_parts import (
    ANSWER,
    FALLBACK,
    PROMPT,
    QUESTION,
    REFUNDS,
    WRONG,
    FixedRetriever,
    NeedsTheLoop,
    calling,
    documents,
    joined,
    model,
    rag_chain,
    retrieval_chain,
)

from langchain_ragaliq import RagaliqGuard, RagaliqGuardMiddleware, attach
from ragaliq import ConfigurationError, Guard, GuardRejected, Monitor
from ragaliq.testing import ScriptedJudge


def state_chain(*replies):
    """A conversation in, a conversation with documents out."""
    llm = model(*replies)

    def answer(state):
        shown = [SystemMessage("\n".join(REFUNDS)), *state["messages"]]
        return {
            "messages": [*state["messages"], llm.invoke(shown)],
            "context": [Document(page_content=text) for text in REFUNDS],
        }

    return RunnableLambda(answer)


def lying_chain():
    """Documents beside a wrong answer."""
    return retrieval_chain() | RunnableLambda(lambda out: {**out, "answer": WRONG})


def test_an_answer_that_is_supported_passes_unchanged(guard_of, invoke):
    got = []
    guard = guard_of(rag_chain(), on_result=got.append, pipeline="shop")
    assert invoke(guard, QUESTION) == ANSWER
    assert guard.guard.monitor.flush(5)
    (result,) = got
    assert (result.case.query, result.case.context_texts) == (QUESTION, REFUNDS)
    assert (result.pipeline, result.run.framework) == ("shop", "langchain")


def test_of_an_answer_below_nothing_but_its_text_is_replaced(guard_of, invoke):
    assert invoke(guard_of(rag_chain(llm=model(WRONG))), QUESTION) == FALLBACK
    chain = rag_chain(llm=model(AIMessage(WRONG, id="m1")), parser=RunnablePassthrough())
    message = invoke(guard_of(chain), QUESTION)
    assert (message.text, message.id) == (FALLBACK, "m1")
    output = invoke(guard_of(lying_chain()), {"input": QUESTION})
    assert output == {"input": QUESTION, "context": documents(), "answer": FALLBACK}
    output = invoke(guard_of(state_chain(WRONG)), {"messages": [HumanMessage(QUESTION)]})
    assert [message.text for message in output["messages"]] == [QUESTION, FALLBACK]


def test_a_fallback_may_be_made_from_the_result(guard_of, invoke):
    guard = guard_of(
        rag_chain(llm=model(WRONG)), fallback=lambda result: f"{len(result.failed_claims)} wrong"
    )
    assert invoke(guard, QUESTION) == "1 wrong"


def test_annotations_go_beside_the_answer_where_there_is_room(guard_of, invoke):
    def annotating(chain):
        return guard_of(chain, action="annotate", note="(not verified)")

    llm = model(WRONG)
    assert invoke(annotating(rag_chain(llm=llm)), QUESTION) == f"{WRONG}\n\n(not verified)"
    message = invoke(annotating(rag_chain(llm=llm, parser=RunnablePassthrough())), QUESTION)
    assert message.text == WRONG
    assert message.response_metadata["ragaliq"]["scores"] == {"faithfulness": 0.0}
    state = invoke(annotating(state_chain(WRONG)), {"messages": [HumanMessage(QUESTION)]})
    assert state["messages"][-1].response_metadata["ragaliq"]["decision"] == "rejected"
    output = invoke(annotating(lying_chain()), {"input": QUESTION})
    assert (output["answer"], output["ragaliq"]["failed_claims"]) == (WRONG, 1)


def test_a_rejected_answer_is_made_again_with_feedback_that_names_the_claim(guard_of, invoke):
    llm = model(WRONG, ANSWER)
    prompts = []
    chain = rag_chain(llm=RunnableLambda(lambda p: prompts.append(p.to_string()) or p) | llm)
    guard = guard_of(chain, action="retry")
    assert invoke(guard, QUESTION) == ANSWER
    assert WRONG not in prompts[0]
    assert f"- {WRONG}" in prompts[1]
    assert guard.guard.monitor.stats().outcomes == {"evaluated": 2}


def test_a_dictionary_has_the_feedback_under_a_name_from_the_first_attempt_on(guard_of, invoke):
    prompt = ChatPromptTemplate.from_messages([*PROMPT.messages, ("human", "{feedback}")])
    seen = []
    chain = (
        RunnablePassthrough.assign(context=(lambda x: x["question"]) | FixedRetriever() | joined)
        | prompt
        | RunnableLambda(lambda p: seen.append(p.to_messages()[-1].text) or p)
        | model(WRONG, ANSWER)
    )
    got = []
    guard = guard_of(chain, action="retry", on_result=got.append)
    assert invoke(guard, {"question": QUESTION}).text == ANSWER
    assert seen[0] == ""
    assert WRONG in seen[1]
    assert guard.guard.monitor.flush(5)
    assert [result.case.query for result in got] == [QUESTION, QUESTION]


def test_a_conversation_goes_on_with_the_answer_and_the_feedback(guard_of, invoke):
    output = invoke(
        guard_of(state_chain(WRONG, ANSWER), action="retry"), {"messages": [HumanMessage(QUESTION)]}
    )
    texts = [message.text for message in output["messages"]]
    assert texts[:2] == [QUESTION, WRONG]
    assert WRONG in texts[2]
    assert texts[3] == ANSWER


def test_the_application_may_word_the_next_attempt_itself(guard_of, invoke):
    asked = []
    chain = RunnableLambda(lambda q: asked.append(q) or q) | rag_chain(llm=model(WRONG, ANSWER))
    guard = guard_of(
        chain, action="retry", feed_back=lambda value, answer, feedback: f"{value} (not: {answer})"
    )
    assert invoke(guard, QUESTION) == ANSWER
    assert asked == [QUESTION, f"{QUESTION} (not: {WRONG})"]


def test_at_the_end_of_a_chain_it_reads_what_it_is_given(guard_of, invoke):
    assert invoke(retrieval_chain() | guard_of(), {"input": QUESTION})["answer"] == ANSWER
    chain = lying_chain() | guard_of() | (lambda out: out["answer"])
    assert invoke(chain, {"input": QUESTION}) == FALLBACK


class Unprintable:
    """A lazy attribute whose row is gone."""

    def __str__(self):
        raise LookupError("gone")

    __repr__ = __str__


def test_at_the_end_of_a_chain_metadata_that_cannot_be_read_costs_itself_only(guard_of, invoke):
    context = [Document(REFUNDS[0], metadata={"row": Unprintable()})]
    guard = guard_of()
    given = {"input": QUESTION, "context": context, "answer": WRONG}
    assert invoke(guard, given)["answer"] == FALLBACK
    assert guard.guard.monitor.stats().outcomes == {"evaluated": 1}


def test_at_the_end_of_a_chain_without_a_context_it_says_what_to_do(guard_of, invoke):
    with pytest.raises(ConfigurationError, match=r"wrap the chain instead"):
        invoke(rag_chain() | guard_of(), QUESTION)
    with pytest.raises(ConfigurationError, match="cannot retry"):
        guard_of(action="retry")


def test_a_stream_is_held_back_and_comes_in_one_piece(guard_of, stream):
    guard = guard_of(rag_chain(llm=model(WRONG)))
    assert stream(guard, QUESTION) == [FALLBACK]
    assert stream(guard | str.upper, QUESTION) == [FALLBACK.upper()]


async def test_the_event_loop_is_free_while_an_answer_is_judged(guard_of):
    guard = guard_of(rag_chain(llm=model(WRONG)), judge=NeedsTheLoop())
    assert await guard.ainvoke(QUESTION) == FALLBACK


def test_config_reaches_the_chain(guard_of, invoke):
    seen = {}

    def look(value, config):
        seen.update(config["metadata"], tags=config["tags"])
        return value

    guard = guard_of(RunnableLambda(look) | rag_chain())
    invoke(guard, QUESTION, {"metadata": {"session_id": "s1"}, "tags": ["t"], "run_name": "shop"})
    assert (seen["session_id"], seen["tags"]) == ("s1", ["t"])


def test_the_names_of_keys_and_of_the_conversation_reach_a_guard(guard_of, invoke, caplog):
    got = []
    chain = RunnableLambda(lambda given: {"reply": ANSWER})
    keys = {"question_key": "wish", "context_key": "cites", "answer_key": "reply"}
    guard = guard_of(chain, on_result=got.append, handler_options=keys)
    given = {"wish": QUESTION, "other": "thing", "cites": list(REFUNDS)}
    invoke(guard.with_config(metadata={"session_id": "conversation 7"}), given)
    assert guard.guard.monitor.flush(5)
    (result,) = got
    assert (result.case.query, result.case.context_texts) == (QUESTION, list(REFUNDS))
    assert result.run.session_id == "conversation 7"
    assert not caplog.records


@pytest.fixture(params=["handler", "attached", "both"])
def watched(request, new_watch):
    """A watch, and the configuration with which chains are called."""
    watch = new_watch()
    if request.param != "handler":
        attach(watch.handler)
    return watch, (None if request.param == "attached" else watch.config)


@pytest.fixture
def monitor():
    built = Monitor(judge=ScriptedJudge(), metrics=["faithfulness"])
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
