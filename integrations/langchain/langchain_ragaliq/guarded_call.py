"""One call of a guarded chain, from its first attempt to the answer that goes out."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from langchain_core.runnables.config import RunnableConfig, patch_config

from langchain_ragaliq.documents import output_passages, prompt_passages, turn_passages
from langchain_ragaliq.extract import answer_of, question_of
from langchain_ragaliq.messages import messages_of
from langchain_ragaliq.observing import Observation, note_guarded
from langchain_ragaliq.replacing import annotated, replaced, throughout
from ragaliq import CaseDraft, ConfigurationError, GuardResult

if TYPE_CHECKING:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForChainRun,
        CallbackManagerForChainRun,
    )

    from langchain_ragaliq.guard import RagaliqGuard

__all__ = ["GuardedCall"]


class GuardedCall:
    """What a guard knows of one call.

    Args:
        runnable: The guard.
        value: What it is called with.
        run_manager: The guard's own run.
        config: How it is called.

    Attributes:
        given: The input of the next attempt.
        goes_on: Whether there is to be a next attempt.
        output: What goes out, once there is none.
    """

    def __init__(
        self,
        runnable: RagaliqGuard,
        value: Any,
        run_manager: CallbackManagerForChainRun | AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
    ) -> None:
        self._runnable, self._guard = runnable, runnable.guard
        self._run_manager, self._config = run_manager, config
        self._value = value
        self._attempt = 0
        self._question: str | None = None
        self._observed = Observation(**runnable.handler_options)
        self._result: GuardResult | None = None
        self._step = ""
        self._judged = ""
        self.given = value
        if self._guard.action == "retry" and isinstance(value, Mapping) and not messages_of(value):
            # A prompt that uses it must find it at the first attempt too.
            self.given = {"feedback": "", **value}
        self.goes_on = True
        self.output: Any = None

    def inner_config(self) -> RunnableConfig:
        """The configuration for the next attempt, which is observed."""
        self._observed = Observation(**self._runnable.handler_options)
        callbacks = self._run_manager.get_child()
        if not self._guard.is_off:
            callbacks.add_handler(self._observed.handler)
        return patch_config(self._config, callbacks=callbacks)

    @property
    def origin(self) -> dict[str, Any]:
        """Where the attempt's answer comes from, for `Guard.check`."""
        return {
            "target": self._observed.target,
            "session_id": self._observed.session_id,
            "pipeline": self._runnable.pipeline or self._config.get("run_name") or "",
            "framework": "langchain",
        }

    def case_of(self, output: Any) -> CaseDraft | None:
        """What there is to check of an attempt.

        Raises:
            ConfigurationError: The guard stands at the end of a chain that gives it too little.
        """
        if self._guard.is_off:
            return None
        case = _case_in(output) if self._runnable.chain is None else self._observed.draft
        if case is not None:
            # An attempt that was told more has not been asked another question.
            self._question = self._question or case.query
            case = dataclasses.replace(case, query=self._question)
            self._judged = case.response
        return case

    @property
    def returned(self) -> Any:
        """What the attempt returned, where the caller gets it in pieces."""
        return self._observed.handler.returned

    def judged(self, output: Any, result: GuardResult | None) -> None:
        """Do with an attempt's answer what the guard says.

        Raises:
            GuardRejected: It must not go out.
        """
        self._result = result
        if result is None:
            self.output, self.goes_on = output, False
            return
        self._step = self._guard.step(result, attempt=self._attempt)
        if self._step == "retry":
            self._attempt += 1
            answer = answer_of(output) or self._judged
            self.given = self._runnable.feed_back(self._value, answer, self._guard.feedback(result))
            return
        self.goes_on = False
        # A list of updates is no conversation: its shape is kept as that of a stream is.
        self.output = self._decided(output) if answer_of(output) else self.piece(output)
        note_guarded(
            self._run_manager.handlers, self._run_manager.run_id, answer_of(self.output) or ""
        )

    def piece(self, piece: Any) -> Any:
        """A piece of the attempt's stream as it may go out."""
        if self._result is None or self._step == "pass":
            return piece
        return throughout(piece, self._judged, self._decided)

    def _decided(self, output: Any) -> Any:
        if self._result is None:
            return output
        if self._step == "fallback":
            return replaced(output, self._guard.fallback(self._result))
        if self._step == "annotate":
            return annotated(output, self._guard.note(self._result), self._result.summary)
        return output


def _case_in(output: Any) -> CaseDraft | None:
    answer = answer_of(output)
    passages = output_passages(output)
    if passages is None:
        passages = prompt_passages(output) or None
    if passages is None and messages_of(output):
        passages = turn_passages(output)
    if passages is None:
        raise ConfigurationError(
            "RagaliqGuard at the end of a chain needs question, context and answer in what it is "
            f"given, and got {type(output).__name__} without a context; wrap the chain instead: "
            "RagaliqGuard(chain)"
        )
    if not answer:
        return None
    question = question_of(output) or ""
    return CaseDraft(id=uuid4().hex, query=question, passages=passages, response=answer)
