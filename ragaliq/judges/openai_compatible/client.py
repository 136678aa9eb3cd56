"""Clients for chat-completions servers, checked when they are made.

The SDK takes keys, organisations and projects from the environment. They belong to OpenAI: sent to
whatever address a judge was given, they would end up with somebody else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import openai

from ragaliq.errors import ConfigurationError
from ragaliq.judges.api_errors import check_key

__all__ = ["client_factory", "own_headers"]

_OPENAI = "api.openai.com"
_NO_KEY = "unused"
"""The SDK wants a key even where none is sent."""


def client_factory(
    *, base_url: str, timeout: float, max_retries: int | None
) -> Callable[[], openai.AsyncOpenAI]:
    """A function that makes a client with these settings; None leaves a setting to the SDK."""
    options: dict[str, Any] = {"base_url": base_url, "api_key": _NO_KEY, "timeout": timeout}
    if max_retries is not None:
        options["max_retries"] = max_retries

    def build() -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(**options)

    _check_address(base_url)
    return build


def _check_address(base_url: object) -> None:
    try:
        address = urlsplit(base_url) if isinstance(base_url, str) else None
        usable = address is not None and address.scheme in {"http", "https"} and address.hostname
    except ValueError:
        usable = None
    if not usable:
        # Not repeated here: it may hold a password.
        raise ConfigurationError(
            "OpenAICompatibleJudge: base_url= must be an http(s) URL that names a host"
        )


def own_headers(client: openai.AsyncOpenAI, api_key: str | None) -> Mapping[str, str | openai.Omit]:
    """The headers by which a request is authorised, in the place of the SDK's.

    Args:
        client: Knows the address.
        api_key: The key; when None, OPENAI_API_KEY where OpenAI itself is asked, else none.

    Raises:
        ConfigurationError: The key cannot be sent, or OpenAI is to be asked without one.
    """
    omit = openai.Omit()
    at_openai = client.base_url.host == _OPENAI
    key = api_key or (os.environ.get("OPENAI_API_KEY") if at_openai else None)
    if key:
        check_key(key, whose="the judge's server", where="OPENAI_API_KEY or api_key=")
    elif at_openai:
        raise ConfigurationError("no API key for OpenAI: set OPENAI_API_KEY or pass api_key=")
    authorization: dict[str, str | openai.Omit] = {
        "Authorization": f"Bearer {key}" if key else omit
    }
    if at_openai:
        return authorization
    return {"OpenAI-Organization": omit, "OpenAI-Project": omit, **authorization}
