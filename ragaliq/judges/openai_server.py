"""One chat-completions server, asked in a dialect it takes. Loading this loads the `openai` SDK."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import urlsplit

import openai
from pydantic import BaseModel

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import (
    ConfigurationError,
    JudgeAPIError,
    JudgeError,
    JudgeRefusalError,
    JudgeResponseError,
)
from ragaliq.judges.clients import (
    LoopClients,
    check_key,
    connection_failed,
    status_failed,
    timed_out,
)
from ragaliq.judges.wire import schema_of

__all__ = ["ChatServer", "Completion", "Dialect", "Negotiation"]


class ChatServer:
    """Sends requests, each on the running loop's own client.

    Args:
        base_url: Where the server is.
        api_key: Its key, if it wants one.
        model: The model to ask for.
        timeout: Seconds to wait for one reply.
        max_retries: How often the SDK repeats a failed request; None for its own default.
        temperature: None to leave it to the server.
        max_tokens: None to leave it to the server.

    Raises:
        ConfigurationError: The address or the key is none.
    """

    def __init__(
        self,
        *,
        base_url: str,
        api_key: str | None,
        model: str,
        timeout: float,
        max_retries: int | None,
        temperature: float | None,
        max_tokens: int | None,
    ) -> None:
        build = client_factory(base_url=base_url, timeout=timeout, max_retries=max_retries)
        first = build()
        self._headers = own_headers(first, api_key)
        self._clients = LoopClients(build, first)
        self._model = model
        self._timeout = timeout
        self._temperature = temperature
        self._max_tokens = max_tokens
        self._negotiation = Negotiation(
            Dialect(
                temperature=temperature is not None,
                limit=None if max_tokens is None else "max_tokens",
            )
        )

    async def aclose(self) -> None:
        """Close the running loop's client."""
        await self._clients.aclose()

    async def complete(self, system: str, text: str, reply: type[BaseModel]) -> Completion:
        """Send one request, in simpler words where the server takes no others.

        Args:
            system: The system prompt.
            text: The request.
            reply: The form of the reply.

        Raises:
            JudgeError: The request brought no reply.
        """
        attempt = self._negotiation.begin()
        while True:
            outcome = await self._send(attempt, self._request(attempt.dialect, system, text, reply))
            if isinstance(outcome, Completion):
                attempt.accepted()
                return outcome
            if outcome is not None:
                # Raised outside the handlers: the SDK's error holds request and reply.
                raise outcome

    async def _send(
        self, attempt: Attempt, request: dict[str, Any]
    ) -> Completion | JudgeError | None:
        """One request's reply, or why there is none; None where another dialect may bring one."""
        client = await self._clients.get()
        try:
            body = await client.chat.completions.create(**request, extra_headers=self._headers)
        except openai.APIStatusError as error:
            if attempt.concede(error.status_code, str(error)):
                return None
            return request_failed(error, self._model, self._timeout)
        except openai.OpenAIError as error:
            return request_failed(error, self._model, self._timeout)
        except ValueError:
            return not_a_completion()
        return read_completion(body) or not_a_completion()

    def _request(
        self, dialect: Dialect, system: str, text: str, reply: type[BaseModel]
    ) -> dict[str, Any]:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": text}]
        if not dialect.system_role:
            messages = [{"role": "user", "content": f"{system}\n\n{text}"}]
        request: dict[str, Any] = {"model": self._model, "messages": messages}
        if dialect.temperature:
            request["temperature"] = self._temperature
        if dialect.limit is not None:
            request[dialect.limit] = self._max_tokens
        if (reply_format := _reply_format(dialect, reply)) is not None:
            request["response_format"] = reply_format
        return request


def _reply_format(dialect: Dialect, reply: type[BaseModel]) -> dict[str, Any] | None:
    if dialect.reply_format == "text":
        return None
    if dialect.reply_format == "json_object":
        return {"type": "json_object"}
    schema = schema_of(reply)
    if dialect.reply_format == "json_object_schema":
        return {"type": "json_object", "schema": schema}
    named = {"name": reply.__name__, "strict": True, "schema": schema}
    return {"type": "json_schema", "json_schema": named}


# --- Dialects ---------------------------------------------------------------------------------

_LOG = logging.getLogger(__name__)

ReplyFormat = Literal["json_schema", "json_object_schema", "json_object", "text"]

_FORMATS: tuple[ReplyFormat, ...] = ("json_schema", "json_object_schema", "json_object", "text")
_INVALID_REQUEST = (400, 422)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How to word a request.

    Attributes:
        reply_format: How the reply is held to JSON: OpenAI's `json_schema`, llama.cpp's
            `json_object` with a schema, a bare `json_object`, or not at all.
        system_role: Whether the system prompt is a message of its own; some chat templates know
            no such role, and it then opens the user's message.
        temperature: Whether a temperature is sent; reasoning models take none.
        limit: The name of the limit on the reply's tokens; None to send none.
    """

    reply_format: ReplyFormat = "json_schema"
    system_role: bool = True
    temperature: bool = True
    limit: Literal["max_tokens", "max_completion_tokens"] | None = None


def _simpler_format(dialect: Dialect) -> Dialect | None:
    following = _FORMATS.index(dialect.reply_format) + 1
    if following == len(_FORMATS):
        return None
    return replace(dialect, reply_format=_FORMATS[following])


def _no_temperature(dialect: Dialect) -> Dialect | None:
    return replace(dialect, temperature=False) if dialect.temperature else None


def _newer_limit(dialect: Dialect) -> Dialect | None:
    if dialect.limit != "max_tokens":
        return None
    return replace(dialect, limit="max_completion_tokens")


def _no_system_role(dialect: Dialect) -> Dialect | None:
    return replace(dialect, system_role=False) if dialect.system_role else None


_CONCESSIONS: tuple[tuple[re.Pattern[str], Callable[[Dialect], Dialect | None]], ...] = (
    (re.compile(r"response.?format|json.?schema|json.?object|grammar"), _simpler_format),
    (re.compile(r"temperature"), _no_temperature),
    (re.compile(r"max_completion_tokens"), _newer_limit),
    (re.compile(r"system.{0,3}role|role.{0,20}system|roles must alternate"), _no_system_role),
)


class Negotiation:
    """What is known about one server.

    Args:
        dialect: What to begin with.

    Attributes:
        dialect: What to ask in.
        proven: Whether the server has taken it.
        refused: Concessions that did not help.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.proven = False
        self.refused: set[Dialect] = set()

    def begin(self) -> Attempt:
        """One request's way to a dialect the server takes."""
        return Attempt(self)


class Attempt:
    """One request, asked in one dialect after the other. Others may be under way.

    Attributes:
        dialect: What to ask in now.
    """

    def __init__(self, negotiation: Negotiation) -> None:
        self._known = negotiation
        self._began = self.dialect = negotiation.dialect

    def accepted(self) -> None:
        """Remember the dialect: the server took it."""
        if self.dialect != self._known.dialect:
            _LOG.info(
                "the judge's server refused %s and takes %s", self._known.dialect, self.dialect
            )
        self._known.dialect, self._known.proven = self.dialect, True

    def concede(self, status: int, complaint: str) -> bool:
        """Whether there is another dialect to try after a refusal.

        Args:
            status: HTTP status.
            complaint: What the server said. It may quote the request, so that it is only searched
                for words and never kept.
        """
        if self.dialect != self._began:
            self._known.refused.add(self.dialect)
        if self._began != self._known.dialect != self.dialect:
            # Another request has found out in the meantime.
            self._began = self.dialect = self._known.dialect
            return True
        other = named = _named_concession(self.dialect, complaint.lower())
        if other is None and status in _INVALID_REQUEST and not self._known.proven:
            # Some say no more than "bad request".
            other = _simpler_format(self.dialect)
        # What did not help once is not tried again, unless the server asks for it by name and has
        # not taken anything yet: the first time, something else may have been wrong as well.
        if other in self._known.refused and (self._known.proven or named is None):
            return False
        self.dialect = other or self.dialect
        return other is not None


def _named_concession(dialect: Dialect, complaint: str) -> Dialect | None:
    # Whatever the status: llama-cpp-python answers 500 to a form of reply it does not know.
    for pattern, concession in _CONCESSIONS:
        if pattern.search(complaint) and (other := concession(dialect)) is not None:
            return other
    return None


# --- Completions ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Completion:
    """One reply.

    Attributes:
        text: What the model said.
        refused: Whether it declined, by a refusal in the place of a text.
        finish_reason: Why it ended; empty where the server does not say.
        usage: Its tokens, without a price.
    """

    text: str
    refused: bool
    finish_reason: str
    usage: JudgeUsage


def read_completion(body: object) -> Completion | None:
    """The completion in a server's reply; None where there is none."""
    choices = getattr(body, "choices", None)
    if not isinstance(choices, list) or not choices:
        return None
    message = getattr(choices[0], "message", None)
    if message is None:
        return None
    reason = getattr(choices[0], "finish_reason", None)
    return Completion(
        text=_text(getattr(message, "content", None)),
        refused=bool(_text(getattr(message, "refusal", None)).strip()),
        finish_reason=reason if isinstance(reason, str) else "",
        usage=_usage(getattr(body, "usage", None)),
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    # Some servers give parts, as in a request.
    parts = content if isinstance(content, list) else []
    return "".join(_text(part.get("text")) for part in parts if isinstance(part, dict))


def _usage(spent: Any) -> JudgeUsage:
    prompt = _count(getattr(spent, "prompt_tokens", None))
    reply = _count(getattr(spent, "completion_tokens", None))
    if not prompt and not reply:
        total = _count(getattr(spent, "total_tokens", None))
        return JudgeUsage(unsplit_tokens=total, requests=1, cost_usd=None)
    details = getattr(spent, "prompt_tokens_details", None)
    # There, cached tokens are a part of the prompt's; in `JudgeUsage` each is in one figure.
    read = min(prompt, _count(getattr(details, "cached_tokens", None)))
    written = min(prompt - read, _count(getattr(details, "cache_write_tokens", None)))
    return JudgeUsage(
        input_tokens=prompt - read - written,
        output_tokens=reply,
        cache_read_tokens=read,
        cache_write_tokens=written,
        requests=1,
        cost_usd=None,
    )


def _count(tokens: object) -> int:
    return tokens if isinstance(tokens, int) and tokens > 0 else 0


# --- Clients, checked when they are made ------------------------------------------------------

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


# --- Failures, as errors of ours --------------------------------------------------------------

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
