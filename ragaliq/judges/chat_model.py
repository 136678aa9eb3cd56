"""A judge that uses the application's own client for a model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import (
    JudgeAPIError,
    JudgeError,
    JudgeTimeoutError,
)
from ragaliq.judges.clients import check_end, refused_request, unlogged
from ragaliq.judges.prompted import PromptedJudge
from ragaliq.judges.vendors import error_in

if TYPE_CHECKING:
    from ragaliq.judges.prompting import PromptSource, RenderedPrompt


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """Reply of a framework's client.

    Attributes:
        text: The model's text, without separate thoughts.
        usage: Its tokens, in any vendor's form; or the reply that contains them. Missing figures
            are unknown, never zero.
        details: The client's data on why the model stopped and whether it refused, in any vendor's
            form.
    """

    text: str
    usage: object = None
    details: object = None


Complete = Callable[[str, str], Awaitable[ModelReply | tuple[str, JudgeUsage]]]
"""Takes the system's and the user's message; gives the reply, or its text and tokens."""


class ChatModelJudge(PromptedJudge):
    """Asks a model through a function, such as a framework's client for it.

        async def complete(system: str, user: str) -> ModelReply: ...

        judge = ChatModelJudge(complete, model="my-model")

    The prompt describes the form of the reply; no model is held to a schema here. Retries and
    timeouts are the client's own.

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
            JudgeRefusalError: The model declined, or a content filter withheld its reply.
            JudgeResponseError: The reply is cut off.
            JudgeAPIError: The client failed in another way.
        """
        failure: JudgeError
        try:
            with unlogged():
                given = await self._complete(prompt.system, self.worded(prompt, reply))
        except JudgeError:
            raise
        except Exception as error:  # noqa: BLE001 - a client may raise anything
            failure = self._failure(error)
        else:
            return self._read(given)
        # Outside the handlers, so that it is not chained: a client's message may quote the request.
        raise failure

    def _failure(self, error: Exception) -> JudgeError:
        kind = type(error).__name__
        if isinstance(error, TimeoutError) or "Timeout" in kind:
            return JudgeTimeoutError(f"{self.model} did not reply in time")
        # The SDKs of OpenAI and Anthropic, which most clients are made of, name both alike.
        status = getattr(error, "status_code", None)
        if isinstance(status, int) and (said := error_in(getattr(error, "body", None), status)):
            return refused_request(said, service="the model's API", model=str(self.model))
        return JudgeAPIError(f"{self.model} could not be asked: {kind}")

    def _read(self, given: ModelReply | tuple[str, JudgeUsage]) -> tuple[str, JudgeUsage]:
        if not isinstance(given, ModelReply):
            text, usage = given
            return text, self.priced(usage)
        usage = self.spent_on(given.usage)
        check_end(
            given.details,
            model=str(self.model),
            usage=usage,
            cut_off="; raise the model's limit of tokens, or use fewer or shorter chunks",
        )
        return given.text, usage
