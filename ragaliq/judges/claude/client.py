"""Clients for the Claude API, checked when they are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anthropic

from ragaliq.errors import ConfigurationError
from ragaliq.judges.api_errors import check_key

__all__ = ["check_client", "client_factory"]


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
        if secret:
            check_key(secret, whose="Claude", where="ANTHROPIC_API_KEY or api_key=")
    own_header = (
        client.api_key is None
        and client.auth_token is None
        and not {"authorization", "x-api-key"}.isdisjoint(map(str.lower, client.default_headers))
    )
    if not (client.api_key or client.auth_token or client.credentials or own_header):
        raise ConfigurationError("no API key for Claude: set ANTHROPIC_API_KEY or pass api_key=")
