"""Any model behind a chat-completions server: OpenAI, Azure, gateways, vLLM, Ollama, llama.cpp.

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
from urllib.parse import urlsplit

from pydantic import BaseModel

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import (
    ConfigurationError,
    JudgeError,
    JudgeResponseError,
)
from ragaliq.judges.clients import (
    LoopClients,
    check_address,
    check_end,
    check_key,
    check_model,
    http_client,
    refused_request,
    request_error,
    unlogged,
)
from ragaliq.judges.pricing import ONE_TOKEN, provider_at
from ragaliq.judges.prompted import PromptedJudge
from ragaliq.judges.vendors import REPORTING, UNKNOWN_USAGE, ServerError, error_in, first_of
from ragaliq.judges.wire import schema_of

if TYPE_CHECKING:
    import openai

    from ragaliq.judges.prompting import PromptSource, RenderedPrompt

logger = logging.getLogger(__name__)

ReplyFormat = Literal["json_schema", "json_object", "text"]
"""The form a server is asked to hold a reply to: a JSON schema, any JSON object, or none."""

_FORMATS: tuple[ReplyFormat, ...] = ("json_schema", "json_object", "text")
_SMALLEST_WINDOW = 2048
# Of a server of your own, as common ones are started; and of the models that vendors sell.
_OWN_WINDOW, _SOLD_WINDOW = 4096, 128_000
_MOST_ANSWER_CHARS, _MOST_CLAIMS = 24_000, 40  # as for Claude: a longer reply is seldom complete


class OpenAICompatibleJudge(PromptedJudge):
    """Asks a model through the chat-completions protocol.

    Servers accept different requests. The first call finds the strictest `reply_format` that the
    server accepts, and whether it accepts a temperature, a system message and `max_tokens`. After
    the first reply, all requests have this form. The prompt also describes the reply. Control
    tokens of chat templates, such as `<|im_start|>`, reach the model as text and not as tokens.

    One judge may be used from several event loops and threads at once. Requests are repeated by the
    SDK alone (408, 409, 429, 5xx, lost connections, timeouts), `max_retries` times. Redirects to
    another address are not followed.

    Args:
        model: The model's name as the server knows it; with Azure, the deployment's.
        base_url: The server's address, such as `http://localhost:11434/v1`; when None,
            OPENAI_BASE_URL or OpenAI's own. Azure: `https://NAME.openai.azure.com/openai/v1`.
        api_key: The server's key. When None, no key is sent to `base_url`; OpenAI's own address,
            and the one in OPENAI_BASE_URL, get OPENAI_API_KEY.
        timeout: Seconds to wait for the reply to one request.
        max_tokens: Most tokens of a reply; when None, the server's own limit. Small models may
            never stop: set one.
        context_window: Most tokens of request and reply together, as the server was started. Longer
            contexts, answers and lists of claims are split. The default is that of common servers
            (4096), some of which silently truncate longer requests. For vendors' addresses it is
            128,000.
        reply_format: `json_schema`, `json_object` or `text`; when None, found on the first call.
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
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        max_tokens: int | None = None,
        context_window: int | None = None,
        reply_format: ReplyFormat | None = None,
        max_retries: int | None = None,
        prompts: PromptSource | None = None,
    ) -> None:
        super().__init__(prompts=prompts)
        check_model(model, max_tokens, whose="OpenAICompatibleJudge")
        if reply_format is not None and reply_format not in _FORMATS:
            raise ConfigurationError(
                f"OpenAICompatibleJudge: reply_format must be one of {', '.join(_FORMATS)}"
            )
        address = _address(base_url)
        self.provider = provider_at(address)
        self.costs_money = self.provider is not None
        if context_window is None:
            context_window = _SOLD_WINDOW if self.provider else _OWN_WINDOW
        if context_window < _SMALLEST_WINDOW:
            raise ConfigurationError(
                f"OpenAICompatibleJudge: context_window must be at least {_SMALLEST_WINDOW} "
                f"tokens, got {context_window}"
            )
        # At three characters a token: half of the window goes to the context. In a quarter of it
        # fits an answer, or the verdicts on the claims, at some hundred tokens each; the prompts
        # take the rest.
        self.max_context_chars = context_window // 2 * 3
        self.max_answer_chars = min(context_window // 4 * 3, _MOST_ANSWER_CHARS)
        self.max_claims = min(context_window // 4 // 120, _MOST_CLAIMS)
        options: dict[str, Any] = {"base_url": address, "timeout": timeout}
        if max_retries is not None:
            options["max_retries"] = max_retries
        self._sdk = _load_sdk()
        build = functools.partial(_build_client, self._sdk, options)
        first = build()
        self._clients: LoopClients[openai.AsyncOpenAI] = LoopClients(build, first)
        host = first.base_url.host
        self._headers = _own_headers(self._sdk, host, api_key, is_given=base_url is not None)
        self.model = model
        self._timeout = timeout
        self._max_tokens = max_tokens
        # OpenAI's reasoning models refuse the older name, and other servers the newer one.
        is_openai = host == _OPENAI or host.endswith(_AZURE)
        self._form = RequestForm(
            reply_format or "json_schema",
            limit="max_completion_tokens" if is_openai else "max_tokens",
        )
        self._is_format_given, self._is_form_found = reply_format is not None, False

    async def aclose(self) -> None:
        """Close the connections of the running event loop; not needed where the loop ends."""
        await self._clients.aclose()

    def price(self, usage: JudgeUsage) -> float | None:
        """List price of one request in US dollars; None for your own server."""
        # A price by the model's name alone would be another provider's.
        return None if self.provider is None else super().price(usage)

    @property
    def is_unpriced(self) -> bool:
        """True at a vendor whose list has no price of the model and whose replies name none.

        A server of your own may be a gateway, which passes a vendor's price on.
        """
        return self.provider not in (None, *REPORTING) and self.price(ONE_TOKEN) is None

    async def complete(
        self, prompt: RenderedPrompt, reply: type[BaseModel]
    ) -> tuple[str, JudgeUsage]:
        """Send one request; the first one in simpler forms too, where the server takes no others.

        Raises:
            JudgeTimeoutError: No reply within the time limit.
            JudgeAPIError: The server refused the request or could not be reached.
            JudgeRefusalError: The model declined, or a content filter withheld its reply.
            JudgeResponseError: The reply is cut off, or it is not a chat completion.
        """
        text = self.worded(prompt, reply)
        is_found, form = self._is_form_found, self._form
        while True:
            body, error, failure = await self._post(self._request(form, prompt.system, text, reply))
            if failure is None:
                self._keep(form)
                return self._read_completion(body)
            if error is not None and error.code == _MALFORMED:
                return str(error.fields.get("failed_generation") or ""), UNKNOWN_USAGE
            simpler = None if is_found or error is None else self._simpler(form, error)
            if simpler is None:
                # Raised outside the handlers: the SDK's error holds request and reply.
                raise failure
            form = simpler

    async def _post(
        self, request: dict[str, Any]
    ) -> tuple[object, ServerError | None, JudgeError | None]:
        """Body of the reply; else the server's error, and our error for it."""
        sdk = self._sdk
        client = await self._clients.get()
        try:
            # Not `chat.completions.create`: building its types takes a third of the time of a
            # request, and what is read of them are a few fields.
            with unlogged():
                body = await client.post(
                    "/chat/completions",
                    body=request,
                    cast_to=object,
                    options={"headers": self._headers},
                )
        except sdk.OpenAIError as error:
            said = None
            if isinstance(error, sdk.APIStatusError):
                said = error_in(error.body, error.status_code)
            failure = request_error(
                error,
                sdk=sdk,
                service=_SERVICE,
                model=self.model,
                timeout=self._timeout,
                advice=_ADVICE,
            )
            return None, said, failure
        except (ValueError, RecursionError):
            body = None
        if (said := error_in(body)) is not None:
            refused = refused_request(said, service=_SERVICE, model=self.model, advice=_ADVICE)
            return None, said, refused
        choice = first_of(body, "choices")
        # Gemini cuts a reply off before its first word, and then sends no message.
        if isinstance(choice, dict) and (choice.get("finish_reason") or choice.get("message")):
            return body, None, None
        problem = (
            "the server's reply is not a chat completion; check base_url=, which ends in /v1 with "
            "most servers"
        )
        if isinstance(body, dict) and body.get("choices") == []:
            problem = f"the server sent no reply of {self.model}; a filter may have withheld it"
        usage = self.spent_on(body) if isinstance(body, dict) and body.get("usage") else None
        return None, None, JudgeResponseError(problem, usage=usage)

    def _request(
        self, form: RequestForm, system: str, text: str, reply: type[BaseModel]
    ) -> dict[str, Any]:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": text}]
        if not form.has_system:
            messages = [{"role": "user", "content": f"{system}\n\n{text}"}]
        request: dict[str, Any] = {"model": self.model, "messages": messages}
        if form.has_temperature:
            request["temperature"] = 0.0
        if self._max_tokens is not None:
            request[form.limit] = self._max_tokens
        if form.reply_format == "json_schema":
            named = {"name": reply.__name__, "strict": True, "schema": schema_of(reply)}
            request["response_format"] = {"type": "json_schema", "json_schema": named}
        elif form.reply_format == "json_object":
            request["response_format"] = {"type": "json_object"}
        return request

    def _keep(self, form: RequestForm) -> None:
        """Use the form that the server accepted first for all requests."""
        if self._is_form_found:
            return
        if form != self._form:
            logger.info("the judge's server refused %s and takes %s", self._form, form)
        self._form, self._is_form_found = form, True

    def _simpler(self, form: RequestForm, error: ServerError) -> RequestForm | None:
        """Simpler form without what the server rejected; None if the form is not the cause.

        The error may quote the request, so it is only searched for known words, and only until the
        server has accepted a request: one case's text never changes other requests.
        """
        if self._is_form_found:  # another request has found it out in the meantime
            return self._form if self._form != form else None
        complaint = f"{error.fields.get('param')} {error.code} {error.message}".lower()
        for pattern, concession in _CONCESSIONS:
            simpler = concession(form)
            is_given = self._is_format_given and simpler.reply_format != form.reply_format
            if pattern.search(complaint) and simpler != form and not is_given:
                return simpler
        return None

    def _read_completion(self, body: Any) -> tuple[str, JudgeUsage]:
        usage = self.spent_on(body.get("usage"))
        message = body["choices"][0].get("message")
        text = _text(message.get("content")) if isinstance(message, dict) else ""
        thoughts = "" if text.strip() else ", all of it thoughts"
        check_end(
            body,
            model=self.model,
            usage=usage,
            cut_off=" at max_tokens= or where the model's context window ends"
            f"{thoughts}; raise max_tokens=, or set context_window= to what the server is "
            "started with",
        )
        return text, usage


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    # Some servers give parts, as in a request.
    parts = content if isinstance(content, list) else []
    return "".join(_text(part.get("text")) for part in parts if isinstance(part, dict))


# --- Forms of a request -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RequestForm:
    """Form of a request that the server accepts."""

    reply_format: ReplyFormat
    # Some chat templates lack this role: the system prompt then begins the user's message.
    has_system: bool = True
    has_temperature: bool = True  # reasoning models take none
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"


def _simpler_format(form: RequestForm) -> RequestForm:
    following = min(_FORMATS.index(form.reply_format) + 1, len(_FORMATS) - 1)
    return replace(form, reply_format=_FORMATS[following])


# Patterns of server errors, and the form that avoids each; the same form if none does.
_CONCESSIONS: tuple[tuple[re.Pattern[str], Callable[[RequestForm], RequestForm]], ...] = (
    (re.compile(r"response.?format|json.?schema|json.?object|grammar"), _simpler_format),
    (re.compile(r"temperature"), lambda form: replace(form, has_temperature=False)),
    (
        re.compile(r"max_completion_tokens"),
        lambda form: replace(form, limit="max_completion_tokens"),
    ),
    (
        re.compile(r"system.{0,3}role|role.{0,20}system|roles must alternate"),
        lambda form: replace(form, has_system=False),
    ),
)
# Groq's: the model wrote something else than the form, which comes with the error.
_MALFORMED = "json_validate_failed"


# --- Clients, checked when they are made ------------------------------------------------------

_OPENAI = "api.openai.com"
_OPENAI_URL = f"https://{_OPENAI}/v1"
_AZURE = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")
_SERVICE = "the chat-completions server"

_ADVICE = {
    400: "check the model's name, max_tokens=, context_window= and reply_format=",
    401: "it wants an API key, or another one; check api_key=",
    403: "the API key may not use this model",
    404: "check the model's name and base_url=, which ends in /v1 with most servers",
    413: "the request is too large; lower context_window= or use shorter chunks",
    422: "check the model's name, max_tokens=, context_window= and reply_format=",
    429: "the rate limit is used up; lower the concurrency or the sample rate",
    503: "it is overloaded or still loading the model; try again later",
}


def _address(base_url: str | None) -> str:
    """The server's address, checked; from the environment where none is given."""
    where = "base_url="
    if base_url is None:
        base_url, where = os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL, "OPENAI_BASE_URL"
    check_address(base_url, where=where)
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    if host.endswith(_AZURE) and not parts.path.startswith("/openai/v1"):
        raise ConfigurationError(
            f"{where}: write Azure's address as https://{host}/openai/v1, without an api-version, "
            "and the deployment's name as the model"
        )
    if parts.query or parts.fragment:
        raise ConfigurationError(
            f"{where}: a judge's address must not hold a query such as ?api-version=; with Azure "
            "it is https://NAME.openai.azure.com/openai/v1"
        )
    return base_url


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
    # The SDK requires a key even if none is sent.
    client: openai.AsyncOpenAI = sdk.AsyncOpenAI(
        **options, api_key="unused", http_client=http_client(sdk, options["timeout"])
    )
    return client


def _own_headers(sdk: Any, host: str, api_key: str | None, *, is_given: bool) -> Mapping[str, Any]:
    """Authorisation headers that replace the SDK's.

    The SDK's variables (OPENAI_API_KEY, organisation, project) are for OpenAI's own address and the
    one in OPENAI_BASE_URL only, not for an address that is given.
    """
    at_openai = host == _OPENAI
    uses_environment = at_openai or not is_given
    key = api_key or (os.environ.get("OPENAI_API_KEY") if uses_environment else None)
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
