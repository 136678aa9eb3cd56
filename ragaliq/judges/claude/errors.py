"""Failures of the Claude API, as errors of ours."""

from __future__ import annotations

import anthropic
from anthropic.types import Message

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import (
    JudgeAPIError,
    JudgeError,
    JudgeRefusalError,
    JudgeResponseError,
)
from ragaliq.judges.api_errors import connection_failed, status_failed, timed_out

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
_SERVICE = "the Claude API"


def request_failed(error: anthropic.AnthropicError, model: str, timeout: object) -> JudgeError:
    """The error for a request that brought no reply, after the SDK's own retries."""
    if isinstance(error, anthropic.APITimeoutError):
        return timed_out(model, timeout)
    if isinstance(error, anthropic.APIStatusError):
        return status_failed(
            _SERVICE,
            model,
            status=error.status_code,
            request_id=error.request_id,
            advice=_ADVICE,
        )
    if isinstance(error, anthropic.APIConnectionError):
        return connection_failed(_SERVICE)
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
