"""What models report: when they are at work, and what they reply."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult

from langchain_ragaliq.containment import Contained, contained
from langchain_ragaliq.tracker import RunTracker, run_in_force

__all__ = ["ModelEvents"]


class ModelEvents(Contained, BaseCallbackHandler):
    """The events of chat and completion models; tokens are not listened to."""

    # The two events of every chat contain their errors themselves, as a chain's steps do.

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A chat model was called."""
        tracker = self._tracker
        if tracker is None:
            return
        try:
            run = run_id.int
            parent = parent_run_id.int if parent_run_id is not None else run_in_force()
            root = tracker.child_started(run, parent)
            if root is not None and root.ticket is not None:
                root.open_models.add(run)
        except Exception as error:  # noqa: BLE001 - the application's request must not notice
            tracker.complain(error)

    def on_llm_start(
        self,
        serialized: dict[str, Any],
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A completion model was called."""
        # Not `self.`: an application that adds to the event of chats does not mean completions.
        ModelEvents.on_chat_model_start(
            self, serialized, [], run_id=run_id, parent_run_id=parent_run_id
        )

    def on_llm_end(
        self,
        response: LLMResult,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A model answered."""
        tracker = self._tracker
        if tracker is None:
            return
        try:
            run = run_id.int
            root = tracker.runs.get(run)
            if root is not None and root.ticket is not None:
                root.replied(run, response)
        except Exception as error:  # noqa: BLE001 - as above
            tracker.complain(error)

    @contained
    def on_llm_error(
        self,
        tracker: RunTracker,
        /,
        error: BaseException,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A model failed; a retry or a fallback may still answer."""
        root = tracker.evaluated_root(run_id)
        if root is not None:
            root.open_models.discard(run_id.int)
            root.part_failed(error)
