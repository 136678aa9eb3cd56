"""What judges behind an API share: one client for each event loop, and failures in words of ours.

Nothing a server wrote is repeated: an error body may quote the request. For the same reason no SDK
error is ever chained to ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

from ragaliq.errors import ConfigurationError, JudgeAPIError, JudgeTimeoutError

__all__ = ["LoopClients", "check_key", "connection_failed", "status_failed", "timed_out"]


# --- One client per event loop, closed with it ------------------------------------------------

# Seconds before the clients of a judge that is gone are closed. A loop that ends sooner closes them
# itself; a task begun in its last moments would be cancelled half-way.
_LINGER = 0.5


class _Closable(Protocol):
    async def close(self) -> None: ...


C = TypeVar("C", bound=_Closable)


class LoopClients(Generic[C]):
    """Hands out one client per running event loop.

    A connection belongs to the loop it was opened on, while a judge may be used from several (the
    live worker's, the application's, one `asyncio.run` after the other). Each client is held by an
    asynchronous generator that was started on its loop: `asyncio.run` and every well-behaved
    runner close such generators before they close the loop, which closes the connections in time.

    Args:
        build: Makes a client; called once per loop.
        first: A client already made and not yet used, for the loop that asks first.
    """

    def __init__(self, build: Callable[[], C], first: C) -> None:
        self._build = build
        self._spare: C | None = first
        self._lock = threading.Lock()
        # Not a weak mapping: a started generator refers to its loop, so that the entry would keep
        # its own key alive. Entries are removed when the generator ends.
        self._open: dict[asyncio.AbstractEventLoop, _Held[C]] = {}
        # Holds on to the open clients, so that they are never garbage before they are closed.
        weakref.finalize(self, _release, self._open).atexit = False

    async def get(self) -> C:
        """The running loop's client."""
        loop = asyncio.get_running_loop()
        with self._lock:
            held = self._open.get(loop)
            if held is not None:
                return held.client
            for closed in [other for other in self._open if other.is_closed()]:
                del self._open[closed]
            client, self._spare = self._spare or self._build(), None
            held = self._open[loop] = _Held(client, _hold(loop, client, self._open))
        await anext(held.keeper)
        return client

    async def aclose(self) -> None:
        """Close the running loop's client; the next call opens a new one."""
        held = self._open.get(asyncio.get_running_loop())
        if held is not None:
            await held.keeper.aclose()


class _Held(NamedTuple, Generic[C]):
    client: C
    keeper: AsyncGenerator[None]


async def _hold(
    loop: asyncio.AbstractEventLoop,
    client: C,
    held: dict[asyncio.AbstractEventLoop, _Held[C]],
) -> AsyncGenerator[None]:
    # Refers to the mapping and not to its owner, which must be able to go.
    try:
        yield
    finally:
        held.pop(loop, None)
        await client.close()


def _release(held: dict[asyncio.AbstractEventLoop, _Held[C]]) -> None:
    """Close the clients of a judge that is gone, each on its loop."""
    for loop, (_, keeper) in list(held.items()):
        with contextlib.suppress(RuntimeError):  # the loop has been closed, the client with it
            loop.call_soon_threadsafe(loop.call_later, _LINGER, _close_on, loop, keeper)


def _close_on(loop: asyncio.AbstractEventLoop, keeper: AsyncGenerator[None]) -> None:
    loop.create_task(_close(keeper))


async def _close(keeper: AsyncGenerator[None]) -> None:
    await keeper.aclose()


# --- Failures ---------------------------------------------------------------------------------

_REQUEST_ID = re.compile(r"[\w-]{1,64}", re.ASCII)


def timed_out(model: str, timeout: object) -> JudgeTimeoutError:
    """The error for a request without a reply; `timeout` in seconds, where it is a number."""
    limit = f" within {timeout:g} s" if isinstance(timeout, (int, float)) else ""
    return JudgeTimeoutError(f"{model} did not reply{limit}; raise timeout= or send less at a time")


def connection_failed(service: str) -> JudgeAPIError:
    """The error for a connection that could not be made or broke."""
    return JudgeAPIError(
        f"the connection to {service} failed or was cut off; check the network and base_url="
    )


def status_failed(
    service: str, model: str, *, status: int, request_id: str | None, advice: Mapping[int, str]
) -> JudgeAPIError:
    """The error for an answer with an error status.

    Args:
        service: What was asked, such as `the Claude API`.
        model: The model's name.
        status: HTTP status.
        request_id: What the service calls the request, if it says so.
        advice: What to do, by status.
    """
    todo = advice.get(status) or (
        "the API failed; try again later" if status >= 500 else "check the request's settings"
    )
    named = f" (request {request_id})" if _REQUEST_ID.fullmatch(request_id or "") else ""
    return JudgeAPIError(f"{service} answered {status} for {model}{named}: {todo}")


def check_key(key: str, *, whose: str, where: str) -> None:
    """Fail now if a key cannot be sent in a header.

    Raises:
        ConfigurationError: It has white space in it or characters outside ASCII.
    """
    if not all("!" <= character <= "~" for character in key):
        raise ConfigurationError(
            f"the API key for {whose} holds white space or characters outside ASCII; check {where}"
        )
