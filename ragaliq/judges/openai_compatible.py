"""Any model behind a chat-completions server as the judge: vLLM, Ollama, llama.cpp, LM Studio."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import ConfigurationError, JudgeError, JudgeResponseError
from ragaliq.judges.parsing import parse_json_reply, parse_verdicts
from ragaliq.judges.pricing import provider_at
from ragaliq.judges.prompted import PromptedJudge
from ragaliq.judges.wire import (
    ClaimsReply,
    GradedReply,
    ScoreReply,
    VerdictsReply,
    claim_id,
    form_of,
    reply_fields,
)

if TYPE_CHECKING:
    from ragaliq.judges.openai_server import ChatServer
    from ragaliq.judges.prompting import PromptSource, RenderedPrompt

__all__ = ["OpenAICompatibleJudge"]


R = TypeVar("R", bound=BaseModel)

_SMALLEST_WINDOW = 2048


class OpenAICompatibleJudge(PromptedJudge):
    """Asks a model through the chat-completions protocol.

    Such servers take different requests and hold a model to a JSON schema or do not. The judge asks
    for JSON in the strictest way the server takes, which it finds out with its first request,
    describes the form in the prompt as well, and reads replies tolerantly. Control tokens of chat
    templates, such as `<|im_start|>`, reach the model as text and not as tokens.

    One judge may be used from several event loops and threads at once. Requests are repeated by the
    SDK alone (408, 409, 429, 5xx, lost connections, timeouts), `max_retries` times.

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
        if not model or not isinstance(model, str):
            raise ConfigurationError("OpenAICompatibleJudge: model must name a model")
        if max_tokens is not None and max_tokens < 1:
            raise ConfigurationError(
                f"OpenAICompatibleJudge: max_tokens must be positive, got {max_tokens}"
            )
        self.model = model
        self._divide(context_window)
        self._server: ChatServer = _load_sdk()(
            base_url=base_url,
            api_key=api_key,
            model=model,
            timeout=timeout,
            max_retries=max_retries,
            temperature=temperature,
            max_tokens=max_tokens,
        )
        self.provider = provider_at(base_url)

    def __repr__(self) -> str:
        return f"OpenAICompatibleJudge(model={self.model!r})"

    async def aclose(self) -> None:
        """Close the connections of the running event loop; not needed where the loop ends."""
        await self._server.aclose()

    def price(self, usage: JudgeUsage) -> float | None:
        """The list price of one request in US dollars; None for a server of your own."""
        # A price found by the model's name alone would be what somebody else asks for it.
        return None if self.provider is None else super().price(usage)

    def worded(self, prompt: RenderedPrompt, reply: type[BaseModel]) -> str:
        """The text of the request with the form of the reply in words."""
        form = self.prompts.render("reply_form", form=form_of(reply)).text
        return f"{defuse(prompt.text)}\n\n{form}"

    def read(self, text: str, prompt: RenderedPrompt, reply: type[R]) -> R:
        """Read what the model said, in whatever form it said it."""
        return read_reply(restore(text), reply, prompt.expected)

    async def ask(self, prompt: RenderedPrompt, reply: type[R]) -> tuple[R, JudgeUsage]:
        """Send one request; see `PromptedJudge.ask`.

        Raises:
            JudgeTimeoutError: No reply within the time limit.
            JudgeAPIError: The server refused the request or could not be reached.
            JudgeRefusalError: The model declined, or a content filter withheld its reply.
            JudgeResponseError: The reply is cut off or says nothing that can be used.
        """
        from ragaliq.judges.openai_server import stopped_early

        said = await self._server.complete(prompt.system, self.worded(prompt, reply), reply)
        usage = said.usage.model_copy(update={"cost_usd": self.price(said.usage)})
        failure = stopped_early(self.model, said.finish_reason, usage, refused=said.refused)
        if failure is not None:
            raise failure
        try:
            return self.read(said.text, prompt, reply), usage
        except JudgeError as error:
            error.usage = usage
            raise

    def _divide(self, window: int) -> None:
        """Share out the context window, at three characters a token.

        Half of it goes to the context. In a quarter of it fits an answer, or the verdicts on the
        claims, at some hundred tokens each; the prompts take the rest.
        """
        if window < _SMALLEST_WINDOW:
            raise ConfigurationError(
                f"OpenAICompatibleJudge: context_window must be at least {_SMALLEST_WINDOW} "
                f"tokens, got {window}"
            )
        self.max_context_chars = window // 2 * 3
        self.max_answer_chars = window // 4 * 3
        self.max_claims = window // 4 // 120


def _load_sdk() -> type[ChatServer]:
    # Not when this module is loaded: `from ragaliq import *` must work without the extra.
    try:
        from ragaliq.judges.openai_server import ChatServer
    except ModuleNotFoundError as error:
        if error.name != "openai":
            raise
    else:
        return ChatServer
    raise ConfigurationError(
        "OpenAICompatibleJudge needs the openai package: pip install 'ragaliq[openai]'"
    )


# --- Replies of models that could not be held to the form they were asked for -----------------


def read_reply(text: str, reply: type[R], expected: int | None = None) -> R:
    """Read a reply, in its own form or in another that says the same.

    Args:
        text: What the model said.
        reply: The form it was asked for.
        expected: How many verdicts it was asked for, where that is known.

    Raises:
        JudgeRefusalError: The model declined.
        JudgeResponseError: The reply says nothing that can be used.
    """
    if issubclass(reply, ScoreReply):
        return reply.model_validate(parse_json_reply(text, _LooseScore).model_dump())
    if issubclass(reply, ClaimsReply):
        return reply.model_validate(parse_json_reply(text, _LooseClaims).model_dump())
    failure: JudgeError
    try:
        return parse_json_reply(text, reply)
    except JudgeError as error:
        failure = error
    if issubclass(reply, VerdictsReply):
        return reply.model_validate({"verdicts": _verdicts(text, expected or 0)})
    if issubclass(reply, GradedReply) and (statements := _statements(text)):
        return reply.model_validate({"statements": statements})
    raise failure


class _Loose(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _LooseScore(_Loose):
    # Another scale, such as 8 of 10, must not pass for a 1.
    score: float = Field(ge=0.0, le=1.0, allow_inf_nan=False)
    reasoning: str = ""


def _only_text(item: Any) -> Any:
    """The text of `{"claim": "..."}` and the like."""
    if not isinstance(item, dict):
        return item
    texts = [value for value in item.values() if isinstance(value, str)]
    return texts[0] if len(texts) == 1 else item


class _LooseClaims(_Loose):
    claims: Sequence[Annotated[str, BeforeValidator(_only_text)]]


def _verdicts(text: str, expected: int) -> list[dict[str, Any]]:
    return [
        {"claim_id": claim_id(verdict.index or 0), **reply_fields(verdict)}
        for verdict in parse_verdicts(text, expected)
    ]


def _statements(text: str) -> list[dict[str, Any]]:
    try:
        found = parse_verdicts(text, 0)
    except JudgeResponseError:
        return []
    return [
        {"statement": verdict.statement, **reply_fields(verdict)}
        for verdict in found
        if verdict.statement.strip()
    ]


# --- Control tokens ---------------------------------------------------------------------------

_JOINER = "\u2060"  # WORD JOINER: no width, no space, no line break
_OPENING = re.compile(
    # ChatML, Llama 3 and later, Phi, GLM, Command, gpt-oss; Gemma 4 leaves out one of the bars
    r"<(?=\|[^\s<>|]{1,64}\|?>|[^\s<>|]{1,64}\|>"
    # DeepSeek
    r"|｜[^\s<>｜]{1,64}｜>"
    # Gemma and the ends of texts; <s> and </s> open no turn, and are HTML
    r"|(?:start_of_turn|end_of_turn|bos|eos)>|<SYS>>|</SYS>>)"
    # Mistral and Llama 2; EXAONE
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS)\]"
    r"|\|[^\s\[\]|]{1,64}\|\])"
)
_DEFUSED = re.compile(f"(?<=[<\\[]){_JOINER}")


def defuse(text: str) -> str:
    """A text in which no control token of a chat template is left; others stay as they are."""
    return _OPENING.sub(rf"\g<0>{_JOINER}", text)


def restore(text: str) -> str:
    """A reply that quotes a defused text, as if it quoted the original."""
    return _DEFUSED.sub("", text)
