"""Capture of a streamed answer while the application reads it.

LlamaIndex ends the root span before the first token and does not expose the text, so the stream is
replaced by one that passes everything on and knows how it ended. A stream that is never read runs
none of this; its run expires.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable
from contextvars import ContextVar
from typing import Any, TypeVar

from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.chat_engine.types import StreamingAgentChatResponse

from llama_index.evaluation.ragaliq._private import is_waiting

__all__ = ["READING", "afollow", "failure_reason", "follow", "follow_response", "is_failure"]

T = TypeVar("T")

READING: ContextVar[object | None] = ContextVar("ragaliq_reading", default=None)
"""Whose stream is being read: the model may be asked only then, in a span without a parent."""

Ended = Callable[[str, str], None]
"""Called once when a stream has ended, with its text, or with the reason why it ended early; must
not raise."""


def is_failure(error: BaseException | None) -> bool:
    """True if something failed, rather than being stopped or left waiting for a human."""
    return error is not None and not is_waiting(error) and failure_reason(error) == "errored"


def failure_reason(error: BaseException | None) -> str:
    """Reason why a run that ended with `error` is incomplete."""
    is_stopped = isinstance(error, (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt))
    return "cancelled" if is_stopped else "errored"


def follow_response(response: Any, run: object, ended: Ended) -> bool:
    """Capture the stream of a response object; False if it has no stream (any more).

    Args:
        response: What an engine returned.
        run: Whose answer it is.
        ended: See `Ended`.
    """
    if isinstance(response, StreamingResponse) and response.response_txt is None:
        response.response_gen = follow(response.response_gen, run, ended, text=str)
        return True
    if isinstance(response, AsyncStreamingResponse) and response.response_txt is None:
        response.response_gen = afollow(response.response_gen, run, ended, text=str)
        return True
    if not isinstance(response, StreamingAgentChatResponse):
        return False
    if response.chat_stream is not None:
        response.chat_stream = follow(response.chat_stream, run, ended, text=_delta)
    if response.achat_stream is not None:
        response.achat_stream = afollow(response.achat_stream, run, ended, text=_delta)
    return True


def _delta(response: Any) -> str:
    return response.delta or ""


def follow(
    items: Iterable[T], run: object, ended: Ended, *, text: Callable[[T], str]
) -> Generator[T, None, None]:
    """Pass items on and capture their text, by the function `text`."""
    read: list[str] = []
    iterator = iter(items)
    try:
        while True:
            token = READING.set(run)
            try:
                item = next(iterator)
            except StopIteration:
                break
            finally:
                READING.reset(token)
            read.append(text(item))
            yield item
    except GeneratorExit:
        ended("", "truncated")
        raise
    except BaseException as error:
        ended("", failure_reason(error))
        raise
    ended("".join(read), "")


async def afollow(
    items: AsyncIterable[T], run: object, ended: Ended, *, text: Callable[[T], str]
) -> AsyncGenerator[T]:
    """`follow` for an asynchronous stream."""
    read: list[str] = []
    iterator = aiter(items)
    try:
        while True:
            token = READING.set(run)
            try:
                item = await anext(iterator)
            except StopAsyncIteration:
                break
            finally:
                READING.reset(token)
            read.append(text(item))
            yield item
    except GeneratorExit:
        ended("", "truncated")
        # Closing the stream must close its source, a connection perhaps, with it.
        if isinstance(items, AsyncGenerator):
            await items.aclose()
        raise
    except BaseException as error:
        ended("", failure_reason(error))
        raise
    ended("".join(read), "")
