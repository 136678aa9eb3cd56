"""Reading LlamaIndex's response objects, streams included, for an evaluation."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.async_utils import asyncio_run
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    StreamingResponse,
)

from llama_index.evaluation.ragaliq.extract import answer_of, passages_of, sources_of
from ragaliq import ContextChunk, context_chunks

__all__ = ["aread_answer", "read_answer", "read_context"]


def read_answer(response: Any) -> str:
    """The whole answer; a stream is read to its end and keeps its text."""
    if isinstance(response, AsyncStreamingResponse):
        return answer_of(asyncio_run(response.get_response()))
    if isinstance(response, StreamingResponse):
        return answer_of(response.get_response())
    return _plain(response)


async def aread_answer(response: Any) -> str:
    """`read_answer` for asynchronous code: a synchronous stream does not block the loop."""
    if isinstance(response, AsyncStreamingResponse):
        return answer_of(await response.get_response())
    if isinstance(response, StreamingResponse):
        return answer_of(await asyncio.to_thread(response.get_response))
    return _plain(response)


def read_context(response: Any) -> list[str | ContextChunk]:
    """The source nodes as the model saw them: with the metadata that goes to the model."""
    return context_chunks(
        passages_of(sources_of(response) or getattr(response, "source_nodes", None) or ())
    )


def _plain(response: Any) -> str:
    known = answer_of(response)
    # Whatever else looks like a response: `evaluate_response` promises no more than that.
    if known or isinstance(response, PydanticResponse):
        return known
    text = getattr(response, "response", None)
    return text if isinstance(text, str) else ""
