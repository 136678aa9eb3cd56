"""The same conversations as applications hold them: the last answer's claims rest on the same."""

import itertools
import json

import pytest
from conversations_table import CONVERSATIONS
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_core.runnables.history import RunnableWithMessageHistory
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine
from llama_index.core.llms import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    CustomLLM,
    LLMMetadata,
)
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.retrievers import BaseRetriever as LlamaIndexRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from opentelemetry.sdk.trace import TracerProvider

from langchain_ragaliq import RagaliqCallbackHandler
from llama_index.evaluation.ragaliq import attach, detach
from ragaliq.traces import RagaliqSpanProcessor

ALL = pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda each: each.name)


@pytest.fixture
def session(request):
    return request.node.name


def last_sources(monitor, results):
    assert monitor.flush(30)
    last = max(results, key=lambda each: each.run.ended_at)
    claims = last.results["faithfulness"].claims
    return {claim.claim: claim.support_source for claim in claims}


class Shelf(BaseRetriever):
    """Gives the chunks of the exchange whose question it gets."""

    chunks: dict[str, tuple[str, ...]]

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [Document(page_content=text) for text in self.chunks[query]]


def langchain_parts(conversation):
    shelf = Shelf(chunks={each.question: each.chunks for each in conversation.exchanges})
    replies = iter([AIMessage(each.answer) for each in conversation.exchanges])
    return shelf, GenericFakeChatModel(messages=replies)


PROMPT = ChatPromptTemplate(
    [
        ("system", "Answer from this:\n{context}"),
        MessagesPlaceholder("history", optional=True),
        ("human", "{question}"),
    ]
)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@ALL
def test_langchain_memory(conversation, monitor, results, session):
    shelf, model = langchain_parts(conversation)
    chain = (
        RunnablePassthrough.assign(
            context=(lambda given: given["question"])
            | shelf
            | (lambda docs: "\n\n".join(doc.page_content for doc in docs))
        )
        | PROMPT
        | model
    )
    memory = InMemoryChatMessageHistory()
    chat = RunnableWithMessageHistory(
        chain, lambda _: memory, input_messages_key="question", history_messages_key="history"
    )
    config = {
        "callbacks": [RagaliqCallbackHandler(monitor)],
        "configurable": {"session_id": session},
    }
    for exchange in conversation.exchanges:
        chat.invoke({"question": exchange.question}, config)
    assert last_sources(monitor, results) == conversation.expected
    assert {each.run.session_id for each in results} == {session}


@ALL
def test_langgraph_checkpoints(conversation, monitor, results, session):
    shelf, model = langchain_parts(conversation)

    class State(MessagesState):
        docs: list[Document]

    def retrieve(state):
        return {"docs": shelf.invoke(state["messages"][-1].content)}

    def generate(state):
        shown = "\n\n".join(doc.page_content for doc in state["docs"])
        return {"messages": model.invoke([("system", shown), *state["messages"]])}

    graph = StateGraph(State)
    graph.add_node(retrieve)
    graph.add_node(generate)
    for start, end in itertools.pairwise([START, "retrieve", "generate", END]):
        graph.add_edge(start, end)
    app = graph.compile(checkpointer=InMemorySaver())
    config = {
        "callbacks": [RagaliqCallbackHandler(monitor)],
        "configurable": {"thread_id": session},
    }
    for exchange in conversation.exchanges:
        app.invoke({"messages": [("user", exchange.question)]}, config)
    assert last_sources(monitor, results) == conversation.expected
    assert {each.run.session_id for each in results} == {session}


class Parrot(CustomLLM):
    """Says what the exchange says whose question the prompt ends with."""

    replies: dict[str, str]

    @property
    def metadata(self):
        return LLMMetadata(is_chat_model=True)

    def complete(self, prompt, formatted=False, **kwargs):
        return CompletionResponse(text=max(self.replies, key=prompt.rfind))  # a rewritten question

    def chat(self, messages, **kwargs):
        reply = self.replies[messages[-1].content]
        return ChatResponse(message=ChatMessage(reply, role="assistant"))

    def stream_complete(self, prompt, formatted=False, **kwargs):
        raise NotImplementedError


class Nodes(LlamaIndexRetriever):
    def __init__(self, conversation):
        super().__init__()
        self.chunks = {each.question: each.chunks for each in conversation.exchanges}

    def _retrieve(self, query_bundle):
        found = self.chunks[query_bundle.query_str]
        return [NodeWithScore(node=TextNode(text=text), score=0.9) for text in found]


# LlamaIndex asks for a loop of the thread it is called in; newer Pythons warn of that.
@pytest.mark.filterwarnings("ignore:There is no current event loop:DeprecationWarning")
# Where nothing was retrieved, LlamaIndex's engines say "Empty Response" and ask no model.
@pytest.mark.parametrize("engine", [ContextChatEngine, CondensePlusContextChatEngine])
@pytest.mark.parametrize(
    "conversation",
    [each for each in CONVERSATIONS if each.exchanges[-1].chunks],
    ids=lambda each: each.name,
)
def test_llama_index_chat_engines(conversation, engine, monitor, results):
    llm = Parrot(replies={each.question: each.answer for each in conversation.exchanges})
    memory = ChatMemoryBuffer.from_defaults(token_limit=10_000)
    chat = engine.from_defaults(Nodes(conversation), llm=llm, memory=memory)
    attach(monitor)
    try:
        for exchange in conversation.exchanges:
            chat.chat(exchange.question)
    finally:
        detach()
    assert last_sources(monitor, results) == conversation.expected


def write_spans(tracer, conversation, attribute, session):
    """A trace for each exchange, by OpenTelemetry's conventions."""

    def parts(role, text):
        return {"role": role, "parts": [{"type": "text", "content": text}]}

    before = []
    for exchange in conversation.exchanges:
        asked = parts("user", exchange.question)
        prompt = [parts("system", "\n\n".join(("Answer.", *exchange.chunks))), *before, asked]
        answered = parts("assistant", exchange.answer)
        run = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.input.messages": json.dumps([asked]),
            attribute: session,
        }
        documents = [{"id": str(i), "content": c} for i, c in enumerate(exchange.chunks)]
        retrieval = {
            "gen_ai.operation.name": "retrieval",
            "gen_ai.retrieval.query.text": exchange.question,
            "gen_ai.retrieval.documents": json.dumps(documents),
        }
        call = {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": json.dumps(prompt),
            "gen_ai.output.messages": json.dumps([answered]),
        }
        with tracer.start_as_current_span("invoke_agent support", attributes=run) as root:
            for name, attributes in (("retrieval shelf", retrieval), ("chat parrot", call)):
                tracer.start_span(name, attributes=attributes).end()
            root.set_attribute("gen_ai.output.messages", json.dumps([answered]))
        before += [asked, answered]


@pytest.mark.parametrize("attribute", ["gen_ai.conversation.id", "session.id"])
@ALL
def test_spans(conversation, attribute, monitor, results, session):
    provider = TracerProvider()
    processor = RagaliqSpanProcessor(monitor)
    provider.add_span_processor(processor)
    write_spans(provider.get_tracer("shop"), conversation, attribute, session)
    assert processor.force_flush()
    assert last_sources(monitor, results) == conversation.expected
    provider.shutdown()
