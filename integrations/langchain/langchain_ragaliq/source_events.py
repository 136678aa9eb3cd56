"""What retrievers, tools and the application itself report: where the context comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document

from langchain_ragaliq.containment import Contained, contained
from langchain_ragaliq.tracker import RunTracker

__all__ = ["SourceEvents"]

_EVENTS = {
    "ragaliq.question": "question",
    "ragaliq.contexts": "contexts",
    "ragaliq.answer": "answer",
}


class SourceEvents(Contained, BaseCallbackHandler):
    """The events of retrievers and tools, and the event by which an application names contexts."""

    @contained
    def on_retriever_start(
        self,
        tracker: RunTracker,
        /,
        serialized: dict[str, Any],
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A retriever was asked."""
        root = tracker.child_started(run_id, parent_run_id)
        if root is None:
            tracker.leave_out(run_id)  # a chain inside it writes queries, not answers
        elif root.ticket is not None:
            root.retriever_started(run_id.int)

    @contained
    def on_retriever_end(
        self,
        tracker: RunTracker,
        /,
        documents: Sequence[Document],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A retriever returned documents."""
        root = tracker.evaluated_root(run_id)
        if root is not None:
            root.sources.retrieved(run_id.int, documents)

    @contained
    def on_retriever_error(
        self,
        tracker: RunTracker,
        /,
        error: BaseException,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A retriever failed; the application may go on without it."""
        root = tracker.evaluated_root(run_id)
        if root is not None:
            root.part_failed(error)

    @contained
    def on_tool_start(
        self,
        tracker: RunTracker,
        /,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A tool was called."""
        tracker.child_started(run_id, parent_run_id)

    @contained
    def on_tool_end(
        self,
        tracker: RunTracker,
        /,
        output: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A tool answered."""
        root = tracker.evaluated_root(run_id)
        if root is not None:
            root.tool_ended(run_id.int, output)

    @contained
    def on_tool_error(
        self,
        tracker: RunTracker,
        /,
        error: BaseException,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A tool failed: the model is told so, not what was fetched until then."""
        root = tracker.evaluated_root(run_id)
        if root is not None:
            root.sources.failed(run_id.int)
            root.part_failed(error)

    @contained
    def on_custom_event(
        self, tracker: RunTracker, /, name: str, data: Any, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """`dispatch_custom_event("ragaliq.contexts", {"contexts": [...]})` names the context.

        Likewise `ragaliq.question` and `ragaliq.answer`.
        """
        what = _EVENTS.get(name)
        root = tracker.evaluated_root(run_id) if what is not None else None
        if root is not None and what is not None:
            root.told(what, data.get(what) if isinstance(data, Mapping) else data)
