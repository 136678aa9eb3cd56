"""Failures of a chat-completions server, as errors of ours."""

from __future__ import annotations

import openai

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import JudgeAPIError, JudgeError, JudgeRefusalError, JudgeResponseError
from ragaliq.judges.api_errors import connection_failed, status_failed, timed_out

__all__ = ["not_a_completion", "request_failed", "stopped_early"]

_SERVICE = "the chat-completions server"

_ADVICE = {
    400: "check the model's name, max_tokens= and context_window=",
    401: "it wants an API key, or another one; check api_key=",
    403: "the API key may not use this model",
    404: "check the model's name and base_url=, which ends in /v1 with most servers",
    413: "the request is too large; lower context_window= or use shorter chunks",
    422: "check the model's name, max_tokens= and context_window=",
    429: "the rate limit is used up; lower the concurrency or the sample rate",
    503: "it is overloaded or still loading the model; try again later",
}


def request_failed(error: openai.OpenAIError, model: str, timeout: object) -> JudgeError:
    """The error for a request that brought no reply, after the SDK's own retries."""
    if isinstance(error, openai.APITimeoutError):
        return timed_out(model, timeout)
    if isinstance(error, openai.APIStatusError):
        return status_failed(
            _SERVICE,
            model,
            status=error.status_code,
            request_id=error.request_id,
            advice=_ADVICE,
        )
    if isinstance(error, openai.APIConnectionError):
        return connection_failed(_SERVICE)
    return JudgeAPIError(f"the request to {_SERVICE} failed ({type(error).__name__})")


def not_a_completion() -> JudgeResponseError:
    """The error for a reply from something that is no such server."""
    return JudgeResponseError(
        "the server's reply is no chat completion; check base_url=, which ends in /v1 with most "
        "servers"
    )


def stopped_early(
    model: str, finish_reason: str, usage: JudgeUsage, *, refused: bool
) -> JudgeError | None:
    """The error for a reply that is not one, or None for a reply that came to its end.

    Args:
        model: The model's name.
        finish_reason: As the server gives it.
        usage: What the reply cost.
        refused: Whether the reply says by its form that the model declined.
    """
    if refused:
        return JudgeRefusalError(f"{model} declined to answer", usage=usage)
    if finish_reason == "content_filter":
        return JudgeRefusalError(f"a content filter withheld the reply of {model}", usage=usage)
    if finish_reason == "length":
        return JudgeResponseError(
            "the reply was cut off at max_tokens= or where the model's context window ends; "
            "raise max_tokens=, or set context_window= to what the server is started with",
            usage=usage,
        )
    return None
