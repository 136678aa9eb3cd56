"""The guard around chains: answers that may not go out are replaced, annotated or stopped."""

from contextlib import nullcontext
from uuid import uuid4

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool
from pydantic import BaseModel
from rag_parts import (
    ANSWER,
    FALLBACK,
    PROMPT,
    QUESTION,
    REFUNDS,
    WRONG,
    NeedsTheLoop,
    calling,
    documents,
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
    assert state["ragaliq"]["decision"] == "rejected"
    output = invoke(annotating(lying_chain()), {"input": QUESTION})
    assert (output["answer"], output["ragaliq"]["failed_claims"]) == (WRONG, 1)


def test_the_rejected_text_goes_out_nowhere_in_the_output(guard_of, invoke):
    def telling(output):
        return {"answer": output, "messages": [AIMessage(output)], "trace": [{"draft": output}]}

    output = invoke(guard_of(rag_chain(llm=model(WRONG)) | telling), QUESTION)
    assert WRONG not in str(output)
    assert (output["answer"], output["trace"]) == (FALLBACK, [{"draft": FALLBACK}])

    class Reply(BaseModel):
        answer: str

    chain = rag_chain(llm=model(WRONG)) | (lambda text: Reply(answer=text))
    assert invoke(guard_of(chain), QUESTION) == FALLBACK
    guard = guard_of(chain, fallback=lambda result: Reply(answer=FALLBACK))
    assert invoke(guard, QUESTION) == Reply(answer=FALLBACK)


def test_an_answer_without_any_context_is_decided_on_like_any_other(guard_of, invoke):
    alone = PROMPT.partial(context="") | model("Refunds are paid in gold.") | (lambda m: m.text)
    chain = RunnableLambda(lambda question: {"question": question}) | alone
    guard = guard_of(chain, judge="local")
    assert invoke(guard, QUESTION) == FALLBACK
    passing = guard_of(chain, judge="local", on_unscored="pass")
    assert invoke(passing, QUESTION) == "Refunds are paid in gold."


@pytest.mark.parametrize(("otherwise", "shown"), [("pass", 3), ("block", FALLBACK)])
def test_an_output_without_an_answer_counts_as_a_failure(guard_of, invoke, otherwise, shown):
    guard = guard_of(RunnableLambda(lambda question: 3), on_failure=otherwise)
    assert invoke(guard, QUESTION) == shown


def test_graphs_are_refused_with_what_to_use(guard_of):
    agent = create_agent(model(), [search])
    for graph in (agent, agent.with_config(run_name="shop")):
        with pytest.raises(ConfigurationError, match=r"RagaliqGuardMiddleware .* guard\.check"):
            guard_of(graph)


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


def test_a_run_that_a_guard_stopped_is_explained(new_watch):
    watch, run_id = new_watch(), uuid4()
    guard = RagaliqGuard(rag_chain(llm=model(WRONG)), judge=ScriptedJudge(), action="raise")
    with pytest.raises(GuardRejected):
        (guard | (lambda out: out)).invoke(QUESTION, {**watch.config, "run_id": run_id})
    assert watch.handler.explain(run_id).outcome == "withdrawn"
    assert watch.stats.started == 0
    guard.guard.monitor.close(1.0)
