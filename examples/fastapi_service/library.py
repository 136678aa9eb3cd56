"""What the service answers with: a retriever over a library's notes, a prompt and a chat model.

The chain is an ordinary LangChain one. Only the model is a stand-in: it plays recorded answers
back, word by word, so that the example needs no key.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough

__all__ = ["NOTES", "NoteRetriever", "PlaybackModel", "build_chain"]

NOTES: list[dict[str, str]] = json.loads(Path(__file__).with_name("notes.json").read_text())
PROMPT = ChatPromptTemplate.from_messages(
    [("system", "Answer from these notes only:\n\n{context}"), ("human", "{question}")]
)
UNKNOWN = "The notes of the library do not say."


class NoteRetriever(BaseRetriever):
    """The notes that share most words with the question; a real one would search an index."""

    k: int = 2

    def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
        asked = _words(query)
        ranked = sorted(NOTES, key=lambda note: len(asked & _words(note["text"])), reverse=True)
        return [Document(id=note["id"], page_content=note["text"]) for note in ranked[: self.k]]

    async def _aget_relevant_documents(self, query: str, **_: Any) -> list[Document]:
        return self._get_relevant_documents(query)


class PlaybackModel(BaseChatModel):
    """A chat model that streams the answer recorded for a question, one word at a time."""

    seconds_per_word: float = 0.03

    @property
    def _llm_type(self) -> str:
        return "library-playback"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        message = AIMessage(content=_recorded(messages))
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self, messages: list[BaseMessage], *_: Any, **__: Any
    ) -> Iterator[ChatGenerationChunk]:
        for word in _pieces(messages):
            time.sleep(self.seconds_per_word)
            yield word

    async def _astream(
        self, messages: list[BaseMessage], *_: Any, **__: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for word in _pieces(messages):
            await asyncio.sleep(self.seconds_per_word)
            yield word


def build_chain(seconds_per_word: float) -> Runnable[str, str]:
    """Retriever, prompt, model and parser, as in any LangChain application."""
    model = PlaybackModel(seconds_per_word=seconds_per_word)
    inputs = {"context": NoteRetriever() | _joined, "question": RunnablePassthrough()}
    return inputs | PROMPT | model | StrOutputParser()


def _recorded(messages: list[BaseMessage]) -> str:
    asked = str(messages[-1].content)
    return next((note["answer"] for note in NOTES if note["question"] in asked), UNKNOWN)


def _pieces(messages: list[BaseMessage]) -> Iterator[ChatGenerationChunk]:
    for word in re.findall(r"\S+\s*", _recorded(messages)):
        yield ChatGenerationChunk(message=AIMessageChunk(content=word))


def _joined(documents: list[Document]) -> str:
    return "\n\n".join(document.page_content for document in documents)


def _words(text: str) -> set[str]:
    # By their first letters, so that "books" and "book" are the same.
    return set(re.findall(r"\b[a-z]{4}", text.lower()))
