"""What retrievers, tools and the application itself report: where the context comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document

from langchain_ragaliq.containment import Contained, contained
from langchain_ragaliq.tracker import RunTracker, run_in_force

__all__ = ["SourceEvents"]

_EVENTS = {
    "ragaliq.question": "question",
    "ragaliq.contexts": "contexts",
    "ragaliq.answer": "answer",
}


class SourceEvents(Contained, BaseCallbackHandler):
    """The events of retrievers and tools, and the event by which an application names contexts."""

    # These two contain their errors themselves, as the events of a chain's steps do.

    def on_retriever_start(
        self,
        serialized: dict[str, Any],
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A retriever was asked."""
        tracker = self._tracker
        if tracker is None:
            return
        try:
            run = run_id.int
            parent = parent_run_id.int if parent_run_id is not None else run_in_force()
            root = tracker.child_started(run, parent)
            if root is None:
                tracker.leave_out(run)  # a chain inside it writes queries, not answers
            elif root.ticket is not None:
                root.retriever_started(run)
        except Exception as error:  # noqa: BLE001 - the application's request must not notice
            tracker.complain(error)

    def on_retriever_end(
        self,
        documents: Sequence[Document],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A retriever returned documents."""
        tracker = self._tracker
        if tracker is None:
            return
        try:
            run = run_id.int
            root = tracker.runs.get(run)
            if root is not None and root.ticket is not None:
                root.sources.retrieved(run, documents)
        except Exception as error:  # noqa: BLE001 - as above
            tracker.complain(error)

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
        parent = parent_run_id.int if parent_run_id is not None else run_in_force()
        tracker.child_started(run_id.int, parent)

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
