"""Any model behind a chat-completions server as the judge: vLLM, Ollama, llama.cpp, LM Studio."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import ConfigurationError, JudgeError
from ragaliq.judges.openai_compatible.control_tokens import defuse, restore
from ragaliq.judges.openai_compatible.loose_replies import read_reply
from ragaliq.judges.pricing import provider_at
from ragaliq.judges.prompted import PromptedJudge
from ragaliq.judges.reply_forms import form_of

if TYPE_CHECKING:
    from ragaliq.judges.openai_compatible.server import ChatServer
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

    async def ask(self, prompt: RenderedPrompt, reply: type[R]) -> tuple[R, JudgeUsage]:
        """Send one request; see `PromptedJudge.ask`.

        Raises:
            JudgeTimeoutError: No reply within the time limit.
            JudgeAPIError: The server refused the request or could not be reached.
            JudgeRefusalError: The model declined, or a content filter withheld its reply.
            JudgeResponseError: The reply is cut off or says nothing that can be used.
        """
        from ragaliq.judges.openai_compatible.errors import stopped_early

        form = self.prompts.render("reply_form", form=form_of(reply)).text
        text = f"{defuse(prompt.text)}\n\n{form}"
        said = await self._server.complete(prompt.system, text, reply)
        usage = said.usage.model_copy(update={"cost_usd": self.price(said.usage)})
        failure = stopped_early(self.model, said.finish_reason, usage, refused=said.refused)
        if failure is not None:
            raise failure
        try:
            return read_reply(restore(said.text), reply, prompt.expected), usage
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
        from ragaliq.judges.openai_compatible.server import ChatServer
    except ModuleNotFoundError as error:
        if error.name != "openai":
            raise
    else:
        return ChatServer
    raise ConfigurationError(
        "OpenAICompatibleJudge needs the openai package: pip install 'ragaliq[openai]'"
    )
