"""Models, retrievers and stores without a network, for the applications in `langchain_apps/`."""

import hashlib
import itertools
import re
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import LLM, BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult, GenerationChunk
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import Field, PrivateAttr

_CALLS = itertools.count(1)


class Scripted(BaseChatModel):
    """A chat model that gives its replies in turn, the last one for ever.

    A reply is a text, a message, or a function of the prompt's messages that returns one of them.
    Texts are streamed word by word.
    """

    replies: list[Any] = Field(default_factory=list)
    model_name: str = "scripted-1"
    _count: Any = PrivateAttr(default_factory=itertools.count)

    @property
    def _llm_type(self):
        return "scripted"

    def bind_tools(self, tools, **kwargs):
        return self

    def get_token_ids(self, text):
        return list(range(len(text.split())))

    def _reply(self, messages):
        reply = self.replies[min(next(self._count), len(self.replies) - 1)]
        if callable(reply) and not isinstance(reply, BaseMessage):
            reply = reply(messages)
        return AIMessage(reply) if isinstance(reply, str | list) else reply

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages))])

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        message = self._reply(messages)
        if not isinstance(message.content, str) or message.tool_calls:
            whole = AIMessageChunk(**message.model_dump(exclude={"type"}))
            yield ChatGenerationChunk(message=whole)
            return
        for word in re.findall(r"\S+\s*", message.content):
            piece = ChatGenerationChunk(message=AIMessageChunk(word, id=message.id))
            if run_manager:
                run_manager.on_llm_new_token(word, chunk=piece)
            yield piece


class Completing(LLM):
    """A completion model that gives its replies in turn, the last one for ever."""

    replies: list[str]
    _count: Any = PrivateAttr(default_factory=itertools.count)

    @property
    def _llm_type(self):
        return "completing"

    def get_token_ids(self, text):
        return list(range(len(text.split())))

    def _call(self, prompt, stop=None, run_manager=None, **kwargs):
        return self.replies[min(next(self._count), len(self.replies) - 1)]

    def _stream(self, prompt, stop=None, run_manager=None, **kwargs):
        for word in re.findall(r"\S+\s*", self._call(prompt)):
            yield GenerationChunk(text=word)


class Hashed(Embeddings):
    """Embeddings by the words of a text: texts that share words are near each other."""

    def embed_query(self, text):
        vector = [0.01] * 64
        for word in re.findall(r"\w+", text.casefold()):
            vector[hashlib.md5(word.encode()).digest()[0] % 64] += 1.0
        return vector

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]


class Found(BaseRetriever):
    """Finds the same documents for every query."""

    documents: list[Document]

    def _get_relevant_documents(self, query, *, run_manager):
        return [each.model_copy(deep=True) for each in self.documents]


def chat(*replies):
    return Scripted(replies=list(replies))


def calling(name, /, *, said="", **arguments):
    """The message of a model that calls a tool."""
    call = ToolCall(name=name, args=arguments, id=f"call_{next(_CALLS)}")
    return AIMessage(said, tool_calls=[call])


def calling_all(*calls):
    """The message of a model that calls several tools at once, each a name with its arguments."""
    made = [
        ToolCall(name=name, args=arguments, id=f"call_{next(_CALLS)}") for name, arguments in calls
    ]
    return AIMessage("", tool_calls=made)


def documents(*texts, **metadata):
    """Documents with ids; `metadata` is the same for all of them."""
    return [Document(text, id=f"doc-{n}", metadata=dict(metadata)) for n, text in enumerate(texts)]


def finding(*texts):
    """A retriever that finds documents with these texts."""
    return Found(documents=documents(*texts))


def store(*texts):
    """A vector store of these texts."""
    return InMemoryVectorStore.from_texts(list(texts), Hashed())


def joined(docs):
    return "\n\n".join(doc.page_content for doc in docs)
