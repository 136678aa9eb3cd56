"""What is remembered of one root run while it is running."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_core.outputs import LLMResult
from langchain_core.runnables.config import var_child_runnable_config

from langchain_ragaliq.documents import documents_of, prompt_passages, tool_passages
from langchain_ragaliq.extract import question_of
from langchain_ragaliq.overrides import Facts, Overrides
from langchain_ragaliq.sources import Sources
from langchain_ragaliq.target import TargetFinder
from ragaliq import OpenRun, Passage

__all__ = ["RootRun", "reason_of"]


def reason_of(error: BaseException) -> str:
    """Why a run that ended in an error is incomplete."""
    if _is_stopped(error):
        return "cancelled"
    return "interrupted" if _is_interrupt(error) else "errored"


def _is_interrupt(error: BaseException) -> bool:
    """Whether LangGraph stopped a run to resume it later, say when a human has agreed."""
    return any(cls.__name__ == "GraphInterrupt" for cls in type(error).__mro__)


def _is_control_flow(error: BaseException) -> bool:
    # What LangGraph raises to get out of a node: interrupts, and commands to the graph around it.
    return any(cls.__name__ == "GraphBubbleUp" for cls in type(error).__mro__)


def _is_stopped(error: BaseException) -> bool:
    """Whether somebody lost interest, rather than something having failed."""
    return isinstance(error, GeneratorExit | asyncio.CancelledError)


def _artifact(output: Any) -> Any:
    return getattr(output, "artifact", None)


class RootRun:
    """One invocation of a chain: its steps so far, and what they retrieved and said.

    A run that is not evaluated has no ticket and little else: it is remembered only so that its
    children are not taken for roots. Runs go by the integer of their id, which a dictionary finds
    several times faster than a `UUID`; `name` is the id as text.
    """

    __slots__ = (
        "_retrievers",
        "closed",
        "guarded",
        "had_errors",
        "has_child",
        "inputs",
        "is_interrupted",
        "is_resumable",
        "key",
        "keyed_passages",
        "name",
        "open_models",
        "open_steps",
        "overrides",
        "parents",
        "prompt_passages",
        "prompt_question",
        "question",
        "replied_last",
        "said",
        "session_id",
        "sources",
        "started",
        "tags",
        "target",
        "ticket",
        "tool_texts",
    )

    def __init__(
        self,
        run_id: UUID,
        ticket: OpenRun | None,
        overrides: Overrides | None = None,
    ) -> None:
        self.key = run_id.int
        self.ticket = ticket
        self.closed = False
        self.started = time.monotonic()
        self.parents: dict[int, int | None] = {self.key: None}
        self.has_child = ticket is None  # of a run that is not evaluated nothing is looked at
        if ticket is None:
            return
        self.name = ticket.run_id
        self.guarded: set[str] | None = None
        self.question: str | None = None
        self.session_id: str | None = None
        self.is_resumable = False
        self.is_interrupted = False
        self.had_errors = False
        self.tags: Sequence[str] = ()
        self.target = TargetFinder(run_id)
        self.sources = Sources(self.parents)
        self.open_models: set[int] = set()
        self.open_steps: set[int] = set()
        self.replied_last: LLMResult | None = None
        self.prompt_passages: list[Passage] = []
        self.prompt_question: str | None = None
        self.keyed_passages: list[Passage] | None = None
        self.tool_texts: set[str] = set()
        self.overrides = overrides
        self.said: Facts | None = None
        self.inputs: Any = None
        self._retrievers: set[int] = set()

    def opened(self, inputs: Any, metadata: Mapping[str, Any], tags: Sequence[str]) -> None:
        """The run began: keep what can be known at once."""
        self.tags = tags
        self.target.at_start()
        overrides = self.overrides
        if overrides is None:
            self.question = question_of(inputs)
        else:
            self.question = overrides.question(inputs) or question_of(inputs)
            self.keyed_passages = overrides.passages(inputs)
            if overrides.extract is not None:
                self.inputs = inputs
        if metadata:
            self.known_by(metadata)

    def known_by(self, names: Mapping[str, Any]) -> None:
        """Find the conversation's name among metadata or configurable values."""
        thread_id = names.get("thread_id")
        self.is_resumable = self.is_resumable or thread_id is not None
        for found in (names.get("session_id"), thread_id, names.get("conversation_id")):
            if self.session_id is None and found is not None:
                self.session_id = str(found)

    def first_child_started(self) -> None:
        """Something below the root began; in its context more can be seen than in the root's."""
        self.has_child = True
        self.target.at_child()
        config = var_child_runnable_config.get()
        configurable = config.get("configurable") if config else None
        if configurable:
            self.known_by(configurable)

    def step_started(self, run: int, parent: int | None, inputs: Any, run_type: str | None) -> None:
        """A step of the chain began."""
        if parent == self.key:
            self.open_steps.add(run)
        if run_type == "prompt":
            if self.overrides is not None and self.keyed_passages is None:
                self.keyed_passages = self.overrides.passages(inputs)
            self.prompt_passages = prompt_passages(inputs) or self.prompt_passages
            if self.question is None and self.prompt_question is None:
                self.prompt_question = question_of(inputs)
        elif type(inputs) is not str:
            self.sources.given(run, inputs)

    def step_ended(self, run: int, outputs: Any, tags: Iterable[str] | None) -> None:
        """A step of the chain returned."""
        self.open_steps.discard(run)
        self.sources.returned(run, outputs, tags)

    def step_failed(self, run: int, error: BaseException) -> None:
        """A step of the chain raised; a retry or a fallback may still answer."""
        self.open_steps.discard(run)
        self.sources.failed(run)
        self.is_interrupted = self.is_interrupted or _is_interrupt(error)
        self.part_failed(error)

    def part_failed(self, error: BaseException) -> None:
        """Something below the root raised."""
        if not _is_stopped(error) and not _is_control_flow(error):
            self.had_errors = True

    def retriever_started(self, run: int) -> None:
        """A retriever began; models below it write queries, not answers."""
        self._retrievers.add(run)

    def tool_ended(self, run: int, output: Any) -> None:
        """A tool answered."""
        if getattr(output, "status", None) == "error":
            # The model is told so, not what was fetched until then.
            self.had_errors = True
            self.sources.failed(run)
        else:
            passages = tool_passages(output)
            is_held = self.sources.told(run, passages)
            if is_held and len(passages) == 1 and not documents_of(_artifact(output)):
                self.tool_texts.add(passages[0].text.strip())

    def told(self, what: str, value: Any) -> None:
        """The application itself named its question, contexts or answer."""
        if self.said is None:
            self.said = Facts()
        self.said.name(what, value)

    def replied(self, run: int, result: LLMResult) -> None:
        """A model answered; the last reply outside retrievers may be the run's answer."""
        self.open_models.discard(run)
        if not self._is_below_retriever(run):
            self.replied_last = result

    def _is_below_retriever(self, run: int) -> bool:
        at: int | None = run
        while at is not None and at not in self._retrievers:
            at = self.parents.get(at)
        return at is not None
