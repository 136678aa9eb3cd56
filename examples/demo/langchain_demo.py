"""A LangChain RAG application with ragaliq attached.

    python examples/demo/langchain_demo.py

The chain is a real one: vector store, retriever, prompt, chat model, parser. Only the chat model
plays back prerecorded answers, so that the demo needs no key. The judge is Claude where
ANTHROPIC_API_KEY is set, else the embedded one. With OTEL_EXPORTER_OTLP_ENDPOINT set the
telemetry goes there, else it is kept in memory and shown.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

try:
    from langchain_core.callbacks import CallbackManagerForLLMRun
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import Runnable, RunnablePassthrough
    from langchain_core.vectorstores import InMemoryVectorStore

    from handbook.corpus import Chunk
    from handbook.embedding import HashedWords
    from handbook.launch import launch
    from handbook.playback import Playback
    from handbook.session import Ask, Handbook, run_session
    from langchain_ragaliq import RagaliqCallbackHandler
    from ragaliq import Monitor
except ImportError as error:
    sys.exit(f"demo: {error}. `make demo` installs what is needed, then runs this file.")

PROMPT = ChatPromptTemplate.from_messages(
    [
        ("system", "Answer from these excerpts of the handbook only:\n\n{context}"),
        ("human", "{question}"),
    ]
)


class HashedWordsEmbeddings(Embeddings):
    """The demo's embedding as LangChain calls it."""

    def __init__(self, words: HashedWords) -> None:
        self._words = words

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector for each text."""
        return [self._words.embed(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        return self._words.embed(text)


class PlaybackChatModel(BaseChatModel):
    """A chat model that answers with what was recorded for the question."""

    playback: Playback

    @property
    def _llm_type(self) -> str:
        return "handbook-playback"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - LangChain's signature
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - as above
        **kwargs: Any,  # noqa: ARG002 - as above
    ) -> ChatResult:
        answer = self.playback.answer(str(messages[-1].content))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=answer))])


def build_chain(handbook: Handbook) -> Runnable[str, str]:
    """Retriever, prompt, model and parser, as in any LangChain application."""
    store = InMemoryVectorStore(HashedWordsEmbeddings(handbook.words))
    store.add_documents([_document(chunk) for chunk in handbook.chunks])
    retriever = store.as_retriever(search_kwargs={"k": handbook.top_k})
    inputs = {"context": retriever | _format, "question": RunnablePassthrough()}
    return inputs | PROMPT | PlaybackChatModel(playback=handbook.playback) | StrOutputParser()


@contextmanager
def application(handbook: Handbook, monitor: Monitor) -> Iterator[Ask]:
    """The chain with ragaliq's handler: these lines are all an application adds."""
    chain = build_chain(handbook)
    handler = RagaliqCallbackHandler(monitor)
    yield lambda question: chain.invoke(
        question, config={"callbacks": [handler], "run_name": "handbook"}
    )


def _document(chunk: Chunk) -> Document:
    return Document(id=chunk.id, page_content=chunk.text)


def _format(documents: Sequence[Document]) -> str:
    return "\n\n".join(document.page_content for document in documents)


if __name__ == "__main__":
    sys.exit(launch(lambda: run_session("LangChain", application), about=__doc__))
