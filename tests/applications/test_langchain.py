"""LangChain and LangGraph applications as people write them: what the model was shown counts."""

from __future__ import annotations

import asyncio
import json
import operator
import re
import sys
from collections.abc import Callable
from contextlib import nullcontext
from operator import itemgetter
from types import ModuleType, SimpleNamespace
from typing import Annotated, Any, TypedDict
from uuid import uuid4

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import tool
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.runnables.history import RunnableWithMessageHistory
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel, Field

from langchain_ragaliq import RagaliqCallbackHandler, RagaliqGuard
from ragaliq import CaseDraft, ConfigurationError, GuardRejected, Monitor, TelemetryOptions
from ragaliq.testing import ScriptedJudge

QUESTION = "How long do refunds take?"
ANSWER = "It takes five days until the money is back."
REFUNDS = "Refunds take five days after the parcel has arrived."
HOURS = "The shop opens at nine and closes at six."
PARKING = "Parking costs two euros for every hour."

PROMPT = ChatPromptTemplate.from_messages([("system", "Use: {context}"), ("human", "{question}")])


class Model(BaseChatModel):
    """Replies with what a function makes of the prompt's text: a text or a message."""

    reply: Callable[[str], Any]

    @property
    def _llm_type(self) -> str:
        return "applications"

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        reply = self.reply("\n".join(str(message.content) for message in messages))
        message = AIMessage(reply) if isinstance(reply, str) else reply
        return ChatResult(generations=[ChatGeneration(message=message)])


def model(reply=ANSWER):
    return Model(reply=reply if callable(reply) else lambda prompt: reply)


def in_turn(*replies):
    left = list(replies)
    return Model(reply=lambda prompt: left.pop(0))


def calling(name, **arguments):
    return AIMessage("", tool_calls=[ToolCall(name=name, args=arguments, id=f"call-{name}")])


class Finding(BaseRetriever):
    """Finds these texts, whatever is asked."""

    texts: list[str] = Field(default_factory=lambda: [REFUNDS, HOURS])

    def _get_relevant_documents(self, query, *, run_manager):
        return [
            Document(text, id=f"id-{n}", metadata={"source": f"{n}.md", "page": n})
            for n, text in enumerate(self.texts)
        ]


def joined(documents):
    return "\n\n".join(document.page_content for document in documents)


class Watch:
    def __init__(self):
        self.results = []
        self.monitor = Monitor(judge=ScriptedJudge(), on_result=self.results.append)
        self.handler = RagaliqCallbackHandler(self.monitor)
        self.config = {"callbacks": [self.handler]}

    @property
    def cases(self):
        assert self.monitor.flush(30)
        assert self.handler.errors == 0
        return [e.case for e in sorted(self.results, key=lambda e: e.run.ended_at)]

    @property
    def only(self):
        (case,) = self.cases
        return case

    @property
    def contexts(self):
        return [case.context_texts for case in self.cases]


@pytest.fixture
def watch():
    made = Watch()
    yield made
    made.monitor.close(5)


class State(TypedDict, total=False):
    question: str
    documents: list
    context: str
    generation: str


def graph(*nodes, state=State, **options):
    builder = StateGraph(state, output_schema=options.pop("output", state))
    builder.add_sequence(nodes)
    builder.add_edge(START, nodes[0].__name__)
    builder.add_edge(nodes[-1].__name__, END)
    return builder.compile(**options)


def retrieve(state):
    return {"documents": Finding().invoke(state["question"])}


def generate(state):
    asked = {"context": joined(state["documents"]), "question": state["question"]}
    return {"generation": (PROMPT | model() | StrOutputParser()).invoke(asked)}


def thread(watch, name="t-1"):
    return {**watch.config, "configurable": {"thread_id": name}}


# Turns and interrupts


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
        in_turn(calling("search", query="refunds"), calling("send", text="Five days."), ANSWER),
        [search, send],
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"send": True})],
        checkpointer=InMemorySaver(),
    )
    agent.invoke({"messages": [("user", QUESTION)]}, thread(watch))
    agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread(watch))
    assert (watch.only.query, watch.only.context_texts) == (QUESTION, [REFUNDS, "sent"])


# Answers


class Cited(BaseModel):
    """An answer with its sources."""

    answer: str
    sources: list[str]


class Nested(BaseModel):
    """An answer further inside."""

    result: Cited
    confidence: float


CITED = Cited(answer=ANSWER, sources=["0.md"])


def test_an_agents_structured_response_is_the_text_a_person_reads(watch):
    agent = create_agent(
        in_turn(calling("Cited", answer=ANSWER, sources=["0.md"])), [], response_format=Cited
    )
    output = agent.invoke({"messages": [("user", f"{REFUNDS} {QUESTION}")]}, watch.config)
    assert output["structured_response"] == CITED
    assert watch.only.response == ANSWER
    assert watch.only.sources.answer == "output.structured_response.answer"


@pytest.mark.parametrize(
    "made",
    [
        CITED,
        Nested(result=CITED, confidence=0.9),
        {"answer": {"text": ANSWER, "citations": [1, 2]}},
        {"response": CITED},
        {"output": {"result": {"answer": ANSWER}}, "took": 3.5},
    ],
)
def test_an_answer_inside_an_object_is_found_before_anything_is_made_json(watch, made):
    chain = {"context": Finding() | joined, "question": RunnablePassthrough()} | PROMPT | model()
    (chain | (lambda _: made)).invoke(QUESTION, watch.config)
    assert (watch.only.response, watch.only.context_texts) == (ANSWER, [REFUNDS, HOURS])


# Questions


@pytest.mark.parametrize(
    "inputs",
    [
        {"wish": QUESTION},
        {"wish": QUESTION, "lang": "en"},
        {"wish": QUESTION, "tenant": "acme", "user_id": "u1"},
    ],
)
def test_a_question_under_an_unknown_key_is_never_the_answer(watch, inputs):
    def answer(given):
        asked = {"context": joined(Finding().invoke("x")), "question": given["wish"]}
        return {"reply": (PROMPT | model()).invoke(asked).text}

    RunnableLambda(answer).invoke(inputs, watch.config)
    assert (watch.only.query, watch.only.response) == (QUESTION, ANSWER)


def test_what_a_chain_returns_under_an_unknown_key_is_no_question(watch):
    RunnableLambda(lambda given: {"reply": model().invoke("x").text}).invoke(3, watch.config)
    assert watch.cases == []
    assert dict(watch.monitor.stats().incomplete) == {"no_question": 1}


# Context that the model never saw


class Reranking(BaseRetriever):
    """Asks another retriever without passing callbacks on, and keeps the first."""

    base: BaseRetriever = Field(default_factory=Finding)

    def _get_relevant_documents(self, query, *, run_manager):
        return self.base.invoke(query)[:1]


def rag(source, llm=None):
    return (
        {"context": source | joined, "question": RunnablePassthrough()} | PROMPT | (llm or model())
    )


def test_what_a_reranking_retriever_rejected_is_no_context(watch):
    rag(Reranking()).invoke(QUESTION, watch.config)
    assert watch.only.context_texts == [REFUNDS]


def test_a_fusion_of_documents_with_scores_keeps_what_it_passes_on(watch):
    def fuse(lists):
        ranked = [(document, 0.5) for found in lists.values() for document in found]
        return [pair for pair in ranked if pair[0].page_content != HOURS]

    search = {"a": Finding(), "b": Finding(texts=[PARKING, HOURS])}
    rag(search | RunnableLambda(fuse) | (lambda pairs: [d for d, _ in pairs])).invoke(
        QUESTION, watch.config
    )
    assert watch.only.context_texts == [REFUNDS, PARKING]


class Answer(TypedDict):
    generation: str


def test_self_rag_with_an_output_schema_counts_what_the_grader_let_through(watch):
    def grade(state):
        kept = [d for d in state["documents"] if model("yes").invoke(d.page_content)][:1]
        return Command(update={"documents": kept})

    graph(retrieve, grade, generate, output=Answer).invoke({"question": QUESTION}, watch.config)
    assert watch.only.context_texts == [REFUNDS]


def test_the_examples_and_memories_that_a_query_writer_was_shown_are_no_context(watch):
    memories = Finding(texts=["The user once asked about parking in the yard."])

    def rewrite(question):
        asked = f"{joined(memories.invoke(question))} {question}"
        return model("refund duration").invoke(asked).text

    (RunnablePassthrough.assign() | {
        "context": (lambda given: rewrite(given["question"])) | Finding() | joined,
        "question": lambda given: given["question"],
    } | PROMPT | model()).invoke({"question": QUESTION}, watch.config)  # fmt: skip
    assert watch.only.context_texts == [REFUNDS, HOURS]


# Context in plain sight


def test_a_text_in_the_state_is_the_context(watch):
    def search(state):
        return {"context": f"{REFUNDS}\n{HOURS}"}

    def answer(state):
        asked = f"{state['context']}\n{state['question']}"
        return {"generation": model().invoke(asked).text}

    graph(search, answer).invoke({"question": QUESTION}, watch.config)
    assert watch.only.context_texts == [f"{REFUNDS}\n{HOURS}"]


def test_documents_that_are_the_input_are_the_context(watch):
    chain = {
        "context": lambda given: joined(given["papers"]),
        "question": lambda given: given["question"],
    } | PROMPT | model()  # fmt: skip
    given = {"question": QUESTION, "papers": [Document(REFUNDS, id="r")]}
    chain.invoke(given, watch.config)
    assert (watch.only.context_texts, watch.only.chunk_ids) == ([REFUNDS], ["r"])


@pytest.mark.parametrize(
    "hold",
    [
        lambda found: {"hits": [(document, 0.7) for document in found]},
        lambda found: {"hits": {"store": {"first": found[:1], "rest": found[1:]}}},
        lambda found: Command(update={"hits": found}),
    ],
    ids=["tuples with scores", "nested dictionaries", "a command"],
)
def test_documents_are_found_wherever_a_state_holds_them(watch, hold):
    class Hits(TypedDict, total=False):
        question: str
        hits: Any
        generation: str

    def search(state):
        # As a vector store is asked: no retriever reports anything.
        return hold([Document(REFUNDS, id="r"), Document(HOURS, id="h")])

    def answer(state):
        return {"generation": model().invoke(f"{REFUNDS}\n{HOURS}\n{state['question']}").text}

    graph(search, answer, state=Hits, output=Answer).invoke({"question": QUESTION}, watch.config)
    assert (watch.only.context_texts, watch.only.chunk_ids) == ([REFUNDS, HOURS], ["r", "h"])
    assert watch.only.sources.context == "prompt"


@pytest.mark.parametrize("held", ["bare", "under a key"])
def test_a_plain_steps_list_of_texts_is_found_too(watch, held):
    @task
    def look(question):
        texts = [REFUNDS, HOURS, PARKING]
        return texts if held == "bare" else {"hits": texts, "ids": [1, 2]}

    @entrypoint()
    def answer(given):
        found = look(given["question"]).result()
        texts = (found if held == "bare" else found["hits"])[:2]
        return {"answer": model().invoke("\n".join([*texts, given["question"]])).text}

    answer.invoke({"question": QUESTION}, watch.config)
    assert watch.only.context_texts == [REFUNDS, HOURS]


def test_without_a_context_the_case_and_the_handler_say_why(watch):
    rag(Finding() | (lambda found: [])).invoke(QUESTION, watch.config)
    rag(Finding(texts=[])).invoke(QUESTION, watch.config)
    model().pipe(StrOutputParser()).invoke(QUESTION, watch.config)
    assert [case.sources.no_context for case in watch.cases] == [
        "not_in_prompt",
        "nothing_found",
        "nothing_retrieved",
    ]
    stats = watch.monitor.stats()
    assert stats.without_context == {
        "not_in_prompt": 1, "nothing_found": 1, "nothing_retrieved": 1
    }  # fmt: skip
    explained = watch.handler.explain(watch.cases[0].id)
    assert (explained.outcome, explained.sources.no_context) == ("submitted", "not_in_prompt")


# Runs


@pytest.mark.parametrize("is_async", [False, True])
def test_every_item_of_a_mapped_chain_is_a_run_of_its_own(watch, is_async):
    chain = rag(Finding(), model(lambda prompt: f"{ANSWER} {prompt[-9:]}")).map()
    questions = ["Is it one?", "Or is it two?"]
    if is_async:
        asyncio.run(chain.ainvoke(questions, watch.config))
    else:
        chain.invoke(questions, watch.config)
    assert {case.query: case.response[-5:] for case in watch.cases} == {
        "Is it one?": " one?", "Or is it two?": " two?"
    }  # fmt: skip


def test_a_run_that_answers_several_questions_at_once_is_not_mixed_up(watch):
    chain = RunnableLambda(lambda questions: [model().invoke(q).text for q in questions])
    chain.invoke([QUESTION, "And parcels?"], watch.config)
    assert watch.cases == []
    assert dict(watch.monitor.stats().incomplete) == {"several_questions": 1}


def test_langfuses_span_of_an_asynchronous_run_is_its_target(watch, monkeypatch):
    # Langfuse 5.0.4: the handler is not inline, so that its spans are current in other threads.
    monkeypatch.setitem(sys.modules, "langfuse.langchain", ModuleType("langfuse.langchain"))
    context = trace.SpanContext(0xABC, 0xDEF, is_remote=False)

    class Langfuse(BaseCallbackHandler):
        __module__ = "langfuse.langchain.CallbackHandler"

        def __init__(self):
            self._runs = {}

        def on_chain_start(self, serialized, inputs, *, run_id, parent_run_id=None, **kwargs):
            if parent_run_id is None:
                self._runs[run_id] = SimpleNamespace(_otel_span=trace.NonRecordingSpan(context))

    config = {"callbacks": [watch.handler, Langfuse()]}
    asyncio.run(rag(Finding()).ainvoke(QUESTION, config))
    assert watch.cases
    target = watch.results[0].target
    assert (target.span_id, target.source) == (f"{0xDEF:016x}", "langfuse")


# Metadata


def test_metadata_of_documents_and_of_the_run_reach_the_case(watch):
    config = {**watch.config, "metadata": {"tenant": "acme", "ls_provider": "x", "thread_id": "t"}}
    rag(Finding()).invoke(QUESTION, config)
    assert [chunk.metadata for chunk in watch.only.context] == [
        {"source": "0.md", "page": 0},
        {"source": "1.md", "page": 1},
    ]
    assert watch.only.metadata == {"tenant": "acme", "thread_id": "t"}


def test_with_content_capture_a_record_names_the_document_and_the_tenant():
    records = []

    class Keeping:
        name = "keeping"

        async def write(self, batch):
            records.extend(batch)

        async def aclose(self):
            pass

    monitor = Monitor(judge=ScriptedJudge(), sinks=[Keeping()], capture_content=True)
    config = {"callbacks": [RagaliqCallbackHandler(monitor)], "metadata": {"tenant": "acme"}}
    rag(Finding()).invoke(QUESTION, config)
    assert monitor.close(30)
    (record,) = records
    assert record.case.metadata == {"tenant": "acme"}
    assert record.case.context[0].metadata == {"source": "0.md", "page": 0}
    assert record.case.sources.context == "prompt"


@pytest.mark.parametrize("may_leave", [True, False])
def test_a_contradicted_claim_points_to_its_file_in_telemetry_where_content_may_leave(may_leave):
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monitor = Monitor(
        judge="local",
        evaluators=["faithfulness"],
        executor="thread",
        capture_content=may_leave,
        telemetry=TelemetryOptions(tracer_provider=provider),
    )
    config = {"callbacks": [RagaliqCallbackHandler(monitor)], "metadata": {"tenant": "acme"}}
    wrong = model("Refunds take nine days after the parcel has arrived.")
    rag(Finding(texts=[HOURS, REFUNDS]), wrong).invoke(QUESTION, config)
    assert monitor.close(30)
    by_name = {span.name: dict(span.attributes) for span in spans.get_finished_spans()}
    assert by_name["claim contradicted"]["ragaliq.claim.verdict"] == "CONTRADICTED"
    sources = by_name["claim contradicted"].get("ragaliq.claim.document.sources")
    assert sources == (("1.md",) if may_leave else None)
    said = [attributes.get("metadata") for attributes in by_name.values()]
    assert ('{"tenant": "acme"}' in said) == may_leave
    assert may_leave or not any(".md" in str(held) for held in by_name.values())


@pytest.mark.parametrize("wrapped", [lambda graph: graph, lambda graph: graph | (lambda out: out)])
def test_a_guard_refuses_to_write_its_retries_into_a_thread(wrapped):
    agent = create_agent(model(), [], checkpointer=InMemorySaver())
    with pytest.raises(ConfigurationError, match="RagaliqGuardMiddleware"):
        RagaliqGuard(wrapped(agent), judge=ScriptedJudge(), action="retry", fallback="?")
    guard = RagaliqGuard(wrapped(agent), judge=ScriptedJudge(), action="fallback", fallback="?")
    guard.guard.monitor.close(5)


def searching_agent(reply, **options):
    @tool
    def search(query: str) -> str:
        """Searches."""
        return REFUNDS

    said = in_turn(calling("search", query="refunds"), reply, calling("search", query="x"), ANSWER)
    return create_agent(said, [search], **options)


def answering_graph(reply, **options):
    return graph(retrieve, lambda state: {"generation": reply}, **options)


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
@pytest.mark.parametrize(
    ("made", "asked"),
    [
        (searching_agent, {"messages": [HumanMessage(QUESTION)]}),
        (answering_graph, {"question": QUESTION}),
    ],
)
def test_a_fallback_stands_in_the_thread_in_place_of_the_rejected_answer(made, asked, way):
    wrong, fallback = "Refunds take nine days.", "I do not know."
    guarded = made(wrong, checkpointer=InMemorySaver())
    guard = RagaliqGuard(guarded, judge=ScriptedJudge(), fallback=fallback)
    config = {"configurable": {"thread_id": "t-1"}}

    async def gone_through():
        return [piece async for piece in guard.astream(asked, config)]

    if way == "ainvoke":
        out = asyncio.run(guard.ainvoke(asked, config))
    elif way == "astream":
        out = asyncio.run(gone_through())
    else:
        out = guard.invoke(asked, config) if way == "invoke" else list(guard.stream(asked, config))
    assert fallback in str(out)
    state = guarded.get_state(config)
    assert (wrong in str(state.values), fallback in str(state.values)) == (False, True)
    assert state.next == ()
    assert len(state.values.get("messages", "four")) == 4
    guard.guard.monitor.close(5)


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream"])
@pytest.mark.parametrize(
    "wrapped",
    [
        lambda graph: (lambda given: given) | graph,
        lambda graph: (lambda given: given) | graph | (lambda out: out["messages"][-1].text),
        lambda graph: ((lambda given: given) | graph).with_config(run_name="shop"),
        lambda graph: graph.with_retry(),
    ],
    ids=["after a step", "before a parser", "bound", "retried"],
)
def test_a_fallback_stands_in_the_thread_of_a_graph_inside_a_chain(wrapped, way):
    wrong, fallback = "Refunds take nine days.", "I do not know."
    agent = searching_agent(wrong, checkpointer=InMemorySaver())
    guard = RagaliqGuard(wrapped(agent), judge=ScriptedJudge(), fallback=fallback)
    asked, config = {"messages": [HumanMessage(QUESTION)]}, {"configurable": {"thread_id": "t-1"}}
    if way == "ainvoke":
        out = asyncio.run(guard.ainvoke(asked, config))
    else:
        out = guard.invoke(asked, config) if way == "invoke" else list(guard.stream(asked, config))
    assert fallback in str(out)
    messages = [message.text for message in agent.get_state(config).values["messages"]]
    assert messages == [QUESTION, "", REFUNDS, fallback]
    guard.guard.monitor.close(5)


def test_the_thread_of_a_graph_that_did_not_answer_stays_as_it_is():
    searching = graph(retrieve, state=State, checkpointer=InMemorySaver())
    wrong = {"answer": "Refunds take nine days."}
    chain = searching | (lambda state: {**wrong, "context": state["documents"]})
    guard = RagaliqGuard(chain, judge=ScriptedJudge(), fallback="I do not know.")
    config = {"configurable": {"thread_id": "t-1"}}
    assert guard.invoke({"question": QUESTION}, config)["answer"] == "I do not know."
    assert searching.get_state(config).values.keys() == {"question", "documents"}
    guard.guard.monitor.close(5)


HISTORY_PROMPT = ChatPromptTemplate.from_messages(
    [("system", f"{REFUNDS} {HOURS}"), ("placeholder", "{history}"), ("human", "{question}")]
)


def with_history(chain, kept):
    return RunnableWithMessageHistory(
        chain, lambda _: kept, input_messages_key="question", history_messages_key="history"
    )


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
def test_a_guard_around_a_history_of_messages_says_where_it_belongs(wrapped):
    chain = wrapped(with_history(HISTORY_PROMPT | model(), InMemoryChatMessageHistory()))
    for action in ("fallback", "retry", "raise"):
        with pytest.raises(ConfigurationError, match="inside: RunnableWithMessageHistory"):
            RagaliqGuard(chain, judge=ScriptedJudge(), action=action)
    RagaliqGuard(chain, judge=ScriptedJudge(), action="annotate").guard.monitor.close(5)


def test_a_chain_may_call_something_else_its_steps():
    chain = RunnableLambda(lambda given: given)
    chain.steps = 3
    RagaliqGuard(chain, judge=ScriptedJudge(), action="raise").guard.monitor.close(5)


@pytest.mark.filterwarnings("ignore:.*deprecated")
@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream"])
@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"fallback": "I do not know."}, [QUESTION, "I do not know."]),
        ({"action": "retry"}, [QUESTION, REFUNDS]),
        ({"action": "raise"}, []),
    ],
)
def test_inside_one_the_history_keeps_what_went_out(options, kept, way):
    chain = (
        RunnablePassthrough.assign(context=itemgetter("question") | Finding())
        | HISTORY_PROMPT
        | in_turn("Refunds take nine days.", REFUNDS)
    )
    history = InMemoryChatMessageHistory()
    guard = RagaliqGuard(chain, judge=ScriptedJudge(), **options)
    chat, asked = with_history(guard, history), {"question": QUESTION}
    config = {"configurable": {"session_id": "s-1"}}
    with nullcontext() if kept else pytest.raises(GuardRejected):
        if way == "ainvoke":
            asyncio.run(chat.ainvoke(asked, config))
        else:
            out = getattr(chat, way)(asked, config)
            assert out if way == "invoke" else list(out)
    assert [message.text for message in history.messages] == kept
    guard.guard.monitor.close(5)


def test_a_run_that_a_guard_stopped_is_explained(watch):
    guard = RagaliqGuard(
        rag(Finding(), model("It takes nine days.")), judge=ScriptedJudge(), action="raise"
    )
    chain, run_id = guard | (lambda out: out), uuid4()
    with pytest.raises(GuardRejected):
        chain.invoke(QUESTION, {**watch.config, "run_id": run_id})
    assert watch.handler.explain(run_id).outcome == "withdrawn"
    assert watch.monitor.stats().started == 0
    guard.guard.monitor.close(5)


def test_a_guard_refuses_retries_with_a_checkpointer_that_it_is_given_with_the_call():
    guard = RagaliqGuard(answering_graph(ANSWER), judge=ScriptedJudge(), action="retry")

    def guarded(state):
        return guard.invoke(state)

    within = graph(guarded, checkpointer=InMemorySaver())
    with pytest.raises(ConfigurationError, match="RagaliqGuardMiddleware"):
        within.invoke({"question": QUESTION}, {"configurable": {"thread_id": "t-1"}})
    assert graph(guarded).invoke({"question": QUESTION})
    guard.guard.monitor.close(5)


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


class ReportState(MessagesState):
    final_report: str


def test_a_report_next_to_messages_that_hold_only_the_question_is_the_answer(watch):
    def write(state):
        given = {"question": QUESTION, "context": joined(Finding().invoke(QUESTION))}
        return {"final_report": (PROMPT | model() | StrOutputParser()).invoke(given)}

    builder = StateGraph(ReportState).add_node(write)
    builder.add_edge(START, "write")
    builder.compile().invoke({"messages": [HumanMessage(QUESTION)]}, watch.config)
    assert (watch.only.query, watch.only.response) == (QUESTION, ANSWER)


def test_pairs_of_questions_and_answers_are_a_history(watch):
    chain = RunnablePassthrough.assign(context=lambda given: joined(Finding().invoke("x")))
    said = model().invoke(QUESTION).text  # LangChain's own kind of string
    given = {"question": "And parcels?", "chat_history": [(QUESTION, said)]}
    (chain | PROMPT | model()).invoke(given, watch.config)
    history = [(turn.role, turn.text) for turn in watch.only.history]
    assert history == [("user", QUESTION), ("assistant", ANSWER)]


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


# Results of tools in JSON


@pytest.mark.parametrize(
    "said",
    [
        {"query": "x", "results": [{"url": "a", "content": REFUNDS}, {"content": HOURS}]},
        {"results": {"documents": [{"page_content": REFUNDS}, {"text": HOURS}]}},
        [REFUNDS, HOURS],
    ],
)
def test_the_hits_in_a_tools_json_are_the_context(watch, said):
    @tool
    def search(query: str) -> Any:
        """Searches."""
        return json.dumps(said)

    agent = create_agent(in_turn(calling("search", query="refunds"), ANSWER), [search])
    agent.invoke({"messages": [("user", QUESTION)]}, watch.config)
    assert watch.only.context_texts == [REFUNDS, HOURS]


def test_json_that_lists_nothing_is_the_context_as_it_is(watch):
    @tool
    def rows(query: str) -> str:
        """Looks up."""
        return '{"days": 5, "rows": [[1, 2]]}'

    agent = create_agent(in_turn(calling("rows", query="refunds"), ANSWER), [rows])
    agent.invoke({"messages": [("user", QUESTION)]}, watch.config)
    assert watch.only.context_texts == ['{"days": 5, "rows": [[1, 2]]}']


# A chat model as the judge


def judging(prompt):
    """Answers ragaliq's prompts about the only claim."""
    usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    verdict = {"index": 0, "verdict": "CONTRADICTED", "evidence": REFUNDS, "reason": "It is five."}
    reply = {"statements": [ANSWER], "verdicts": [verdict], "score": 0.9, "reasoning": "Good."}
    return AIMessage(json.dumps(reply), usage_metadata=usage)


def test_a_chat_model_is_the_judge_of_handlers_and_guards(watch):
    results = []
    judge = Model(reply=judging)
    handler = RagaliqCallbackHandler(
        judge=judge, evaluators=["faithfulness"], on_result=results.append
    )
    rag(Finding()).invoke(QUESTION, {"callbacks": [handler]})
    assert handler.monitor.close(30)
    (result,) = results
    found = result.results["faithfulness"]
    assert (found.claims[0].verdict, found.usage.input_tokens) == ("CONTRADICTED", 14)
    guard = RagaliqGuard(rag(Finding()), judge=judge, fallback="I do not know.")
    assert guard.invoke(QUESTION).text == "I do not know."
    guard.guard.monitor.close(5)
    assert watch.monitor.stats().started == 0


# Mistakes are named where they were made


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sample_rat": 0.1}, TypeError, "Handler got .*'sample_rat' .did you mean 'sample_rate'"),
        ({"redact": 1}, ConfigurationError, "redact must be a function"),
        ({"max_runs": 0}, ConfigurationError, "max_runs must be a positive number, got 0"),
        ({"max_age": -1}, ConfigurationError, "max_age must be a positive number, got -1"),
    ],
)
def test_a_wrong_option_is_refused_in_the_name_of_what_was_called(options, error, message):
    with pytest.raises(error, match=message):
        RagaliqCallbackHandler(judge=ScriptedJudge(), **options)


def test_a_guard_s_wrong_option_is_refused_in_its_name():
    with pytest.raises(TypeError, match=r"RagaliqGuard got .* .did you mean 'thresholds'"):
        RagaliqGuard(rag(Finding()), judge=ScriptedJudge(), treshold=0.5)


def test_an_error_in_extract_is_logged_with_its_file_and_line(watch, caplog):
    handler = RagaliqCallbackHandler(watch.monitor, extract=lambda inputs, outputs: outputs["x"])
    for _ in range(2):
        rag(Finding()).invoke(QUESTION, {"callbacks": [handler]})
    (record,) = caplog.records
    assert re.search(r"extract failed: \w+ \(test_langchain.py, line \d+\)", record.getMessage())


def test_a_paid_judge_of_every_run_without_a_budget_says_so_once(caplog):
    class Paid(Model):
        """A model that no other test has as a judge."""

    judge = Paid(reply=judging)
    for options in ({"sample_rate": 0.5}, {}, {"deadline": 9.0}):
        handler = RagaliqCallbackHandler(judge=judge, **options)
        handler.monitor.close(5)
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("every run is judged by chat-model (Paid)")


def test_runs_that_all_end_without_a_score_are_named_once(caplog):
    monitor = Monitor(judge=ScriptedJudge(), evaluators=["faithfulness"])
    config = {"callbacks": [RagaliqCallbackHandler(monitor)]}
    for _ in range(30):
        model().with_config(run_name="chat").pipe(StrOutputParser()).invoke(QUESTION, config)
    assert monitor.close(30)
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("of the first runs none was scored (20 no_context)")


def test_so_are_runs_that_all_fail_inside(caplog):
    monitor = Monitor(judge=ScriptedJudge(), evaluators=["faithfulness"])
    for number in range(30):
        assert monitor.submit(CaseDraft(id=str(number), query=3, response=ANSWER, passages=[]))
    assert monitor.close(30)
    _, said = [record.getMessage() for record in caplog.records]
    assert said.startswith("of the first runs none was scored (20 internal_error)")


# Values of neighbouring chunks


@pytest.mark.parametrize(
    ("reply", "is_supported"),
    [
        ("Refunds take nine days after the parcel has arrived.", False),
        ("Refunds take two days after the parcel has arrived.", False),
        ("The shop opens at five and closes at six.", False),
        ("Parking costs five euros for every hour.", False),
        ("Refunds take five days after the parcel has arrived.", True),
        ("The shop opens at nine and closes at six.", True),
    ],
)
def test_a_value_of_the_chunk_next_to_it_supports_no_claim(reply, is_supported):
    results = []
    monitor = Monitor(judge="local", executor="thread", on_result=results.append)
    config = {"callbacks": [RagaliqCallbackHandler(monitor)]}
    rag(Finding(texts=[HOURS, REFUNDS, PARKING]), model(reply)).invoke(QUESTION, config)
    assert monitor.close(30)
    (claim,) = results[0].results["faithfulness"].claims
    assert (claim.verdict == "SUPPORTED") == is_supported
