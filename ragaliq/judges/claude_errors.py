"""Failures of the Claude API, as errors of ours.

Nothing a server wrote is repeated: an error body may quote the request. For the same reason no
SDK error is ever chained to ours.
"""

from __future__ import annotations

import re

import anthropic
from anthropic.types import Message

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import (
    JudgeAPIError,
    JudgeError,
    JudgeRefusalError,
    JudgeResponseError,
    JudgeTimeoutError,
)

__all__ = ["request_failed", "stopped_early"]

_ADVICE = {
    400: "check the model's name, max_tokens= and the size of the context",
    401: "the API key is not valid; check ANTHROPIC_API_KEY or api_key=",
    402: "check the account's billing",
    403: "the API key may not use this model",
    404: "check the model's name and base_url=",
    413: "the request is too large; use fewer or shorter chunks",
    429: "the rate limit is used up; lower the concurrency or the sample rate",
    529: "the API is overloaded; try again later",
}
_REQUEST_ID = re.compile(r"[\w-]{1,64}", re.ASCII)


def request_failed(error: anthropic.AnthropicError, model: str, timeout: object) -> JudgeError:
    """The error for a request that brought no reply, after the SDK's own retries."""
    if isinstance(error, anthropic.APITimeoutError):
        limit = f" within {timeout:g} s" if isinstance(timeout, (int, float)) else ""
        return JudgeTimeoutError(
            f"{model} did not reply{limit}; raise timeout= or send less at a time"
        )
    if isinstance(error, anthropic.APIStatusError):
        return JudgeAPIError(_status_message(error, model))
    if isinstance(error, anthropic.APIConnectionError):
        return JudgeAPIError(
            "the connection to the Claude API failed or was cut off; "
            "check the network and base_url="
        )
    if isinstance(error, anthropic.CredentialsError):
        return JudgeAPIError("the credentials for the Claude API cannot be loaded")
    return JudgeAPIError(f"the request to the Claude API failed ({type(error).__name__})")


def stopped_early(message: Message, usage: JudgeUsage, max_tokens: int) -> JudgeError | None:
    """The error for a reply that is not one, or None for a reply that came to its end."""
    reason = message.stop_reason
    if reason == "refusal":
        return JudgeRefusalError(f"{message.model} declined to answer", usage=usage)
    if reason == "max_tokens":
        return JudgeResponseError(
            f"the reply was cut off at max_tokens={max_tokens}; raise it or ask about fewer claims",
            usage=usage,
        )
    if reason == "model_context_window_exceeded":
        return JudgeResponseError(
            "the reply was cut off where the model's context window ended; "
            "use fewer or shorter chunks",
            usage=usage,
        )
    return None


def _status_message(error: anthropic.APIStatusError, model: str) -> str:
    status = error.status_code
    advice = _ADVICE.get(status) or (
        "the API failed; try again later" if status >= 500 else "check the request's settings"
    )
    request_id = error.request_id or ""
    named = f" (request {request_id})" if _REQUEST_ID.fullmatch(request_id) else ""
    return f"the Claude API answered {status} for {model}{named}: {advice}"
