"""A model that the application has a client for, as the judge."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import JudgeAPIError, JudgeError, JudgeTimeoutError
from ragaliq.judges.openai_compatible import defuse, read_reply, restore
from ragaliq.judges.prompted import PromptedJudge
from ragaliq.judges.wire import form_of

if TYPE_CHECKING:
    from ragaliq.judges.prompting import PromptSource, RenderedPrompt

__all__ = ["ChatModelJudge", "Complete"]

R = TypeVar("R", bound=BaseModel)

Complete = Callable[[str, str], Awaitable[tuple[str, JudgeUsage]]]
"""Takes the system's and the user's message; gives the reply and its tokens."""


class ChatModelJudge(PromptedJudge):
    """Asks a model through a function, such as a framework's client for it.

        async def complete(system: str, user: str) -> tuple[str, JudgeUsage]: ...

        judge = ChatModelJudge(complete, model="my-model")

    The prompt describes the form of the reply, and replies are read tolerantly: no model is held
    to a schema here. Retries and timeouts are the client's own.

    Args:
        complete: Sends one request. It may be called from several threads and event loops.
        model: The model's name.
        prompts: Prompts to use in the place of ours.

    Raises:
        ConfigurationError: A prompt is unknown, unreadable, or lacks a placeholder.
    """

    name = "chat-model"

    def __init__(
        self, complete: Complete, *, model: str, prompts: PromptSource | None = None
    ) -> None:
        super().__init__(prompts=prompts)
        self.model = model
        self._complete = complete

    def __repr__(self) -> str:
        return f"ChatModelJudge(model={self.model!r})"

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
            JudgeTimeoutError: The client gave up waiting.
            JudgeAPIError: The client failed in another way.
            JudgeRefusalError: The model declined.
            JudgeResponseError: The reply says nothing that can be used.
        """
        try:
            text, usage = await self._complete(prompt.system, self.worded(prompt, reply))
        except JudgeError:
            raise
        except TimeoutError as error:
            raise JudgeTimeoutError(f"{self.model} did not reply in time") from error
        except Exception as error:
            # A client's message may quote what it sent.
            raise JudgeAPIError(
                f"{self.model} could not be asked: {type(error).__name__}"
            ) from error
        usage = self.priced(usage)
        try:
            return self.read(text, prompt, reply), usage
        except JudgeError as error:
            error.usage = usage
            raise
