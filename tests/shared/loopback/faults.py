"""Ways in which a judge's API, or the way to it, fails: replies for the loopback servers."""

from __future__ import annotations

from loopback.protocol import Reply

# Short, so that testing the SDK's retries takes no time; by itself it waits 0.5 s and more.
_SOON = 0.001


def _busy(status, seconds):
    waiting = {"retry-after-ms": f"{seconds * 1000:g}", "retry-after": f"{seconds:g}"}
    return Reply(status=status, headers=waiting)


def rate_limited(*, retry_after=_SOON):
    """429; `retry_after` in seconds."""
    return _busy(429, retry_after)


def server_error(*, retry_after=_SOON):
    """500; `retry_after` in seconds."""
    return _busy(500, retry_after)


def overloaded(*, retry_after=_SOON):
    """529; `retry_after` in seconds."""
    return _busy(529, retry_after)


def slow(seconds):
    """The usual answer, `seconds` late."""
    return Reply(delay=seconds)


def cut_off(*, after=40):
    """The usual answer, of which only the first `after` bytes arrive."""
    return Reply(cut_after=after)


def refusal(*, text=""):
    """The model declines, with or without a beginning of a reply."""
    return Reply(text=lambda _: text, stop="refusal")


def truncated():
    """The first half of the usual answer, stopped by the limit on its tokens."""
    return Reply(text=_half, stop="max_tokens")


def context_window_exceeded():
    """The first half of the usual answer, stopped by the context window."""
    return Reply(text=_half, stop="context_window")


def malformed_json():
    """A reply that came to its end but is no JSON."""
    return Reply(text=lambda _: "Sure! Here is the JSON: {verdicts: [,")


def wrong_schema():
    """A reply that is JSON of another form."""
    return Reply(text=lambda _: '{"verdict": "perhaps", "claims": 3}')


def not_json():
    """A proxy's HTML page in the place of the API's reply."""
    return Reply(body=b"<html>Sign in</html>", headers={"content-type": "application/json"})


ALL = {
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
"""Every fault that needs no argument, by name; `slow` needs the client's time limit."""


def _half(text):
    return text[: len(text) // 2]
