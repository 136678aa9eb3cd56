"""What is remembered of one root run while it is running."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from langchain_core.documents import Document

from langchain_ragaliq.extract import output_documents, tool_contexts
from langchain_ragaliq.target import TargetFinder
from ragaliq import ContextChunk, RunTicket

__all__ = ["RootRun"]


class RootRun:
    """One invocation of a chain: its runs so far, and what they retrieved and said.

    A run that is not evaluated has no ticket: it is remembered only so that its children are not
    taken for roots.
    """

    __slots__ = (
        "_order",
        "_retrievers",
        "_sources",
        "custom_contexts",
        "open_models",
        "parents",
        "prompt_context",
        "question",
        "reply",
        "response_id",
        "root_id",
        "session_id",
        "started",
        "steps_with_documents",
        "target",
        "ticket",
    )

    def __init__(self, root_id: UUID, ticket: RunTicket | None) -> None:
        self.root_id = root_id
        self.ticket = ticket
        self.started = time.monotonic()
        # Of a run without a ticket only the keys are used, to forget its children with it.
        self.parents: dict[UUID, UUID | None] = {root_id: None}
        if ticket is None:
            return
        self.question: str | None = None
        self.session_id: str | None = None
        self.target = TargetFinder(root_id)
        self.open_models: set[UUID] = set()
        self.reply: str | None = None
        self.response_id: str | None = None
        self.prompt_context: str | None = None
        self.custom_contexts: list[str] | None = None
        self.steps_with_documents: set[UUID] = set()
        self._retrievers: set[UUID] = set()
        self._sources: dict[UUID, list[ContextChunk]] = {}

    # --- events ---------------------------------------------------------------------------------

    def retriever_started(self, run_id: UUID) -> None:
        """A retriever began; models below it write queries, not answers."""
        self._retrievers.add(run_id)

    def retrieved(self, run_id: UUID, documents: Iterable[Document]) -> None:
        """A retriever ended: its documents replace those of the retrievers inside it."""
        self._replace(run_id, run_id, documents)

    def step_returned_documents(self, run_id: UUID, documents: list[Document]) -> None:
        """A plain step returned documents: a function retriever, a reranker or a fusion.

        A step that was given documents replaces those of the steps before it; any other replaces
        only those from inside itself.
        """
        above = self.parents.get(run_id) if run_id in self.steps_with_documents else run_id
        self._replace(run_id, above or run_id, documents)

    def replied(self, run_id: UUID, reply: str, response_id: str | None) -> None:
        """A model answered; the last reply outside retrievers may be the run's answer."""
        self.open_models.discard(run_id)
        if reply and not any(up in self._retrievers for up in self._ancestors(run_id)):
            self.reply, self.response_id = reply, response_id

    # --- the end --------------------------------------------------------------------------------

    def contexts(self, outputs: Any) -> list[ContextChunk | str]:
        """The documents the answer was made from, by the most telling source there is."""
        if self.custom_contexts is not None:
            return list(self.custom_contexts)
        returned = output_documents(outputs)
        if returned is not None:
            return list(_chunks(returned))
        if self._sources:
            return list(_without_doubles(self._sources.values()))
        from_tools = tool_contexts(outputs)
        if from_tools:
            return list(from_tools)
        return [self.prompt_context] if self.prompt_context else []

    def _replace(self, run_id: UUID, above: UUID, documents: Iterable[Document]) -> None:
        for source in [s for s in self._sources if above in self._ancestors(s)]:
            del self._sources[source]
        # The documents are the application's live objects: a later step may cut them, so their
        # texts are taken now.
        self._sources[run_id] = _chunks(documents)

    def _ancestors(self, run_id: UUID) -> Iterable[UUID]:
        at: UUID | None = run_id
        while at is not None:
            yield at
            at = self.parents.get(at)


def _chunks(documents: Iterable[Document]) -> list[ContextChunk]:
    return [ContextChunk(text=document.page_content, id=document.id) for document in documents]


def _without_doubles(sources: Iterable[list[ContextChunk]]) -> Iterable[ContextChunk]:
    seen: set[str] = set()
    for source in sources:
        for chunk in source:
            if chunk.text not in seen:
                seen.add(chunk.text)
                yield chunk
