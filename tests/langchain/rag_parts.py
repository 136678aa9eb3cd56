"""Parts to build real chains from: documents, retrievers and models that need no network."""

import asyncio
import re
import time
from typing import Any

from langchain_classic.chains import create_history_aware_retriever, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.documents import Document
from langchain_core.language_models import LLM, BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolCall
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult, GenerationChunk
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough
from pydantic import Field

from ragaliq.testing import ScriptedJudge

QUESTION = "How long do refunds take?"
ANSWER = "Refunds take five days."
WRONG = "Refunds take nine days."  # what no document says
FALLBACK = "I do not know."  # what guards say instead
REFUNDS = ["Refunds take five days.", "Refunds are paid to the card."]
SHIPPING = ["Parcels leave on Monday.", "Shipping is free."]

HISTORY = [HumanMessage("Hello"), AIMessage("Hi, how can I help?")]

PROMPT = ChatPromptTemplate.from_messages(
    [("system", "Use this: {context}"), ("human", "{question}")]
)


def documents(texts=REFUNDS, *, prefix=None):
    """Documents with these texts, with ids `<prefix>0`, ... if a prefix is given."""
    return [
        Document(page_content=text, id=f"{prefix}{i}" if prefix else None)
        for i, text in enumerate(texts)
    ]


def joined(docs):
    return "\n\n".join(doc.page_content for doc in docs)


class FixedRetriever(BaseRetriever):
    """Finds the same documents for every query, after a while if told so."""

    texts: list[str] = REFUNDS
    prefix: str | None = None
    delay: float = 0.0

    def _get_relevant_documents(self, query, *, run_manager):
        time.sleep(self.delay)
        return documents(self.texts, prefix=self.prefix)

    async def _aget_relevant_documents(self, query, *, run_manager):
        await asyncio.sleep(self.delay)
        return documents(self.texts, prefix=self.prefix)


class TopicRetriever(BaseRetriever):
    """Finds one document per query, about that query."""

    def _get_relevant_documents(self, query, *, run_manager):
        return documents([f"About {query}", "Common to all."])


class BrokenRetriever(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        raise ConnectionError("the store is down")


class ScriptedChatModel(BaseChatModel):
    """Replies with the given texts or messages in turn, or with what a function makes of a prompt.

    An exception among the replies is raised. Replies are streamed word by word.
    """

    replies: list[Any] = Field(default_factory=list)
    delay: float = 0.0
    calls: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools, **kwargs):
        return self

    def _reply(self, messages: list[BaseMessage]) -> AIMessage:
        reply = self.replies[self.calls % len(self.replies)]
        self.calls += 1
        if callable(reply) and not isinstance(reply, BaseMessage):
            reply = reply(messages)
        if isinstance(reply, BaseException):
            raise reply
        return AIMessage(reply) if isinstance(reply, str) else reply

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        time.sleep(self.delay)
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages))])

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        await asyncio.sleep(self.delay)
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages))])

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        yield from _pieces(self._reply(messages))

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        for piece in _pieces(self._reply(messages)):
            await asyncio.sleep(self.delay)
            yield piece


class Completing(LLM):
    """A model of completions, not of chats."""

    @property
    def _llm_type(self):
        return "completing"

    def _call(self, prompt, stop=None, run_manager=None, **kwargs):
        return ANSWER

    def _stream(self, prompt, stop=None, run_manager=None, **kwargs):
        for word in ANSWER.split(" "):
            yield GenerationChunk(text=f"{word} ")


class NeedsTheLoop(ScriptedJudge):
    """Answers only while the event loop that made it is free."""

    def __init__(self):
        super().__init__()
        self._loop = asyncio.get_running_loop()

    async def extract_statements(self, query, response):
        there = asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self._loop)
        await asyncio.wait_for(asyncio.wrap_future(there), 30)
        return await super().extract_statements(query, response)


class NeverAnswering(ScriptedChatModel):
    """Says when it was called, then never answers."""

    called: asyncio.Event

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        self.called.set()
        await asyncio.Event().wait()


class NeverFinding(FixedRetriever):
    """Says when it was asked, then never finds anything."""

    called: asyncio.Event

    async def _aget_relevant_documents(self, query, *, run_manager):
        self.called.set()
        await asyncio.Event().wait()


def _pieces(message):
    if not isinstance(message.content, str) or message.tool_calls:
        yield ChatGenerationChunk(message=AIMessageChunk(**message.model_dump(exclude={"type"})))
        return
    for word in re.findall(r"\S+\s*", message.content):
        yield ChatGenerationChunk(message=AIMessageChunk(content=word, id=message.id))


def model(*replies, **options):
    """A chat model with these replies; `ANSWER` if none are given."""
    return ScriptedChatModel(replies=list(replies) or [ANSWER], **options)


def calling(name, **arguments):
    """The message of a model that calls a tool."""
    return AIMessage("", tool_calls=[ToolCall(name=name, args=arguments, id=f"call-{name}")])


def rag_chain(retriever=None, llm=None, *, parser=None) -> Runnable:
    """The chain everybody writes: retriever, prompt, model, parser."""
    sources = {
        "context": (retriever or FixedRetriever()) | joined,
        "question": RunnablePassthrough(),
    }
    return sources | PROMPT | (llm or model()) | (parser or StrOutputParser())


def retrieval_chain(retriever=None):
    """LangChain's own: `{input}` in, `{input, context, answer}` out."""
    prompt = ChatPromptTemplate.from_messages([("system", "{context}"), ("human", "{input}")])
    answering = create_stuff_documents_chain(model(), prompt)
    return create_retrieval_chain(retriever or FixedRetriever(), answering)


def history_aware_retriever():
    """Has a model rewrite the question first."""
    prompt = ChatPromptTemplate.from_messages(
        [MessagesPlaceholder("chat_history"), ("human", "{input}"), ("human", "Rewrite it.")]
    )
    return create_history_aware_retriever(model("refund duration"), FixedRetriever(), prompt)
