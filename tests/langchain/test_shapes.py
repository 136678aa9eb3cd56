"""Applications in many shapes, each with the case that it gives; called both ways.

`tests/scenarios` has more of them, which also traces show; here are those that only the handler
sees in full, and the endings that give no case.
"""

import asyncio
import dataclasses
import json
from operator import itemgetter
from typing import Annotated, Any, NamedTuple, TypedDict

import pytest
from langchain.tools import tool
from langchain_classic.agents import AgentExecutor, create_tool_calling_agent
from langchain_classic.chains import ConversationalRetrievalChain, RetrievalQA
from langchain_classic.retrievers.multi_query import MultiQueryRetriever
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.output_parsers import (
    JsonOutputParser,
    PydanticOutputParser,
    StrOutputParser,
)
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough, chain
from langchain_shapes import (
    ASK,
    IN_STATE,
    Answer,
    agent,
    clock,
    generate,
    graph,
    retrieve,
    search,
    searching,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt
from pydantic import BaseModel
from rag_parts import (
    ANSWER,
    HISTORY,
    PROMPT,
    QUESTION,
    REFUNDS,
    Completing,
    FixedRetriever,
    calling,
    documents,
    history_aware_retriever,
    joined,
    model,
    rag_chain,
    retrieval_chain,
)

from langchain_ragaliq import RagaliqCallbackHandler

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of legacy chains

EXPECTED = (QUESTION, REFUNDS, ANSWER)
SOURCES = {"context": FixedRetriever() | joined, "question": RunnablePassthrough()}


class Shape(NamedTuple):
    """One application, and its case or why there is none."""

    make: Any
    asked: Any = QUESTION
    texts: list[str] = REFUNDS
    answer: str = ANSWER
    why_not: str = ""


class Reply(BaseModel):
    text: str
    sure: bool = True


BLOCKS = AIMessage(
    [
        {"type": "reasoning", "reasoning": "They mean money."},
        {"type": "text", "text": "Refunds take "},
        {"type": "image", "url": "https://example.com/a.png"},
        {"type": "text", "text": "five days."},
    ]
)
REFUSAL = AIMessage([{"type": "refusal", "refusal": "I cannot help with that."}])
ITSELF: dict[str, Any] = {"text": "five days."}
ITSELF["itself"] = ITSELF


def replying(reply, parser):
    return rag_chain(llm=model(reply), parser=parser)


def returning(**output):
    return RunnableLambda(lambda question: output)


def answering(answer):
    return RunnablePassthrough() | rag_chain() | RunnableLambda(lambda text: {"answer": answer})


def picked():
    context = itemgetter("question") | FixedRetriever() | joined
    answer = PROMPT | model() | StrOutputParser()
    return RunnablePassthrough.assign(context=context).assign(answer=answer).pick("answer")


@chain
def decorated(question):
    docs = FixedRetriever().invoke(question)
    return (PROMPT | model()).invoke({"context": joined(docs), "question": question}).text


def nested():
    first = {"question": itemgetter("q")} | RunnableLambda(itemgetter("question"))
    return first | rag_chain() | RunnableLambda(lambda text: {"final": text})


def cutting():
    found = []

    def keep(docs):
        found.extend(docs)
        return joined(docs)

    def cut(message):
        for doc in found:
            doc.page_content = doc.page_content[:3]
        return message

    return SOURCES | {"context": FixedRetriever() | keep} | PROMPT | model() | cut


def executor():
    scratchpad = MessagesPlaceholder("agent_scratchpad")
    prompt = ChatPromptTemplate.from_messages([("human", "{input}"), scratchpad])
    tools, llm = [search()], model(calling("search", query="r"), ANSWER)
    return AgentExecutor(agent=create_tool_calling_agent(llm, tools, prompt), tools=tools)


# Agents


@tool
def look_up(query: str) -> str:
    """Asks a retriever without passing callbacks on."""
    return joined(FixedRetriever().invoke(query))


@tool
def colleague(question: str) -> str:
    """Answers."""
    return f"{ANSWER}\n"


def announcing(name, **arguments):
    return calling(name, **arguments).model_copy(update={"content": "Let me look that up."})


@tool(return_direct=True)
def direct(query: str) -> str:
    """Looks things up."""
    return "found"


@tool(response_format="content_and_artifact")
def kept(query: str):
    """Looks things up."""
    return "2 documents", documents(prefix="d")


def said_by(user):
    return {"messages": [user]}


# Graphs


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class Strict(BaseModel):
    question: str
    language: str = "en"
    generation: str = ""


@dataclasses.dataclass
class Plain:
    question: str
    language: str = "en"
    generation: str = ""


def reject(state):
    return {"documents": []}


def check(state):
    """Asks a model about the answer that is already there."""
    model("grounded: yes").invoke(str(state.get("generation")))
    return {}


def answer_of_fields(state):
    return {"generation": rag_chain().invoke(state.question)}


def use_tool(state):
    call = {"name": "search", "args": {}, "id": "1", "type": "tool_call"}
    said = [{"role": "tool", "content": text, "tool_call_id": "1"} for text in REFUNDS]
    return {"messages": [{"role": "assistant", "content": "", "tool_calls": [call]}, *said]}


def reply(state):
    return {"messages": [model().invoke(state["messages"])]}


async def ask_inner_graph(state):
    inner = await graph(retrieve, generate).ainvoke({"question": state["question"]})
    return {"generation": inner["generation"]}


HUMAN = HumanMessage([{"type": "text", "text": QUESTION}, {"type": "image", "url": "x.png"}])
WITH_HISTORY = {"input": QUESTION, "chat_history": HISTORY}
PIECES = [{"type": "text", "text": "How long "}, {"type": "text", "text": "do refunds take?"}]
DURATION = json.dumps({"duration": "five days", "days": 5})

SHAPES = {
    # Questions
    "blocks": Shape(lambda: RunnableLambda(lambda message: message.text) | rag_chain(), HUMAN),
    "blocks in a dictionary": Shape(searching, said_by({"role": "user", "content": PIECES})),
    "a message": Shape(searching, said_by(HumanMessage(QUESTION))),
    "rewritten with history": Shape(
        lambda: retrieval_chain(history_aware_retriever()),
        WITH_HISTORY,
    ),
    "a Pydantic state": Shape(
        lambda: graph(answer_of_fields, state=Strict), Strict(question=QUESTION)
    ),
    "a dataclass state": Shape(
        lambda: graph(answer_of_fields, state=Plain), Plain(question=QUESTION)
    ),
    # Answers
    "picked": Shape(picked, IN_STATE),
    "a completion model": Shape(
        lambda: SOURCES | PromptTemplate.from_template("{context}\n{question}") | Completing()
    ),
    "blocks without reasoning": Shape(lambda: replying(BLOCKS, RunnablePassthrough())),
    "structured output": Shape(
        lambda: rag_chain(
            llm=model(calling("Reply", text=ANSWER)).with_structured_output(Reply),
            parser=RunnablePassthrough(),
        )
    ),
    "a parsed dictionary of its own": Shape(
        lambda: replying(DURATION, JsonOutputParser()), answer=DURATION
    ),
    "a text under an odd key": Shape(lambda: answering({("row", 1): ANSWER})),
    "a list that is no JSON": Shape(lambda: answering([1, {(): 1}]), answer="[1, {(): 1}]"),
    "an object that holds itself": Shape(lambda: answering(ITSELF), answer="five days."),
    "a check afterwards": Shape(lambda: graph(retrieve, generate, check), IN_STATE),
    # Contexts
    "texts beside the answer": Shape(
        lambda: returning(question=QUESTION, contexts=REFUNDS, answer=ANSWER)
    ),
    "a decorated function": Shape(lambda: decorated),
    "a chain inside another": Shape(nested, {"q": QUESTION}),
    "no retrieval": Shape(
        lambda: ChatPromptTemplate.from_template("{question}") | model(), texts=[]
    ),
    "an empty retrieval": Shape(lambda: rag_chain(FixedRetriever(texts=[])), texts=[]),
    "documents that are cut later": Shape(cutting),
    "unusual names in the prompt": Shape(
        lambda: (
            {"knowledge": FixedRetriever(), "ask": lambda q: q}
            | ChatPromptTemplate.from_template("Knowledge: {knowledge}\nAsk: {ask}")
            | model()
        )
    ),
    "rejected, returns the answer only": Shape(
        lambda: graph(retrieve, reject, generate, output=Answer), IN_STATE, []
    ),
    "a tool loop by hand": Shape(lambda: graph(use_tool, reply, state=Chat), ASK),
    "a tool that asks a retriever": Shape(
        lambda: agent(look_up, calls=[calling("look_up", query="r")]), ASK
    ),
    "documents that a tool keeps to itself": Shape(
        lambda: agent(kept, calls=[calling("kept", query="r")]),
        ASK,
        ["2 documents"],
    ),
    "a tool that gave the answer": Shape(
        lambda: agent(
            colleague,
            clock,
            calls=[calling("colleague", question="r"), calling("clock", city="Ulm")],
        ),
        ASK,
        ["It is noon in Ulm."],
    ),
    # Legacy chains
    "RetrievalQA": Shape(
        lambda: RetrievalQA.from_chain_type(model(), retriever=FixedRetriever()),
        {"query": QUESTION},
    ),
    "ConversationalRetrievalChain": Shape(
        lambda: ConversationalRetrievalChain.from_llm(
            model(), FixedRetriever(), condense_question_llm=model("refund duration")
        ),
        {"question": QUESTION, "chat_history": [("Hello", "Hi")]},
    ),
    "AgentExecutor": Shape(executor, {"input": QUESTION}),
    # Without a case
    "an empty question": Shape(rag_chain, "  ", why_not="no_question"),
    "an empty answer": Shape(lambda: rag_chain(llm=model("")), why_not="no_answer"),
    "only a prompt": Shape(lambda: SOURCES | PROMPT, why_not="no_answer"),
    "only documents": Shape(
        lambda: model("refund duration") | StrOutputParser() | FixedRetriever(),
        why_not="no_answer",
    ),
    "only what was found for a model's queries": Shape(
        lambda: (
            MultiQueryRetriever.from_llm(FixedRetriever(), model("a\nb"))
            | RunnableLambda(lambda docs: {"found": len(docs)})
        ),
        why_not="no_answer",
    ),
    "a refusal without text": Shape(
        lambda: replying(REFUSAL, RunnablePassthrough()), why_not="no_answer"
    ),
    "a tool's answer, returned directly": Shape(
        lambda: agent(direct, calls=[calling("direct", query="r")]), ASK, why_not="no_answer"
    ),
    "a tool's answer, returned directly after a word": Shape(
        lambda: agent(direct, calls=[announcing("direct", query="r")]), ASK, why_not="no_answer"
    ),
    "a call of a tool": Shape(
        lambda: ChatPromptTemplate.from_template("{question}") | model(calling("clock", city="x")),
        why_not="no_answer",
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_an_application_gives_this_case(watch, name):
    shape = SHAPES[name]
    shape.make().invoke(shape.asked, watch.config)
    if shape.why_not:
        assert watch.incomplete == {shape.why_not: 1}
    else:
        assert watch.only == (QUESTION, shape.texts, shape.answer)


ASYNCHRONOUS = {
    "rewritten": (lambda: retrieval_chain(history_aware_retriever()), WITH_HISTORY),
    "a decorated function": (lambda: decorated, QUESTION),
    "a tool that asks a retriever": (SHAPES["a tool that asks a retriever"].make, ASK),
    "a graph inside a graph": (lambda: graph(ask_inner_graph), IN_STATE),
    "AgentExecutor": (executor, {"input": QUESTION}),
}


@pytest.mark.parametrize("name", ASYNCHRONOUS)
def test_an_application_that_is_called_asynchronously_gives_the_same(watch, name):
    make, asked = ASYNCHRONOUS[name]
    asyncio.run(make().ainvoke(asked, watch.config))
    assert watch.only == EXPECTED


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


def test_what_was_found_keeps_its_ids_its_names_and_where_the_answer_was(watch, invoke):
    reply = AIMessage(Reply(text=ANSWER).model_dump_json(), response_metadata={"id": "msg_1"})
    parser = PydanticOutputParser(pydantic_object=Reply)
    rag = rag_chain(FixedRetriever(prefix="doc-"), model(reply), parser=parser)
    config = {**watch.config, "run_name": "support", "metadata": {"session_id": "s-1"}}
    invoke(rag, QUESTION, config)
    assert watch.only == EXPECTED
    (result,) = watch.results
    run, case = result.run, result.case
    assert (run.pipeline, run.session_id, run.framework) == ("support", "s-1", "langchain")
    assert (run.response_id, case.sources.answer) == ("msg_1", "output.text")
    assert case.chunk_ids == ["doc-0", "doc-1"]


def test_without_a_context_the_run_is_counted_so(new_watch, invoke):
    watch = new_watch(evaluators=["faithfulness"], handler={"pipeline": "helpdesk"})
    for name in ("no retrieval", "an empty retrieval"):
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


def test_an_answer_from_before_an_approval_is_that_of_the_resumed_run(watch, invoke):
    def approve(state):
        interrupt("Send it?")
        return {}

    rag = graph(retrieve, generate, approve, checkpointer=InMemorySaver())
    config = {**watch.config, "configurable": {"thread_id": "t-1"}}
    invoke(rag, IN_STATE, config)
    assert watch.incomplete == {"interrupted": 1}
    invoke(rag, Command(resume=True), config)
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
