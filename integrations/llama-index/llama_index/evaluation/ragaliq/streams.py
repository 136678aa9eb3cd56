"""Following a streamed answer as the application reads it.

LlamaIndex ends the root span before the first token and keeps the text to itself, so the stream is
replaced by one that passes everything on and knows how it ended. A stream that nobody starts to
read runs none of this; its run expires.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable
from typing import Protocol, TypeVar

__all__ = ["StreamListener", "afollow", "failure_reason", "follow", "is_failure"]

T = TypeVar("T")


class StreamListener(Protocol):
    """Told once how a stream ended; must not raise."""

    def complete(self, answer: str) -> None:
        """The stream was read to its end."""

    def broken(self, reason: str) -> None:
        """The stream ended early."""


def is_failure(error: BaseException | None) -> bool:
    """Whether something failed, rather than being stopped or left waiting for a human."""
    is_waiting = type(error).__name__ == "WaitingForEvent"
    return error is not None and not is_waiting and failure_reason(error) == "errored"


def failure_reason(error: BaseException | None) -> str:
    """Why a run that ended with `error` is incomplete."""
    is_stopped = isinstance(error, asyncio.CancelledError | GeneratorExit | KeyboardInterrupt)
    return "cancelled" if is_stopped else "errored"


def follow(
    items: Iterable[T], listener: StreamListener, *, text: Callable[[T], str]
) -> Generator[T, None, None]:
    """The same items; reports to `listener`.

    Args:
        items: The stream.
        listener: Told how it ends.
        text: What an item adds to the answer.
    """
    read: list[str] = []
    try:
        for item in items:
            read.append(text(item))
            yield item
    except GeneratorExit:
        listener.broken("truncated")
        raise
    except BaseException as error:
        listener.broken(failure_reason(error))
        raise
    listener.complete("".join(read))


async def afollow(
    items: AsyncIterable[T], listener: StreamListener, *, text: Callable[[T], str]
) -> AsyncGenerator[T]:
    """`follow` for an asynchronous stream."""
    read: list[str] = []
    try:
        async for item in items:
            read.append(text(item))
            yield item
    except GeneratorExit:
        listener.broken("truncated")
        # Whoever closes the stream expects its source, a connection perhaps, to be closed with it.
        if isinstance(items, AsyncGenerator):
            await items.aclose()
        raise
    except BaseException as error:
        listener.broken(failure_reason(error))
        raise
    listener.complete("".join(read))
