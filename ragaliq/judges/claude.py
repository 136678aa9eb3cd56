"""Claude as the judge. Loading this module loads the SDK."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import anthropic
from anthropic.types import OutputConfigParam, TextBlockParam
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from pydantic import BaseModel
from typing_extensions import TypeIs

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import (
    ConfigurationError,
    JudgeAPIError,
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
from ragaliq.judges.pricing import ONE_TOKEN
from ragaliq.judges.prompted import PromptedJudge
from ragaliq.judges.vendors import error_in

if TYPE_CHECKING:
    from ragaliq.judges.prompting import PromptSource, RenderedPrompt

DEFAULT_JUDGE_MODEL = "claude-sonnet-5-5"
"""The current Sonnet."""


class ClaudeJudge(PromptedJudge):
    """Asks Claude, with replies held to a JSON schema.

    One judge may be used from several event loops and threads at once. Requests are repeated by
    the SDK alone (429, 5xx, lost connections, timeouts), `max_retries` times. Redirects to another
    address are not followed.

    Args:
        model: The model that judges.
        api_key: The API key; when None, whatever the SDK finds (ANTHROPIC_API_KEY,
            ANTHROPIC_AUTH_TOKEN, a profile, a workload identity).
        base_url: Where the API is; when None, ANTHROPIC_BASE_URL or Anthropic's own.
        client: Your own asynchronous client, used as it is and never closed here. Keep it to
            the event loop it was first used on.
        timeout: Seconds to wait for the reply to one request.
        max_tokens: The most a reply may have, in tokens; the model's thinking counts.
        max_retries: How often the SDK repeats a failed request; when None, its own default.
        prompts: Prompts to use in the place of ours: name to text or `pathlib.Path`, or a
            `pathlib.Path` to a folder.

    Raises:
        ConfigurationError: There is no API key, a prompt is wrong, or settings exclude each other.
    """

    name = "claude"
    model: str
    provider = "anthropic"
    caches_context = True
    # Well below the context window of current models, at four characters a token or worse.
    max_context_chars = 300_000
    max_answer_chars = 24_000
    # A verdict takes some hundred tokens of the reply, and the model's thinking counts too.
    max_claims = 40

    def __init__(
        self,
        model: str = DEFAULT_JUDGE_MODEL,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        client: anthropic.AsyncAnthropic | None = None,
        timeout: float = 60.0,
        max_tokens: int = 16_000,
        max_retries: int | None = None,
        prompts: PromptSource | None = None,
    ) -> None:
        super().__init__(prompts=prompts)
        check_model(model, max_tokens, whose="ClaudeJudge")
        self.model = model
        self._max_tokens = max_tokens
        self._given = client
        if client is not None:
            if not hasattr(client, "messages") or isinstance(client, anthropic.Anthropic):
                raise ConfigurationError(
                    "ClaudeJudge: client must be an asynchronous Anthropic client, "
                    f"got {type(client).__name__}"
                )
            if any(setting is not None for setting in (api_key, base_url, max_retries)):
                raise ConfigurationError(
                    "ClaudeJudge: api_key, base_url and max_retries belong to the client; "
                    "set them there, or do not pass client="
                )
            _check_client(client)
            return
        if base_url is not None:
            check_address(base_url, where="base_url=")
        options: dict[str, Any] = {"api_key": api_key, "base_url": base_url, "timeout": timeout}
        if max_retries is not None:
            options["max_retries"] = max_retries
        build = functools.partial(_build_client, options)
        first = build()
        _check_client(first)
        self._clients = LoopClients(build, first)

    async def aclose(self) -> None:
        """Close the connections of the running event loop; not needed where the loop ends."""
        if self._given is None:
            await self._clients.aclose()

    async def complete(
        self, prompt: RenderedPrompt, reply: type[BaseModel]
    ) -> tuple[str, JudgeUsage]:
        """Send one request.

        Raises:
            JudgeTimeoutError: No reply within the time limit.
            JudgeAPIError: The API refused the request, broke its reply off or could not be reached.
            JudgeRefusalError: The model declined.
            JudgeResponseError: The reply is cut off.
        """
        message = await self._send(prompt, reply)
        usage = self.spent_on(message["usage"])
        cut_off = f" at max_tokens={self._max_tokens}; raise it or ask about fewer claims"
        if message.get("stop_reason") == "model_context_window_exceeded":
            cut_off = " where the model's context window ended; use fewer or shorter chunks"
        check_end(message, model=self.model, usage=usage, cut_off=cut_off)
        # Other blocks, such as the model's thinking, have no text.
        parts = (block.get("text") for block in message["content"] if isinstance(block, dict))
        return "".join(part for part in parts if isinstance(part, str)), usage

    @property
    def is_unpriced(self) -> bool:
        """True if the model is not in the list of prices: Anthropic's replies name none."""
        return self.price(ONE_TOKEN) is None

    async def _client(self) -> anthropic.AsyncAnthropic:
        return self._given or await self._clients.get()

    async def _send(self, prompt: RenderedPrompt, reply: type[BaseModel]) -> dict[str, Any]:
        client = await self._client()
        failure: JudgeError
        try:
            # Not `messages.create`: building its types takes a third of the time of a request, and
            # only a few fields are needed.
            with unlogged():
                message = await client.post(
                    "/v1/messages", body=dict(self._params(prompt, reply)), cast_to=object
                )
        except anthropic.AnthropicError as error:
            failure = request_failed(error, self.model, client.timeout)
        except (ValueError, RecursionError):
            failure = JudgeResponseError("the Claude API's reply is not JSON; check base_url=")
        else:
            if is_complete(message):
                return message
            if said := error_in(message):
                failure = refused_request(said, service=_SERVICE, model=self.model, advice=_ADVICE)
            else:
                failure = JudgeResponseError(
                    "the Claude API's reply is not a message; check base_url="
                )
        # Raised outside the handlers: the SDK's error holds request and reply.
        raise failure

    def _params(
        self, prompt: RenderedPrompt, reply: type[BaseModel]
    ) -> MessageCreateParamsNonStreaming:
        content: list[TextBlockParam] = [{"type": "text", "text": prompt.request}]
        if prompt.shared:
            shared: TextBlockParam = {"type": "text", "text": prompt.shared}
            if self.caches_context:
                shared["cache_control"] = {"type": "ephemeral"}
            content.insert(0, shared)
        output: OutputConfigParam = {"format": {"type": "json_schema", "schema": _schema(reply)}}
        return {
            "model": self.model,
            "max_tokens": self._max_tokens,
            "system": prompt.system,
            "messages": [{"role": "user", "content": content}],
            "output_config": output,
        }


@functools.cache
def _schema(reply: type[BaseModel]) -> dict[str, Any]:
    return anthropic.transform_schema(reply)


def is_complete(message: object) -> TypeIs[dict[str, Any]]:
    """Check for the form of the API's reply; something else may answer at base_url."""
    return (
        isinstance(message, dict)
        and isinstance(message.get("content"), list)
        and isinstance(message.get("usage"), dict)
    )


def _build_client(options: dict[str, Any]) -> anthropic.AsyncAnthropic:
    direct = http_client(anthropic, options["timeout"])
    try:
        return anthropic.AsyncAnthropic(**options, http_client=direct)
    except (anthropic.AnthropicError, ValueError, TypeError) as error:
        raise ConfigurationError(
            f"cannot set up the Claude client: {error} "
            "(ANTHROPIC_API_KEY or api_key= is all that is needed)"
        ) from None


def _check_client(client: anthropic.AsyncAnthropic) -> None:
    """Refuse a client that cannot make requests, before the first one."""
    check_address(str(client.base_url), where="base_url= or ANTHROPIC_BASE_URL")
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
        raise ConfigurationError(
            "no API key for Claude: set ANTHROPIC_API_KEY, or in Python ClaudeJudge(api_key=...)"
        )


_SERVICE = "the Claude API"
_ADVICE = {
    400: "check the model's name, max_tokens= and the size of the context",
    401: "the API key is not valid; check ANTHROPIC_API_KEY or api_key=",
    403: "the API key may not use this model",
    404: "check the model's name, base_url= and, for a batch, the workspace of the key",
    413: "the request is too large; use fewer or shorter chunks",
    429: "the rate limit is used up; lower the concurrency or the sample rate",
    529: "the API is overloaded; try again later",
}


def request_failed(error: anthropic.AnthropicError, model: str, timeout: object) -> JudgeError:
    """Error for a request without a reply, after the SDK's own retries."""
    if isinstance(error, anthropic.CredentialsError):
        return JudgeAPIError("the credentials for the Claude API cannot be loaded")
    return request_error(
        error,
        sdk=anthropic,
        service=_SERVICE,
        model=model,
        timeout=timeout,
        advice=_ADVICE,
    )
