"""Following runs from start to end and handing the finished ones to the monitor.

LangChain delivers the events of one invocation from several threads, sometimes twice, sometimes
never. Only opening and closing a root takes the lock; everything between is a dictionary access.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any
from uuid import UUID
from weakref import WeakSet

from langchain_core.documents import Document
from langchain_core.runnables.config import var_child_runnable_config

from langchain_ragaliq.extract import answer_of, question_of
from langchain_ragaliq.root_run import RootRun
from ragaliq import Monitor, RAGTestCase

__all__ = ["RunTracker"]

CONTEXTS_EVENT = "ragaliq.contexts"
_SESSION_KEYS = ("session_id", "thread_id", "conversation_id")
_SWEEP_SECONDS = 5.0
_REMEMBERED = 4096


class RunTracker:
    """The runs in progress of one handler.

    Args:
        monitor: Gets the finished runs.
        pipeline: Name for every run; by default the run's own name.
        max_runs: Runs followed at the same time; beyond it the oldest is given up (`evicted`).
        max_age: Seconds after which a run that never ended is given up (`expired`).
    """

    def __init__(self, monitor: Monitor, *, pipeline: str, max_runs: int, max_age: float) -> None:
        self.monitor = monitor
        self._pipeline = pipeline
        self._max_runs = max_runs
        self._max_age = max_age
        self._lock = threading.Lock()
        self._roots: OrderedDict[UUID, RootRun] = OrderedDict()
        self._runs: dict[UUID, RootRun] = {}
        self._ended: OrderedDict[UUID, None] = OrderedDict()
        self._swept = time.monotonic()
        _TRACKERS.add(self)

    def __len__(self) -> int:
        return len(self._roots)

    def root_of(self, run_id: UUID) -> RootRun | None:
        """The root a run belongs to, if it is followed and will be evaluated."""
        root = self._runs.get(run_id)
        return root if root is not None and root.ticket is not None else None

    def child_started(self, run_id: UUID, parent_id: UUID | None) -> RootRun | None:
        """Note a run below a known one; returns its root if that will be evaluated."""
        root = self._runs.get(parent_id) if parent_id is not None else None
        if root is None or run_id in root.parents:
            return None
        root.parents[run_id] = parent_id
        self._runs[run_id] = root
        if root.ticket is None:
            return None
        root.target.at_child()
        return root

    def chain_started(
        self,
        run_id: UUID,
        parent_id: UUID | None,
        inputs: Any,
        *,
        name: str | None,
        run_type: str | None,
        metadata: Mapping[str, Any] | None,
    ) -> RootRun | None:
        """Note a chain: below a known run, or as a new root.

        A root is a run whose parent is unknown, not one without a parent: inside a traced function
        or with callbacks on a sub-chain the parent is somebody we never heard of.
        """
        if run_id in self._runs:
            return None  # the same handler was given in two places
        parent_id = parent_id or _enclosing_run()
        if parent_id in self._runs:
            return self.child_started(run_id, parent_id)
        late_child = parent_id is not None and parent_id in self._ended
        if late_child or run_type not in (None, "chain"):
            return None
        ticket = self.monitor.begin(
            str(run_id), pipeline=self._pipeline or name or "", framework="langchain"
        )
        root = RootRun(run_id, ticket)
        if ticket is not None:
            root.question = question_of(inputs)
            root.session_id = _session(metadata)
        with self._lock:
            self._roots[run_id] = root
            self._runs[run_id] = root
            given_up = self._overdue()
        for reason, old in given_up:
            self._discard(old, reason)
        return root

    def root_ended(self, run_id: UUID, outputs: Any, inputs: Any) -> None:
        """Close a root that ended well and submit it, or say why it cannot be evaluated."""
        root = self._close(run_id)
        if root is None or root.ticket is None:
            return
        if root.open_models or outputs is None:
            # A stream that was broken off ends like any other, but before its model does.
            root.ticket.discard("truncated")
        elif isinstance(outputs, Mapping) and "__interrupt__" in outputs:
            root.ticket.discard("interrupted")
        else:
            self._submit(root, outputs, inputs)

    def root_failed(self, run_id: UUID, error: BaseException) -> None:
        """Close a root that ended in an error."""
        root = self._close(run_id)
        if root is not None:
            self._discard(root, _reason(error))

    def is_root(self, run_id: UUID) -> bool:
        """Whether the run is a root in progress."""
        return run_id in self._roots

    def restart(self) -> None:
        """Forget everything, in a forked child: what was running runs in the parent."""
        self._lock = threading.Lock()
        self._roots.clear()
        self._runs.clear()
        self._ended.clear()

    def _submit(self, root: RootRun, outputs: Any, inputs: Any) -> None:
        ticket = root.ticket
        if ticket is None:
            return
        question = root.question or question_of(inputs) or _echoed_question(outputs)
        answer = answer_of(outputs) or _reply(root, outputs)
        if not question:
            ticket.discard("no_question")
        elif not answer:
            ticket.discard("no_answer")
        else:
            ticket.submit(
                RAGTestCase(
                    id=str(root.root_id),
                    query=question,
                    context=_unique_ids(root.contexts(outputs)),
                    response=answer,
                ),
                target=root.target.at_end(),
                session_id=root.session_id,
                response_id=root.response_id,
            )

    def _close(self, run_id: UUID) -> RootRun | None:
        with self._lock:
            root = self._roots.pop(run_id, None)
            if root is not None:
                self._forget(root)
            return root

    def _forget(self, root: RootRun) -> None:
        for run_id in list(root.parents):
            self._runs.pop(run_id, None)
            self._ended[run_id] = None
        while len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)

    def _overdue(self) -> list[tuple[str, RootRun]]:
        given_up = []
        while len(self._roots) > self._max_runs:
            given_up.append(("evicted", self._roots.popitem(last=False)[1]))
        now = time.monotonic()
        if now - self._swept > _SWEEP_SECONDS:
            self._swept = now
            while self._roots:
                oldest = next(iter(self._roots.values()))
                if now - oldest.started <= self._max_age:
                    break
                given_up.append(("expired", self._roots.popitem(last=False)[1]))
        for _, root in given_up:
            self._forget(root)
        return given_up

    @staticmethod
    def _discard(root: RootRun, reason: str) -> None:
        if root.ticket is not None:
            root.ticket.discard(reason)


def _enclosing_run() -> UUID | None:
    # Callbacks passed on by hand inside a LangGraph node start a run without a parent; the
    # configuration in force still names the run it happens in.
    config = var_child_runnable_config.get()
    callbacks = config.get("callbacks") if config else None
    return getattr(callbacks, "parent_run_id", None)


def _session(metadata: Mapping[str, Any] | None) -> str | None:
    for key in _SESSION_KEYS:
        value = metadata.get(key) if metadata else None
        if value is not None:
            return str(value)
    return None


def _echoed_question(outputs: Any) -> str | None:
    return question_of(outputs) if isinstance(outputs, Mapping) else None


def _reply(root: RootRun, outputs: Any) -> str | None:
    # A chain that returns documents only has no answer, even if a model rewrote its query.
    only_documents = isinstance(outputs, list) and any(isinstance(o, Document) for o in outputs)
    return None if only_documents else root.reply


def _reason(error: BaseException) -> str:
    if isinstance(error, GeneratorExit | asyncio.CancelledError):
        return "cancelled"
    if any(cls.__name__ == "GraphBubbleUp" for cls in type(error).__mro__):
        return "interrupted"
    return "errored"


def _unique_ids(context: list[Any]) -> list[Any]:
    ids = [chunk.id for chunk in context if not isinstance(chunk, str)]
    if len(ids) == len(set(ids)) and None not in ids:
        return context
    # Pieces of one document often share its id: then all go by their position.
    return [chunk if isinstance(chunk, str) else chunk.text for chunk in context]


_TRACKERS: WeakSet[RunTracker] = WeakSet()


def _after_fork() -> None:
    for tracker in list(_TRACKERS):
        tracker.restart()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
