"""What models report: when they are at work, and what they reply."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult

from langchain_ragaliq.containment import Contained, contained
from langchain_ragaliq.tracker import RunTracker

__all__ = ["ModelEvents"]


class ModelEvents(Contained, BaseCallbackHandler):
    """The events of chat and completion models; tokens are not listened to."""

    @contained
    def on_chat_model_start(
        self,
        tracker: RunTracker,
        /,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A chat model was called."""
        _started(tracker, run_id, parent_run_id)

    @contained
    def on_llm_start(
        self,
        tracker: RunTracker,
        /,
        serialized: dict[str, Any],
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A completion model was called."""
        _started(tracker, run_id, parent_run_id)

    @contained
    def on_llm_end(
        self,
        tracker: RunTracker,
        /,
        response: LLMResult,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A model answered."""
        root = tracker.evaluated_root(run_id)
        if root is not None:
            root.replied(run_id.int, response)

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


def _started(tracker: RunTracker, run_id: UUID, parent_run_id: UUID | None) -> None:
    root = tracker.child_started(run_id, parent_run_id)
    if root is not None and root.ticket is not None:
        root.open_models.add(run_id.int)
