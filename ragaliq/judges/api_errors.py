"""Failures of a judge's API in words of ours, whichever SDK tells of them.

Nothing a server wrote is repeated: an error body may quote the request. For the same reason no
SDK error is ever chained to ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ragaliq.errors import ConfigurationError, JudgeAPIError, JudgeTimeoutError

__all__ = ["check_key", "connection_failed", "status_failed", "timed_out"]

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
