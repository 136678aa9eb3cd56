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
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit

from ragaliq.errors import ConfigurationError, JudgeAPIError, JudgeError, JudgeTimeoutError

# --- One client per event loop, closed with it ------------------------------------------------

# Seconds before the clients of a judge that is gone are closed. A loop that ends sooner closes them
# itself; a task begun in its last moments would be cancelled half-way.
_LINGER = 0.5


class _Closable(Protocol):
    async def close(self) -> None: ...


C = TypeVar("C", bound=_Closable)


class LoopClients(Generic[C]):
    """One client for each event loop that asks.

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
            loop.call_soon_threadsafe(loop.call_later, _LINGER, _close, keeper)


def _close(keeper: AsyncGenerator[None]) -> None:
    asyncio.ensure_future(keeper.aclose())  # noqa: RUF006 - the loop holds it


# --- Failures ---------------------------------------------------------------------------------

_REQUEST_ID = re.compile(r"[\w-]{1,64}", re.ASCII)


def request_error(
    error: Exception,
    *,
    sdk: Any,
    service: str,
    model: str,
    timeout: object,
    advice: Mapping[int, str],
) -> JudgeError:
    """The error for a request that brought no reply, after the SDK's own retries.

    `sdk` is the module `anthropic` or `openai`, which name their errors alike; `advice` says what
    to do, by HTTP status; `timeout` is in seconds, where it is a number.
    """
    if isinstance(error, sdk.APITimeoutError):
        limit = f" within {timeout:g} s" if isinstance(timeout, (int, float)) else ""
        return JudgeTimeoutError(
            f"{model} did not reply{limit}; raise timeout= or send less at a time"
        )
    if isinstance(error, sdk.APIStatusError):
        status, request_id = error.status_code, error.request_id or ""
        named = f" (request {request_id})" if _REQUEST_ID.fullmatch(request_id) else ""
        todo = advice.get(status) or "check the request's settings"
        if status < 400:
            todo = "redirects are not followed; set base_url= to the address it points to"
        elif status >= 500 and status not in advice:
            todo = "the API failed; try again later"
        return JudgeAPIError(f"{service} answered {status} for {model}{named}: {todo}")
    if isinstance(error, sdk.APIConnectionError):
        return JudgeAPIError(
            f"the connection to {service} failed or was cut off; check the network and base_url="
        )
    return JudgeAPIError(f"the request to {service} failed ({type(error).__name__})")


def token_count(found: object) -> int:
    """A number of tokens, whatever a server sends in its place; 0 for none."""
    return found if isinstance(found, int) and found > 0 else 0


def check_address(url: object, *, where: str) -> None:
    """Refuse an address that is not an http(s) URL with a host, or holds credentials."""
    # Not repeated: it may hold a password.
    try:
        address = urlsplit(url) if isinstance(url, str) else urlsplit("")
        usable = address.scheme in {"http", "https"} and address.hostname
    except ValueError:
        usable = None
    if not usable:
        raise ConfigurationError(f"a judge's address must be an http(s) URL; check {where}")
    if "@" in address.netloc:
        # The SDKs would send them in the place of the key.
        raise ConfigurationError(
            f"a judge's address must not hold a user name or password; check {where}"
        )


def check_key(key: str, *, whose: str, where: str) -> None:
    """Refuse a key that cannot be sent in a header."""
    if not all("!" <= character <= "~" for character in key):
        raise ConfigurationError(
            f"the API key for {whose} holds white space or characters outside ASCII; check {where}"
        )


def check_model(model: str, max_tokens: int | None, *, whose: str) -> None:
    """Refuse a model without a name, or with a key for one, and replies without tokens."""
    if not model or not isinstance(model, str):
        raise ConfigurationError(f"{whose}: model must name a model")
    if model.startswith("sk-"):  # not repeated: errors and telemetry name the model
        raise ConfigurationError(f"{whose}: model must name a model; this looks like an API key")
    if max_tokens is not None and max_tokens < 1:
        raise ConfigurationError(f"{whose}: max_tokens must be positive, got {max_tokens}")
