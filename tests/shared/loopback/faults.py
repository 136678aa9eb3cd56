"""Ways in which a judge's API, or the way to it, fails: replies for the loopback servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from loopback.protocol import Reply

__all__ = [
    "ALL",
    "context_window_exceeded",
    "cut_off",
    "malformed_json",
    "not_json",
    "overloaded",
    "rate_limited",
    "refusal",
    "server_error",
    "slow",
    "truncated",
    "wrong_schema",
]

# Short, so that testing the SDK's retries takes no time; by itself it waits 0.5 s and more.
_SOON = 0.001


def _busy(status: int, seconds: float) -> Reply:
    waiting = {"retry-after-ms": f"{seconds * 1000:g}", "retry-after": f"{seconds:g}"}
    return Reply(status=status, headers=waiting)


def rate_limited(*, retry_after: float = _SOON) -> Reply:
    """429; `retry_after` in seconds."""
    return _busy(429, retry_after)


def server_error(*, retry_after: float = _SOON) -> Reply:
    """500; `retry_after` in seconds."""
    return _busy(500, retry_after)


def overloaded(*, retry_after: float = _SOON) -> Reply:
    """529; `retry_after` in seconds."""
    return _busy(529, retry_after)


def slow(seconds: float) -> Reply:
    """The usual answer, `seconds` late."""
    return Reply(delay=seconds)


def cut_off(*, after: int = 40) -> Reply:
    """The usual answer, of which only the first `after` bytes arrive."""
    return Reply(cut_after=after)


def refusal(*, text: str = "") -> Reply:
    """The model declines, with or without a beginning of a reply."""
    return Reply(text=lambda _: text, stop="refusal")


def truncated() -> Reply:
    """The first half of the usual answer, stopped by the limit on its tokens."""
    return Reply(text=_half, stop="max_tokens")


def context_window_exceeded() -> Reply:
    """The first half of the usual answer, stopped by the context window."""
    return Reply(text=_half, stop="context_window")


def malformed_json() -> Reply:
    """A reply that came to its end but is no JSON."""
    return Reply(text=lambda _: "Sure! Here is the JSON: {verdicts: [,")


def wrong_schema() -> Reply:
    """A reply that is JSON of another form."""
    return Reply(text=lambda _: '{"verdict": "perhaps", "claims": 3}')


def not_json() -> Reply:
    """A proxy's HTML page in the place of the API's reply."""
    return Reply(body=b"<html>Sign in</html>", headers={"content-type": "application/json"})


ALL: Mapping[str, Callable[[], Reply]] = MappingProxyType(
    {
        "rate_limited": rate_limited,
        "server_error": server_error,
        "overloaded": overloaded,
        "cut_off": cut_off,
        "refusal": refusal,
        "truncated": truncated,
        "context_window_exceeded": context_window_exceeded,
        "malformed_json": malformed_json,
        "wrong_schema": wrong_schema,
        "not_json": not_json,
    }
)
"""Every fault that needs no argument, by name; `slow` needs the client's time limit."""


def _half(text: str) -> str:
    return text[: len(text) // 2]
