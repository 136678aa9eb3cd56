"""A LlamaIndex query engine with ragaliq attached.

    python examples/demo/llama_index_demo.py

The engine is a real one: vector index, retriever, response synthesizer, LLM. Only the LLM plays
back prerecorded answers, so that the demo needs no key. The judge is Claude where
ANTHROPIC_API_KEY is set, else the embedded one. With OTEL_EXPORTER_OTLP_ENDPOINT set the
telemetry goes there, else it is kept in memory and shown.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

try:
    from llama_index.core import VectorStoreIndex
    from llama_index.core.base.base_query_engine import BaseQueryEngine
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.base.llms.types import (
        CompletionResponse,
        CompletionResponseGen,
        LLMMetadata,
    )
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.llms.callbacks import llm_completion_callback
    from llama_index.core.llms.custom import CustomLLM
    from llama_index.core.schema import TextNode

    from handbook.corpus import Chunk
    from handbook.embedding import HashedWords
    from handbook.launch import launch
    from handbook.playback import Playback
    from handbook.session import Ask, Handbook, run_session
    from llama_index.evaluation.ragaliq import attach, detach
    from ragaliq import Monitor
except ImportError as error:
    sys.exit(
        f"demo: {error}. `make demo-llama-index` installs what is needed, then runs this file."
    )


class HashedWordsEmbedding(BaseEmbedding):
    """The demo's embedding as LlamaIndex calls it."""

    _words: HashedWords = PrivateAttr()

    def __init__(self, words: HashedWords) -> None:
        super().__init__(model_name="hashed-words")
        self._words = words

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._words.embed(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._words.embed(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._words.embed(query)


class PlaybackLLM(CustomLLM):
    """An LLM that answers with what was recorded for the question."""

    _playback: Playback = PrivateAttr()

    def __init__(self, playback: Playback) -> None:
        super().__init__()
        self._playback = playback

    @property
    def metadata(self) -> LLMMetadata:
        """What the synthesizer must know to fill the prompt."""
        return LLMMetadata(context_window=8192, num_output=256, model_name="handbook-playback")

    @llm_completion_callback()
    def complete(
        self,
        prompt: str,
        formatted: bool = False,  # noqa: ARG002, FBT001, FBT002 - LlamaIndex's signature
        **kwargs: Any,  # noqa: ARG002 - as above
    ) -> CompletionResponse:
        """The recorded answer."""
        return CompletionResponse(text=self._playback.answer(prompt))

    @llm_completion_callback()
    def stream_complete(
        self,
        prompt: str,
        formatted: bool = False,  # noqa: ARG002, FBT001, FBT002 - LlamaIndex's signature
        **kwargs: Any,  # noqa: ARG002 - as above
    ) -> CompletionResponseGen:
        """The recorded answer in one piece."""
        answer = self._playback.answer(prompt)
        yield CompletionResponse(text=answer, delta=answer)


def build_engine(handbook: Handbook) -> BaseQueryEngine:
    """Index, retriever, synthesizer and LLM, as in any LlamaIndex application."""
    index = VectorStoreIndex(
        nodes=[_node(chunk) for chunk in handbook.chunks],
        embed_model=HashedWordsEmbedding(handbook.words),
    )
    return index.as_query_engine(
        llm=PlaybackLLM(handbook.playback), similarity_top_k=handbook.top_k
    )


@contextmanager
def application(handbook: Handbook, monitor: Monitor) -> Iterator[Ask]:
    """The engine with ragaliq attached: two lines are all an application adds."""
    engine = build_engine(handbook)
    attach(monitor, pipeline="handbook")
    try:
        yield lambda question: str(engine.query(question))
    finally:
        detach()


def _node(chunk: Chunk) -> TextNode:
    return TextNode(id_=chunk.id, text=chunk.text)


if __name__ == "__main__":
    sys.exit(launch(lambda: run_session("LlamaIndex", application), about=__doc__))
