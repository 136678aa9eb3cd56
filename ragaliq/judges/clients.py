"""Clients of judges behind an API: one for each event loop, and errors in our own words.

Errors never quote the server: an error body may repeat the request. For the same reason no SDK
error is ever chained to ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit

from ragaliq.core.proxies import proxy_errors, untrusted_certificate
from ragaliq.core.results import JudgeUsage
from ragaliq.errors import (
    ConfigurationError,
    JudgeAPIError,
    JudgeBillingError,
    JudgeError,
    JudgeRefusalError,
    JudgeResponseError,
    JudgeTimeoutError,
)
from ragaliq.judges.vendors import ServerError, error_in, name_errors, stop_of

# --- One client per event loop, closed with it ------------------------------------------------

# Seconds before the clients of a garbage-collected judge are closed. A loop that ends sooner closes
# them itself; a task begun in its last moments would be cancelled half-way.
_LINGER = 0.5


class _Closable(Protocol):
    async def close(self) -> None: ...


C = TypeVar("C", bound=_Closable)


class LoopClients(Generic[C]):
    """One client for each event loop.

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
    """Close the clients of a garbage-collected judge, each on its loop."""
    for loop, (_, keeper) in list(held.items()):
        with contextlib.suppress(RuntimeError):  # the loop has been closed, the client with it
            loop.call_soon_threadsafe(loop.call_later, _LINGER, _close, keeper)


def _close(keeper: AsyncGenerator[None]) -> None:
    asyncio.ensure_future(keeper.aclose())  # noqa: RUF006 - the loop holds it


def http_client(sdk: Any, timeout: float) -> Any:
    """An SDK's HTTP client, for one of its clients.

    It follows no redirect: the SDK would send question, answer and context to another host.

    Raises:
        ConfigurationError: The environment names a proxy that cannot be used.
    """
    with proxy_errors():
        return sdk.DefaultAsyncHttpxClient(
            follow_redirects=False, timeout=timeout, event_hooks={"response": [name_errors]}
        )


# --- Requests stay out of logs ---------------------------------------------------------------

_asking = ContextVar("ragaliq_asks_a_judge", default=False)


def _keeps_texts_out(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG or not _asking.get()


@contextlib.contextmanager
def unlogged() -> Iterator[None]:
    """Keep the SDKs from logging requests: at DEBUG they would log their texts."""
    for name in ("anthropic._base_client", "openai._base_client"):
        logging.getLogger(name).addFilter(_keeps_texts_out)  # added once, however often it is
    token = _asking.set(True)
    try:
        yield
    finally:
        _asking.reset(token)


# --- Failures ---------------------------------------------------------------------------------

# Client errors that are temporary: time-out, conflict, too early, and no capacity (Groq).
_PASSING = (408, 409, 425, 498)
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
    """Error for a request without a reply, after the SDK's own retries.

    `sdk` is the module `anthropic` or `openai`, which name their errors alike; `advice` says what
    to do, by HTTP status; `timeout` is in seconds, where it is a number.
    """
    if isinstance(error, sdk.APITimeoutError):
        limit = f" within {timeout:g} s" if isinstance(timeout, (int, float)) else ""
        return JudgeTimeoutError(
            f"{model} did not reply{limit}; raise timeout= or send less at a time"
        )
    if isinstance(error, sdk.APIStatusError):
        said = error_in(error.body, error.status_code) or ServerError(error.status_code)
        request_id = error.request_id or ""
        return refused_request(
            said, service=service, model=model, request_id=request_id, advice=advice
        )
    if isinstance(error, sdk.APIConnectionError):
        if reason := untrusted_certificate(error):
            return JudgeAPIError(f"{service} {reason}")
        return JudgeAPIError(
            f"the connection to {service} failed or was cut off; check the network and base_url="
        )
    return JudgeAPIError(f"the request to {service} failed ({type(error).__name__})")


def refused_request(
    said: ServerError,
    *,
    service: str,
    model: str,
    request_id: str = "",
    advice: Mapping[int, str] = MappingProxyType({}),
) -> JudgeError:
    """Error for a request that a server refused; quotes nothing of the server's."""
    status = said.status
    named = f" (request {request_id})" if _REQUEST_ID.fullmatch(request_id) else ""
    answered = f"{service} answered {status} for {model}{named}"
    if said.lacks_credit:
        return JudgeBillingError(
            f"{answered}: the account has no credit left; add credit or raise its spending limit"
        )
    if said.is_filtered:
        return JudgeRefusalError(f"{answered}: a content filter refused the request")
    todo = advice.get(status) or "check the request's settings"
    if status < 400:
        todo = "redirects are not followed; set base_url= to the address it points to"
    elif said.is_too_long:
        todo = "the request is longer than the model's window; use fewer or shorter chunks"
        if "context_window=" in advice.get(400, ""):
            todo += ", or set context_window= to what the server is started with"
    elif (status >= 500 or status in _PASSING) and status not in advice:
        todo = "the API failed; try again later"
    return JudgeAPIError(f"{answered}: {todo}")


def check_end(reply: object, *, model: str, usage: JudgeUsage, cut_off: str) -> None:
    """Refuse a reply that the model did not finish.

    Args:
        reply: The reply, or where it says why the model stopped, in the words of any vendor.
        model: The model's name.
        usage: What the request cost.
        cut_off: Where a reply ends that is too long, and what to do.

    Raises:
        JudgeRefusalError: The model declined, or a content filter withheld its reply.
        JudgeResponseError: The reply is cut off.
        JudgeAPIError: The server broke it off.
    """
    match stop_of(reply):
        case "refused":
            raise JudgeRefusalError(f"{model} declined to answer", usage=usage)
        case "filtered":
            problem = f"a content filter withheld the reply of {model}"
            raise JudgeRefusalError(problem, usage=usage)
        case "cut_off":
            raise JudgeResponseError(f"the reply of {model} was cut off{cut_off}", usage=usage)
        case "failed":
            problem = f"the server broke off the reply of {model}; try again later"
            raise JudgeAPIError(problem, usage=usage)


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


_KEY = re.compile(r"sk[-_]|pk-|gsk_|hf_|xai-|AIza|[A-Za-z0-9_-]{41,}\Z")


def looks_like_key(text: str) -> bool:
    """Tell whether a text in the place of a name may be a key, so that it is not repeated."""
    return bool(_KEY.match(text))


def check_model(model: str, max_tokens: int | None, *, whose: str) -> None:
    """Refuse a model without a name, or with a key for one, and replies without tokens."""
    if not model or not isinstance(model, str):
        raise ConfigurationError(f"{whose}: model must name a model")
    if looks_like_key(model):  # not repeated: errors and telemetry name the model
        raise ConfigurationError(f"{whose}: model must name a model; this looks like an API key")
    if max_tokens is not None and max_tokens < 1:
        raise ConfigurationError(f"{whose}: max_tokens must be positive, got {max_tokens}")
