"""One chat-completions server, asked in a dialect it takes. Loading this loads the `openai` SDK."""

from __future__ import annotations

from typing import Any

import openai
from pydantic import BaseModel

from ragaliq.errors import JudgeError
from ragaliq.judges.loop_clients import LoopClients
from ragaliq.judges.openai_compatible.client import client_factory, own_headers
from ragaliq.judges.openai_compatible.dialect import Attempt, Dialect, Negotiation
from ragaliq.judges.openai_compatible.errors import not_a_completion, request_failed
from ragaliq.judges.openai_compatible.reply import Completion, read_completion
from ragaliq.judges.reply_forms import schema_of

__all__ = ["ChatServer"]


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
