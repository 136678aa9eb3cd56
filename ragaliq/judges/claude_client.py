"""Clients for the Claude API: one per event loop, closed with it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections.abc import AsyncGenerator, Callable
from typing import Any, NamedTuple

import anthropic

from ragaliq.errors import ConfigurationError

__all__ = ["LoopClients", "check_client", "client_factory"]

# Seconds before the clients of a judge that is gone are closed. A loop that ends sooner closes them
# itself; a task begun in its last moments would be cancelled half-way.
_LINGER = 0.5


class LoopClients:
    """Hands out one client per running event loop.

    A connection belongs to the loop it was opened on, while a judge may be used from several (the
    live worker's, the application's, one `asyncio.run` after the other). Each client is held by an
    asynchronous generator that was started on its loop: `asyncio.run` and every well-behaved
    runner close such generators before they close the loop, which closes the connections in time.

    Args:
        build: Makes a client; called once per loop.
        first: A client already made and not yet used, for the loop that asks first.
    """

    def __init__(
        self, build: Callable[[], anthropic.AsyncAnthropic], first: anthropic.AsyncAnthropic
    ) -> None:
        self._build = build
        self._spare: anthropic.AsyncAnthropic | None = first
        self._lock = threading.Lock()
        # Not a weak mapping: a started generator refers to its loop, so that the entry would keep
        # its own key alive. Entries are removed when the generator ends.
        self._open: dict[asyncio.AbstractEventLoop, _Held] = {}
        # Holds on to the open clients, so that they are never garbage before they are closed.
        weakref.finalize(self, _release, self._open).atexit = False

    async def get(self) -> anthropic.AsyncAnthropic:
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


class _Held(NamedTuple):
    client: anthropic.AsyncAnthropic
    keeper: AsyncGenerator[None]


async def _hold(
    loop: asyncio.AbstractEventLoop,
    client: anthropic.AsyncAnthropic,
    held: dict[asyncio.AbstractEventLoop, _Held],
) -> AsyncGenerator[None]:
    # Refers to the mapping and not to its owner, which must be able to go.
    try:
        yield
    finally:
        held.pop(loop, None)
        await client.close()


def _release(held: dict[asyncio.AbstractEventLoop, _Held]) -> None:
    """Close the clients of a judge that is gone, each on its loop."""
    for loop, (_, keeper) in list(held.items()):
        with contextlib.suppress(RuntimeError):  # the loop has been closed, the client with it
            loop.call_soon_threadsafe(loop.call_later, _LINGER, _close_on, loop, keeper)


def _close_on(loop: asyncio.AbstractEventLoop, keeper: AsyncGenerator[None]) -> None:
    loop.create_task(_close(keeper))


async def _close(keeper: AsyncGenerator[None]) -> None:
    await keeper.aclose()


def client_factory(
    *, api_key: str | None, base_url: str | None, timeout: float, max_retries: int | None
) -> Callable[[], anthropic.AsyncAnthropic]:
    """A function that makes a client with these settings; None leaves a setting to the SDK."""
    options: dict[str, Any] = {"api_key": api_key, "base_url": base_url, "timeout": timeout}
    if max_retries is not None:
        options["max_retries"] = max_retries

    def build() -> anthropic.AsyncAnthropic:
        try:
            return anthropic.AsyncAnthropic(**options)
        except (anthropic.AnthropicError, ValueError, TypeError) as error:
            raise ConfigurationError(
                f"cannot set up the Claude client: {error} "
                "(ANTHROPIC_API_KEY or api_key= is all that is needed)"
            ) from None

    return build


def check_client(client: anthropic.AsyncAnthropic) -> None:
    """Fail now, rather than on the first request, if the client cannot make any.

    Raises:
        ConfigurationError: The SDK found no key, token, profile or identity, the key cannot be
            sent, or the address is none.
    """
    if client.base_url.scheme not in {"http", "https"} or not client.base_url.host:
        raise ConfigurationError(
            "the address of the Claude API is no http(s) URL; check base_url= or ANTHROPIC_BASE_URL"
        )
    if type(client) is not anthropic.AsyncAnthropic:
        return  # clients for other platforms have credentials of their own
    for secret in (client.api_key, client.auth_token):
        if secret and not all("!" <= character <= "~" for character in secret):
            raise ConfigurationError(
                "the API key for Claude holds white space or characters outside ASCII; "
                "check ANTHROPIC_API_KEY or api_key="
            )
    own_header = (
        client.api_key is None
        and client.auth_token is None
        and not {"authorization", "x-api-key"}.isdisjoint(map(str.lower, client.default_headers))
    )
    if not (client.api_key or client.auth_token or client.credentials or own_header):
        raise ConfigurationError("no API key for Claude: set ANTHROPIC_API_KEY or pass api_key=")
