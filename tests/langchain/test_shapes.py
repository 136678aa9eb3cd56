"""What the table of `tests/scenarios` cannot say: streams, names, graphs that are called twice."""

import pytest
from langchain.tools import tool
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import (
    PydanticOutputParser,
)
from langchain_core.runnables import RunnablePassthrough
from langchain_shapes import (
    ASK,
    IN_STATE,
    SHAPES,
    Answer,
    Reply,
    State,
    agent,
    clock,
    generate,
    graph,
    look_up,
    retrieve,
    searching,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from rag_parts import (
    ANSWER,
    HISTORY,
    QUESTION,
    REFUNDS,
    Completing,
    FixedRetriever,
    calling,
    history_aware_retriever,
    joined,
    model,
    rag_chain,
    retrieval_chain,
)

from langchain_ragaliq import RagaliqCallbackHandler

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of legacy chains

EXPECTED = (QUESTION, REFUNDS, ANSWER)
WITH_HISTORY = {"input": QUESTION, "chat_history": HISTORY}


@pytest.mark.parametrize(
    ("make", "asked", "answer"),
    [
        (lambda: rag_chain(llm=Completing()), QUESTION, f"{ANSWER} "),
        (lambda: retrieval_chain(history_aware_retriever()), WITH_HISTORY, ANSWER),
    ],
)
def test_a_stream_gives_the_same(watch, stream, make, asked, answer):
    stream(make(), asked, watch.config)
    assert watch.only == (QUESTION, REFUNDS, answer)


@pytest.mark.parametrize("stream_mode", ["values", "updates", "messages"])
def test_an_agent_that_is_streamed_gives_the_same(watch, stream, stream_mode):
    stream(searching(), ASK, watch.config, stream_mode=stream_mode)
    assert watch.only == EXPECTED


SAID = {"id": "msg_1", "model_name": "small-1"}


def test_what_was_found_keeps_its_ids_its_names_and_where_the_answer_was(watch, invoke):
    reply = AIMessage(Reply(text=ANSWER).model_dump_json(), response_metadata=SAID)
    parser = PydanticOutputParser(pydantic_object=Reply)
    rag = rag_chain(FixedRetriever(prefix="doc-"), model(reply), parser=parser)
    config = {**watch.config, "run_name": "support", "metadata": {"session_id": "s-1"}}
    invoke(rag, QUESTION, config)
    assert watch.only == EXPECTED
    (result,) = watch.results
    run, case = result.run, result.case
    assert (run.pipeline, run.session_id, run.framework) == ("support", "s-1", "langchain")
    assert (run.response_id, run.model) == ("msg_1", "small-1")
    assert case.sources.answer == "output.text"
    assert case.chunk_ids == ["doc-0", "doc-1"]


def test_without_a_context_the_run_is_counted_so(new_watch, invoke):
    watch = new_watch(metrics=["faithfulness"], handler={"pipeline": "helpdesk"})
    for name in ("no retrieval", "nothing found"):
        invoke(SHAPES[name].make().with_config(run_name="rag"), QUESTION, watch.config)
    assert watch.stats.outcomes == {"no_context": 2}
    assert {result.pipeline for result in watch.results} == {"helpdesk"}


def test_an_application_that_adds_to_the_event_of_chats_hears_of_no_completions(watch, invoke):
    chats = []

    class Noting(RagaliqCallbackHandler):
        def on_chat_model_start(self, serialized, messages, **kwargs):
            chats.append(messages)
            super().on_chat_model_start(serialized, messages, **kwargs)

    handler = Noting(watch.monitor)
    for llm in (Completing(), model()):
        invoke(rag_chain(llm=llm), QUESTION, {"callbacks": [handler]})
    assert watch.triples == [EXPECTED] * 2
    assert (len(chats), handler.errors) == (1, 0)


# Graphs that are called more than once, or in more than one way


def test_documents_of_an_earlier_turn_in_the_kept_state_are_not_this_turns(watch, invoke):
    def maybe_retrieve(state):
        return retrieve(state) if state["question"] == QUESTION else {}

    def answer(state):
        shown = joined(state["documents"]) if state["question"] == QUESTION else "You're welcome."
        return {"generation": model(f"Answer to {state['question']}").invoke(shown).text}

    rag = graph(maybe_retrieve, answer, checkpointer=InMemorySaver())
    config = {**watch.config, "configurable": {"thread_id": "t-1"}}
    for question in (QUESTION, "Thank you!"):
        output = invoke(rag, {"question": question}, config)
    assert [doc.page_content for doc in output["documents"]] == REFUNDS
    assert watch.triples == [
        (QUESTION, REFUNDS, f"Answer to {QUESTION}"),
        ("Thank you!", [], "Answer to Thank you!"),
    ]


@pytest.mark.parametrize("is_wrapped", [False, True])
@pytest.mark.parametrize("is_handed_on", [False, True])
@pytest.mark.parametrize("options", [{}, {"answer_key": "generation"}])
def test_an_answer_of_an_earlier_turn_in_the_kept_state_is_not_this_turns(
    new_watch, invoke, options, is_handed_on, is_wrapped
):
    def search(state):
        found = retrieve(state)
        return {**state, **found} if is_handed_on else found

    watch = new_watch(handler=options)
    rag = graph(search, generate, checkpointer=InMemorySaver())
    asked = RunnablePassthrough() | rag if is_wrapped else rag
    config = {**watch.config, "configurable": {"thread_id": "t-1"}}
    invoke(asked, {"question": "What is new?"}, config)
    rag.interrupt_before_nodes = ["generate"]
    output = invoke(asked, {"question": QUESTION}, config)
    assert output["generation"] == ANSWER
    assert [asked for asked, *_ in watch.triples] == ["What is new?"]
    assert watch.stats.incomplete == {"no_answer": 1}
    invoke(rag, None, config)
    assert watch.triples[1:] == [EXPECTED]


class Reviewed(State):
    comment: str


@pytest.mark.parametrize("update", [None, {"comment": "Looks good to me."}])
def test_an_answer_from_before_an_approval_is_that_of_the_resumed_run(watch, invoke, update):
    def approve(state):
        interrupt("Send it?")
        return {}

    rag = graph(retrieve, generate, approve, state=Reviewed, checkpointer=InMemorySaver())
    config = {**watch.config, "configurable": {"thread_id": "t-1"}}
    invoke(rag, IN_STATE, config)
    assert watch.incomplete == {"interrupted": 1}
    invoke(rag, Command(resume=True, update=update), config)
    assert [(asked, answer) for asked, _, answer in watch.triples] == [(QUESTION, ANSWER)]


def test_callbacks_passed_on_by_hand_inside_a_node_do_not_make_a_second_run(watch, mode, invoke):
    config = watch.config

    def answer_by_hand(state):
        return {"generation": rag_chain().invoke(state["question"], config)}

    async def answer_by_hand_later(state):
        return {"generation": await rag_chain().ainvoke(state["question"], config)}

    node = answer_by_hand if mode == "sync" else answer_by_hand_later
    invoke(graph(node, output=Answer), IN_STATE, config)
    assert watch.only == EXPECTED


def test_a_conversation_that_is_kept_gives_each_turn_its_own_contexts(watch, invoke):
    calls = [calling("look_up", query="refunds"), ANSWER, calling("clock", city="Ulm"), "Noon."]
    chatting = agent(look_up, clock, calls=calls, reply="Bye.", checkpointer=InMemorySaver())
    config = {**watch.config, "configurable": {"thread_id": "t-1"}}
    for text in (QUESTION, "What time is it?", "Goodbye!"):
        invoke(chatting, {"messages": [("user", text)]}, config)
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

    asking = calling("approve", action="refund")
    asked = agent(approve, calls=[asking], checkpointer=InMemorySaver())
    config = {**watch.config, "configurable": {"thread_id": "t-1"}}
    run = stream if streamed else invoke
    run(asked, ASK, config)
    assert watch.incomplete == {"interrupted": 1}
    run(asked, Command(resume="yes"), config)
    assert watch.triples == [(QUESTION, ["The human said yes."], ANSWER)]
    assert watch.stats.outcomes == {"incomplete_run": 1, "evaluated": 1}
