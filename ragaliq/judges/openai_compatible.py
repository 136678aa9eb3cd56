"""Any model behind a chat-completions server as the judge: vLLM, Ollama, llama.cpp, LM Studio.

The `openai` SDK is loaded when a judge is built: `from ragaliq import *` works without the extra.
"""

from __future__ import annotations

import functools
import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import (
    ConfigurationError,
    JudgeError,
    JudgeRefusalError,
    JudgeResponseError,
)
from ragaliq.judges.clients import (
    LoopClients,
    check_address,
    check_key,
    check_model,
    request_error,
    token_count,
)
from ragaliq.judges.pricing import provider_at
from ragaliq.judges.prompted import PromptedJudge
from ragaliq.judges.wire import schema_of

if TYPE_CHECKING:
    import openai

    from ragaliq.judges.prompting import PromptSource, RenderedPrompt

logger = logging.getLogger(__name__)

_SMALLEST_WINDOW = 2048


class OpenAICompatibleJudge(PromptedJudge):
    """Asks a model through the chat-completions protocol.

    Such servers take different requests and hold a model to a JSON schema or do not. The judge asks
    for JSON in the strictest way the server takes, which it finds out with its first request,
    describes the form in the prompt as well, and reads replies tolerantly. Control tokens of chat
    templates, such as `<|im_start|>`, reach the model as text and not as tokens.

    One judge may be used from several event loops and threads at once. Requests are repeated by the
    SDK alone (408, 409, 429, 5xx, lost connections, timeouts), `max_retries` times. Redirects to
    another address are not followed.

    Args:
        base_url: Where the server is, such as `http://localhost:11434/v1`.
        model: The model's name as the server knows it.
        api_key: The server's key. When None, no key is sent; only OpenAI's own address gets
            OPENAI_API_KEY from the environment.
        timeout: Seconds to wait for the reply to one request.
        max_tokens: The most a reply may have, in tokens; when None, the server's own limit. Small
            models can go on for ever: give them one.
        temperature: How freely the model words its replies; when None, the server's default.
        context_window: Tokens that request and reply may have together, as the server was started.
            Longer contexts, answers and lists of claims are judged in parts. The default is what
            common servers begin with; some cut longer requests off without a word.
        max_retries: How often the SDK repeats a failed request; when None, its own default.
        prompts: Prompts to use in the place of ours: name to text or `pathlib.Path`, or a
            `pathlib.Path` to a folder.

    Raises:
        ConfigurationError: The `openai` extra is not installed, a setting or a prompt is wrong, or
            OpenAI is to be asked without a key.
    """

    name = "openai-compatible"
    model: str
    keeps_form = False

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        api_key: str | None = None,
        timeout: float = 60.0,
        max_tokens: int | None = None,
        temperature: float | None = 0.0,
        context_window: int = 4096,
        max_retries: int | None = None,
        prompts: PromptSource | None = None,
    ) -> None:
        super().__init__(prompts=prompts)
        check_model(model, max_tokens, whose="OpenAICompatibleJudge")
        if context_window < _SMALLEST_WINDOW:
            raise ConfigurationError(
                f"OpenAICompatibleJudge: context_window must be at least {_SMALLEST_WINDOW} "
                f"tokens, got {context_window}"
            )
        # At three characters a token: half of the window goes to the context. In a quarter of it
        # fits an answer, or the verdicts on the claims, at some hundred tokens each; the prompts
        # take the rest.
        self.max_context_chars = context_window // 2 * 3
        self.max_answer_chars = context_window // 4 * 3
        self.max_claims = context_window // 4 // 120
        check_address(base_url, where="base_url=")
        options: dict[str, Any] = {"base_url": base_url, "timeout": timeout}
        if max_retries is not None:
            options["max_retries"] = max_retries
        self._sdk = _load_sdk()
        build = functools.partial(_build_client, self._sdk, options)
        first = build()
        self._clients: LoopClients[openai.AsyncOpenAI] = LoopClients(build, first)
        self._headers = _own_headers(self._sdk, first.base_url.host, api_key)
        self.model = model
        self.provider = provider_at(base_url)
        self._timeout = timeout
        self._temperature = temperature
        self._max_tokens = max_tokens
        self._dialects = _Dialects(
            Dialect(
                temperature=temperature is not None,
                limit=None if max_tokens is None else "max_tokens",
            )
        )

    async def aclose(self) -> None:
        """Close the connections of the running event loop; not needed where the loop ends."""
        await self._clients.aclose()

    def price(self, usage: JudgeUsage) -> float | None:
        """The list price of one request in US dollars; None for a server of your own."""
        # A price found by the model's name alone would be what somebody else asks for it.
        return None if self.provider is None else super().price(usage)

    async def complete(
        self, prompt: RenderedPrompt, reply: type[BaseModel]
    ) -> tuple[str, JudgeUsage]:
        """Send one request, in simpler words where the server takes no others.

        Raises:
            JudgeTimeoutError: No reply within the time limit.
            JudgeAPIError: The server refused the request or could not be reached.
            JudgeRefusalError: The model declined, or a content filter withheld its reply.
            JudgeResponseError: The reply is cut off, or it is not a chat completion.
        """
        text = self.worded(prompt, reply)
        began = dialect = self._dialects.current
        while True:
            request = self._request(dialect, prompt.system, text, reply)
            body, failure, complaint = await self._post(request)
            if failure is None:
                self._dialects.accept(dialect)
                return self._read_completion(body)
            other = complaint and self._dialects.concede(began, dialect, *complaint)
            if not other:
                # Raised outside the handlers: the SDK's error holds request and reply.
                raise failure
            began = other if other == self._dialects.current else began
            dialect = other

    async def _post(
        self, request: dict[str, Any]
    ) -> tuple[object, JudgeError | None, tuple[int, str] | None]:
        """The body of the reply, or why there is none, with status and complaint if it says so."""
        sdk, complaint = self._sdk, None
        client = await self._clients.get()
        try:
            body = await client.chat.completions.create(**request, extra_headers=self._headers)
        except sdk.OpenAIError as error:
            if isinstance(error, sdk.APIStatusError):
                complaint = (error.status_code, str(error).lower())
            failure = request_error(
                error,
                sdk=sdk,
                service="the chat-completions server",
                model=self.model,
                timeout=self._timeout,
                advice=_ADVICE,
            )
            return None, failure, complaint
        except ValueError:
            body = None
        choices = getattr(body, "choices", None)
        if not isinstance(choices, list) or not choices or not hasattr(choices[0], "message"):
            problem = (
                "the server's reply is not a chat completion; check base_url=, which ends in /v1 "
                "with most servers"
            )
            return None, JudgeResponseError(problem), None
        return body, None, None

    def _request(
        self, dialect: Dialect, system: str, text: str, reply: type[BaseModel]
    ) -> dict[str, Any]:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": text}]
        if not dialect.system_role:
            messages = [{"role": "user", "content": f"{system}\n\n{text}"}]
        request: dict[str, Any] = {"model": self.model, "messages": messages}
        if dialect.temperature:
            request["temperature"] = self._temperature
        if dialect.limit is not None:
            request[dialect.limit] = self._max_tokens
        schema = schema_of(reply)
        if dialect.reply_format == "json_schema":
            named = {"name": reply.__name__, "strict": True, "schema": schema}
            request["response_format"] = {"type": "json_schema", "json_schema": named}
        elif dialect.reply_format == "json_object_schema":
            request["response_format"] = {"type": "json_object", "schema": schema}
        elif dialect.reply_format == "json_object":
            request["response_format"] = {"type": "json_object"}
        return request

    def _read_completion(self, body: Any) -> tuple[str, JudgeUsage]:
        usage = self.priced(_usage(getattr(body, "usage", None)))
        message = body.choices[0].message
        reason = getattr(body.choices[0], "finish_reason", None)
        if _text(getattr(message, "refusal", None)).strip():
            raise JudgeRefusalError(f"{self.model} declined to answer", usage=usage)
        if reason == "content_filter":
            raise JudgeRefusalError(
                f"a content filter withheld the reply of {self.model}", usage=usage
            )
        if reason == "length":
            raise JudgeResponseError(
                "the reply was cut off at max_tokens= or where the model's context window ends; "
                "raise max_tokens=, or set context_window= to what the server is started with",
                usage=usage,
            )
        return _text(getattr(message, "content", None)), usage


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    # Some servers give parts, as in a request.
    parts = content if isinstance(content, list) else []
    return "".join(_text(part.get("text")) for part in parts if isinstance(part, dict))


def _usage(spent: Any) -> JudgeUsage:
    prompt = token_count(getattr(spent, "prompt_tokens", None))
    reply = token_count(getattr(spent, "completion_tokens", None))
    if not prompt and not reply:
        total = token_count(getattr(spent, "total_tokens", None))
        return JudgeUsage(unsplit_tokens=total, requests=1)
    details = getattr(spent, "prompt_tokens_details", None)
    # There, cached tokens are a part of the prompt's; in `JudgeUsage` each is in one figure.
    read = min(prompt, token_count(getattr(details, "cached_tokens", None)))
    written = min(prompt - read, token_count(getattr(details, "cache_write_tokens", None)))
    return JudgeUsage(
        input_tokens=prompt - read - written,
        output_tokens=reply,
        cache_read_tokens=read,
        cache_write_tokens=written,
        requests=1,
    )


# --- Dialects ---------------------------------------------------------------------------------

ReplyFormat = Literal["json_schema", "json_object_schema", "json_object", "text"]

_FORMATS: tuple[ReplyFormat, ...] = ("json_schema", "json_object_schema", "json_object", "text")
_INVALID_REQUEST = (400, 422)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How to word a request."""

    # OpenAI's schema, llama.cpp's object with a schema, a bare object, or no form at all.
    reply_format: ReplyFormat = "json_schema"
    # Some chat templates know no such role: the system prompt then opens the user's message.
    system_role: bool = True
    temperature: bool = True  # reasoning models take none
    limit: Literal["max_tokens", "max_completion_tokens"] | None = None


def _simpler_format(dialect: Dialect) -> Dialect:
    following = _FORMATS.index(dialect.reply_format) + 1
    return replace(dialect, reply_format=_FORMATS[min(following, len(_FORMATS) - 1)])


# What a server complains of, and the dialect that avoids it; the same one where none does.
_CONCESSIONS: tuple[tuple[re.Pattern[str], Callable[[Dialect], Dialect]], ...] = (
    (re.compile(r"response.?format|json.?schema|json.?object|grammar"), _simpler_format),
    (re.compile(r"temperature"), lambda dialect: replace(dialect, temperature=False)),
    (
        re.compile(r"max_completion_tokens"),
        lambda dialect: replace(dialect, limit=dialect.limit and "max_completion_tokens"),
    ),
    (
        re.compile(r"system.{0,3}role|role.{0,20}system|roles must alternate"),
        lambda dialect: replace(dialect, system_role=False),
    ),
)


class _Dialects:
    """What is known about one server. Several requests may find out at once."""

    def __init__(self, first: Dialect) -> None:
        self.current = first
        self._is_proven = False
        self._useless: set[Dialect] = set()

    def accept(self, dialect: Dialect) -> None:
        """Remember a dialect that the server took."""
        if dialect != self.current:
            logger.info("the judge's server refused %s and takes %s", self.current, dialect)
        self.current, self._is_proven = dialect, True

    def concede(
        self, began: Dialect, dialect: Dialect, status: int, complaint: str
    ) -> Dialect | None:
        """Another dialect to try after one was refused; None where there is none.

        `began` is what the request was asked in first. The complaint, in lower case, may quote the
        request: it is only searched for words and never kept.
        """
        if dialect != began:
            self._useless.add(dialect)
        if began != self.current != dialect:
            return self.current  # another request has found out in the meantime
        # Whatever the status: llama-cpp-python answers 500 to a form of reply it does not know.
        named = [
            other
            for pattern, concession in _CONCESSIONS
            if pattern.search(complaint) and (other := concession(dialect)) != dialect
        ]
        if named:
            other = named[0]
        elif status in _INVALID_REQUEST and not self._is_proven:
            other = _simpler_format(dialect)  # some say no more than "bad request"
        else:
            return None
        # What did not help once is not tried again, unless the server asks for it by name and has
        # not taken anything yet: the first time, something else may have been wrong as well.
        if other == dialect or (other in self._useless and (self._is_proven or not named)):
            return None
        return other


# --- Clients, checked when they are made ------------------------------------------------------

_OPENAI = "api.openai.com"

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


def _load_sdk() -> Any:
    try:
        import openai
    except ModuleNotFoundError as error:
        if error.name != "openai":
            raise
        raise ConfigurationError(
            "OpenAICompatibleJudge needs the openai package: pip install 'ragaliq[openai]'"
        ) from None
    return openai


def _build_client(sdk: Any, options: dict[str, Any]) -> openai.AsyncOpenAI:
    # The SDK would follow a redirect and send question, answer and context to another host. It
    # wants a key even where none is sent.
    direct = sdk.DefaultAsyncHttpxClient(follow_redirects=False, timeout=options["timeout"])
    client: openai.AsyncOpenAI = sdk.AsyncOpenAI(**options, api_key="unused", http_client=direct)
    return client


def _own_headers(sdk: Any, host: str, api_key: str | None) -> Mapping[str, Any]:
    """The headers by which a request is authorised, in the place of the SDK's.

    The SDK's variables (OPENAI_API_KEY, organisation, project) are for OpenAI's own address only.
    """
    at_openai = host == _OPENAI
    key = api_key or (os.environ.get("OPENAI_API_KEY") if at_openai else None)
    if key:
        check_key(key, whose="the judge's server", where="OPENAI_API_KEY or api_key=")
    elif at_openai:
        raise ConfigurationError(
            "no API key for OpenAI: set OPENAI_API_KEY, or in Python "
            "OpenAICompatibleJudge(api_key=...)"
        )
    authorization = {"Authorization": f"Bearer {key}" if key else sdk.Omit()}
    if at_openai:
        return authorization
    return {"OpenAI-Organization": sdk.Omit(), "OpenAI-Project": sdk.Omit(), **authorization}
