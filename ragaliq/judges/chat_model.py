"""A model that the application has a client for, as the judge."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from pydantic import BaseModel

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import JudgeAPIError, JudgeError, JudgeTimeoutError
from ragaliq.judges.prompted import PromptedJudge

if TYPE_CHECKING:
    from ragaliq.judges.prompting import PromptSource, RenderedPrompt

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
    keeps_form = False

    def __init__(
        self, complete: Complete, *, model: str, prompts: PromptSource | None = None
    ) -> None:
        super().__init__(prompts=prompts)
        self.model = model
        self._complete = complete

    async def complete(
        self, prompt: RenderedPrompt, reply: type[BaseModel]
    ) -> tuple[str, JudgeUsage]:
        """Send one request.

        Raises:
            JudgeTimeoutError: The client gave up waiting.
            JudgeAPIError: The client failed in another way.
        """
        failure: JudgeError
        try:
            text, usage = await self._complete(prompt.system, self.worded(prompt, reply))
        except JudgeError:
            raise
        except TimeoutError:
            failure = JudgeTimeoutError(f"{self.model} did not reply in time")
        except Exception as error:  # noqa: BLE001 - a client may raise anything
            failure = JudgeAPIError(f"{self.model} could not be asked: {type(error).__name__}")
        else:
            return text, self.priced(usage)
        # Outside the handlers: a client's message may quote what it sent.
        raise failure
