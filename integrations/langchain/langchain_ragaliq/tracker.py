"""Following runs from start to end and handing the finished ones to the monitor.

LangChain delivers the events of one invocation from several threads, sometimes twice, sometimes
never. Only opening and closing a root takes the lock; everything between is a dictionary access.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID
from weakref import WeakSet

from langchain_core.runnables.config import var_child_runnable_config

from langchain_ragaliq.claims import claims_of
from langchain_ragaliq.conclusion import conclude
from langchain_ragaliq.ended import EndedRuns
from langchain_ragaliq.extract import response_id_of
from langchain_ragaliq.overrides import Overrides
from langchain_ragaliq.root_run import RootRun, reason_of
from ragaliq import GuardRejected, Monitor, is_suppressed

__all__ = ["RunTracker", "run_in_force"]

logger = logging.getLogger("ragaliq.langchain")

_SWEEP_SECONDS = 5.0
# What the classes of LangChain's own evaluators end in; their answers are grades.
_EVALUATORS = "EvalChain"
_SOONEST_SECONDS = 0.05


def run_in_force() -> int | None:
    """The run that one without a parent happens in, if any.

    Callbacks passed on by hand inside a LangGraph node start a run without a parent; the
    configuration in force still names the run it happens in.
    """
    config = var_child_runnable_config.get()
    if not config:
        return None
    parent_id = getattr(config.get("callbacks"), "parent_run_id", None)
    return parent_id.int if parent_id is not None else None


class RunTracker:
    """The runs in progress of one handler.

    Args:
        monitor: Gets the finished runs.
        pipeline: Name for every run; by default the run's own name.
        overrides: What the application says about its runs, if anything.
        max_runs: Runs followed at the same time; beyond it the oldest is given up (`evicted`).
        max_age: Seconds after which a run that never ended is given up (`expired`).

    Attributes:
        errors: Events that could not be handled.
        runs: The root of every run in progress. Every event asks, and asks the dictionary itself.
    """

    def __init__(
        self,
        monitor: Monitor,
        *,
        pipeline: str,
        overrides: Overrides | None,
        max_runs: int,
        max_age: float,
    ) -> None:
        self.monitor = monitor
        self.errors = 0
        self._pipeline = pipeline
        self._overrides = overrides
        self._max_runs = max_runs
        self._max_age = max_age
        self._sweep_every = min(_SWEEP_SECONDS, max_age)
        self._claims = claims_of(monitor)
        self._forget_everything()
        _TRACKERS.add(self)

    def __len__(self) -> int:
        return len(self._roots)

    def complain(self, error: Exception) -> None:
        """Count an error, and log the first; its message may quote the application's text."""
        self.errors += 1
        if self.errors == 1:
            logger.warning(
                "an event could not be handled (%s); further errors are counted in `errors`",
                type(error).__name__,
            )

    def root_of(self, run_id: UUID) -> RootRun | None:
        """The root a run belongs to; without a ticket it will not be evaluated."""
        return self.runs.get(run_id.int)

    def evaluated_root(self, run_id: UUID) -> RootRun | None:
        """The root a run belongs to, if it will be evaluated."""
        root = self.runs.get(run_id.int)
        return root if root is not None and root.ticket is not None else None

    def scored_by_guard(self, run_id: UUID, answer: str) -> None:
        """Note an answer that a guard has judged."""
        root = self.evaluated_root(run_id)
        if root is not None:
            root.guarded = (root.guarded or set()) | {answer.strip()}

    def child_started(self, run: int, parent: int | None) -> RootRun | None:
        """Note a run below a known one and return its root; None where there is none."""
        root = self.runs.get(parent)  # type: ignore[arg-type]  # no run has the key None
        if root is None or (root.ticket is not None and is_suppressed()):
            return None
        root.parents[run] = parent
        self.runs[run] = root
        if root.closed:
            self.runs.pop(run, None)  # it ended in another thread just now
            self.leave_out(run)
        elif not root.has_child:
            root.first_child_started()
        return root

    def leave_out(self, run: int) -> None:
        """Take nothing below this run for a root."""
        with self._lock:
            self._ended.add(run)

    def _is_left_out(self, run: int) -> bool:
        with self._lock:
            return run in self._ended

    def root_started(
        self,
        run_id: UUID,
        parent: int | None,
        inputs: Any,
        *,
        name: str | None,
        metadata: Mapping[str, Any] | None,
        tags: Sequence[str] | None,
    ) -> None:
        """Note a chain that is not below a known one.

        Its parent may still be given: inside a traced function, or with callbacks on a sub-chain,
        the parent is somebody we never heard of.
        """
        run = run_id.int
        if run in self.runs:
            return  # the same handler was given in two places
        is_below_left_out = parent is not None and self._is_left_out(parent)
        if is_below_left_out or (name is not None and name.endswith(_EVALUATORS)):
            self.leave_out(run)
            return
        ticket = None
        if self._claims.take(run, self):
            ticket = self.monitor.begin(
                run_id, pipeline=self._pipeline or name or "", framework="langchain"
            )
        # Followed before anything is looked at: should that fail, the run still ends.
        root = RootRun(run_id, ticket, self._overrides)
        with self._lock:
            self._roots[run] = self.runs[run] = root
            is_due = root.started >= self._next_sweep or len(self._roots) > self._max_runs
            given_up = self._overdue(root.started) if is_due else ()
        if not self._is_watched:
            self._watch(self._max_age)
        for reason, old in given_up:
            self._discard(old, reason)
        if ticket is not None:
            root.opened(inputs, metadata or {}, tags or ())

    def root_ended(self, root: RootRun, outputs: Any, inputs: Any, *, is_stream: bool) -> None:
        """Close a root that ended well and submit it, or say why it cannot be evaluated."""
        if not self._close(root) or root.ticket is None:
            return
        try:
            found = conclude(root, outputs, inputs, is_stream=is_stream)
            target = root.target.at_end()
        except BaseException as error:
            # Not only our own: Ctrl-C may come in the middle of the application's `extract`.
            is_ours = isinstance(error, Exception)
            root.ticket.discard("internal_error" if is_ours else "interrupted")
            raise
        if isinstance(found, str):
            root.ticket.discard(found)
        elif root.guarded and found.response.strip() in root.guarded:
            root.ticket.withdraw()
        else:
            root.ticket.submit(
                found,
                target=target,
                session_id=root.session_id,
                response_id=response_id_of(root.replied_last),
            )

    def root_failed(self, root: RootRun, error: BaseException) -> None:
        """Close a root that ended in an error."""
        if not self._close(root) or root.ticket is None:
            return
        if isinstance(error, GuardRejected):
            root.ticket.withdraw()
        else:
            root.ticket.discard(reason_of(error))

    def give_up(self, reason: str) -> None:
        """Close every root: no more events will come."""
        with self._lock:
            roots = [root for root in list(self._roots.values()) if self._close(root)]
        for root in roots:
            self._discard(root, reason)

    def sweep(self) -> None:
        """Give up what is overdue, and come back when more will be; called by a timer."""
        with self._lock:
            self._next_sweep = -math.inf
            given_up = self._overdue(time.monotonic())
            oldest = next(iter(self._roots.values()), None)
            self._is_watched = False  # a run that starts from here on has to ask anew
        for reason, root in given_up:
            self._discard(root, reason)
        if oldest is not None:
            left = self._max_age - (time.monotonic() - oldest.started)
            self._watch(max(left, _SOONEST_SECONDS))

    def restart(self) -> None:
        """Forget everything, in a forked child: what was running runs in the parent."""
        self._forget_everything()

    def _forget_everything(self) -> None:
        # Re-entrant: a stream that is dropped half-read ends its run from the garbage collector,
        # which may run on this thread while it holds the lock.
        self._lock = threading.RLock()
        self._roots: OrderedDict[int, RootRun] = OrderedDict()
        self.runs: dict[int, RootRun] = {}
        self._ended = EndedRuns()
        self._next_sweep = time.monotonic() + self._sweep_every
        self._is_watched = False

    def _watch(self, delay: float) -> None:
        # Runs that never end are given up when another one starts; in a process that has become
        # idle, by the worker.
        self._is_watched = self.monitor.sweep_later(delay, self)

    def _close(self, root: RootRun) -> bool:
        with self._lock:
            # Out of the roots first, in one step: the garbage collector may come in between.
            if root.closed or self._roots.pop(root.key, None) is None:
                return False
            root.closed = True
            self._claims.release(root.key)
            runs = tuple(root.parents)  # a snapshot: steps may start in other threads
            forget = self.runs.pop
            for run in runs:
                forget(run, None)
            self._ended.add_tree(runs)
            return True

    def _overdue(self, now: float) -> list[tuple[str, RootRun]]:
        given_up = []
        is_sweep = now >= self._next_sweep
        if is_sweep:
            self._next_sweep = now + self._sweep_every
        while self._roots:
            oldest = next(iter(self._roots.values()))
            if len(self._roots) > self._max_runs:
                reason = "evicted"
            elif is_sweep and now - oldest.started > self._max_age:
                reason = "expired"
            else:
                break
            if self._close(oldest):
                given_up.append((reason, oldest))
        return given_up

    @staticmethod
    def _discard(root: RootRun, reason: str) -> None:
        if root.ticket is not None:
            root.ticket.discard(reason)


_TRACKERS: WeakSet[RunTracker] = WeakSet()


def _after_fork() -> None:
    for tracker in list(_TRACKERS):
        tracker.restart()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
