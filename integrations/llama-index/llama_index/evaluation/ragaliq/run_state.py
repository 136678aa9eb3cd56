"""The runs and spans in progress, bounded in number and age."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from llama_index.evaluation.ragaliq.scope import Frame, Scope

if TYPE_CHECKING:
    from ragaliq import OpenRun, SpanTarget

__all__ = ["Run", "RunRegistry", "Written"]

_FRAMES_PER_RUN = 100
_SOONEST_SECONDS = 0.05


class Written(NamedTuple):
    """A chat stream that has been read to its end, or failed."""

    stream: object
    answer: str = ""
    failure: str = ""


class Run:
    """One captured run, from its root span's start to its end.

    Attributes:
        id: The root span's id.
        inputs: What it was called with, kept for the application's own function only.
        outputs: What it returned, likewise.
        ticket: The monitor's hold on it.
        scope: The root's own findings.
        question: What the user asked.
        guarded: Answers that guards have scored.
        is_open: Whether the root span has not ended yet.
        started_at: When it was opened, on the registry's clock.
        session_id: The conversation, when the application names it.
        target: The span to link to, when one was found.
        tags: Labels the application gave it.
        had_errors: Whether something in it failed.
        stream: The chat stream whose end brings the answer, once the root has returned it.
        written: The last chat stream that was read.
    """

    __slots__ = (
        "guarded",
        "had_errors",
        "id",
        "inputs",
        "is_open",
        "outputs",
        "question",
        "scope",
        "session_id",
        "started_at",
        "stream",
        "tags",
        "target",
        "ticket",
        "written",
    )

    def __init__(self, run_id: str, ticket: OpenRun, *, is_workflow: bool) -> None:
        self.id = run_id
        self.ticket = ticket
        self.scope = Scope(is_workflow=is_workflow)
        self.started_at = 0.0
        self.guarded: set[str] | None = None
        self.is_open = True
        self.question = ""
        self.inputs: Mapping[str, Any] = {}
        self.outputs: Any = None
        self.session_id: str | None = None
        self.target: SpanTarget | None = None
        self.tags: tuple[str, ...] = ()
        self.had_errors = False
        self.stream: object | None = None
        self.written: Written | None = None


class RunRegistry:
    """The spans and runs in progress, bounded in number and age.

    Single look-ups in `frames` need no lock. The lock is re-entrant since a stream that is dropped
    ends its run from the garbage collector, which may run anywhere.

    Args:
        max_runs: Captured runs kept; beyond, the oldest is given up.
        max_age: Seconds after which a run is given up.
        sweep_later: Has this swept in so many seconds, or sooner, on another thread; False if it
            cannot.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        *,
        max_runs: int,
        max_age: float,
        sweep_later: Callable[[float, RunRegistry], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.frames: dict[str, Frame] = {}
        self._max_runs = max_runs
        self._max_age = max_age
        self._sweep_later = sweep_later
        self._clock = clock
        self.restart()
        _REGISTRIES.add(self)

    def __len__(self) -> int:
        return len(self._live)

    def remember(self, span_id: str, frame: Frame) -> None:
        """Note a span that has started."""
        # Every span ends; should a future version lose some, memory stays bounded all the same.
        if len(self.frames) >= self._max_runs * _FRAMES_PER_RUN:
            self.frames.pop(next(iter(self.frames)), None)
        self.frames[span_id] = frame

    def open(self, run: Run) -> None:
        """Add a run, and give up the ones that are too old or too many."""
        now = self._clock()
        run.started_at = now
        with self._lock:
            self._live[run.id] = run
            given_up = self._take_overdue(now)
        if not self._is_watched:  # after the run is in: a sweep in between would have missed it
            self._watch(self._max_age)
        self._give_up(given_up)

    def sweep(self) -> None:
        """Give up what is overdue, and come back when more will be; called by a timer."""
        now = self._clock()
        with self._lock:
            given_up = self._take_overdue(now)
            oldest = next(iter(self._live.values()), None)
            self._is_watched = False  # a run that is opened from here on has to ask anew
        self._give_up(given_up)
        if oldest is not None:
            self._watch(max(self._max_age - (now - oldest.started_at), _SOONEST_SECONDS))

    def claim(self, run: Run) -> bool:
        """Take a run out; True only for the first to ask, who must end its ticket."""
        with self._lock:
            if self._live.pop(run.id, None) is not run:
                return False
        self._forget(run)
        return True

    def in_progress(self) -> list[Run]:
        """The runs that have not ended."""
        with self._lock:
            return list(self._live.values())

    def take_all(self) -> list[Run]:
        """Take every run out; the caller must end their tickets."""
        with self._lock:
            runs = list(self._live.values())
            self._live.clear()
        for run in runs:
            self._forget(run)
        return runs

    def close_root(self, run: Run) -> None:
        """Note the end of a run's root span."""
        run.is_open = False
        self.frames.pop(run.id, None)

    def await_stream(self, run: Run, stream: object) -> None:
        """Find `run` again by the chat stream that will bring its answer."""
        run.stream = stream  # holds the object, so that its id stays its own
        self._by_stream[id(stream)] = run
        if run.id not in self._live:
            self._forget(run)

    def awaiting(self, stream: object) -> Run | None:
        """The run whose answer this object brings."""
        return self._by_stream.get(id(stream)) if self._by_stream else None

    def _watch(self, delay: float) -> None:
        # Runs that never end are given up when another one starts; in a process that has become
        # idle, by the worker.
        self._is_watched = self._sweep_later is not None and self._sweep_later(delay, self)

    def _give_up(self, runs: list[tuple[Run, str]]) -> None:
        for run, reason in runs:
            self._forget(run)
            run.ticket.discard(reason)

    def _take_overdue(self, now: float) -> list[tuple[Run, str]]:
        taken = []
        while self._live:
            oldest = next(iter(self._live.values()))
            if now - oldest.started_at > self._max_age:
                reason = "expired"
            elif len(self._live) > self._max_runs:
                reason = "evicted"
            else:
                break
            del self._live[oldest.id]
            taken.append((oldest, reason))
        return taken

    def _forget(self, run: Run) -> None:
        # While the root span is open its id must stay known, or spans below it would look like
        # roots of their own.
        if not run.is_open:
            self.frames.pop(run.id, None)
        if run.stream is not None:
            self._by_stream.pop(id(run.stream), None)

    def restart(self) -> None:
        """Forget everything, in a forked child: what was running runs in the parent."""
        # The parent's lock may be held.
        self._lock = threading.RLock()
        self._live: OrderedDict[str, Run] = OrderedDict()
        self._by_stream: dict[int, Run] = {}
        self._is_watched = False
        self.frames.clear()


_REGISTRIES: weakref.WeakSet[RunRegistry] = weakref.WeakSet()


def _after_fork() -> None:
    for registry in list(_REGISTRIES):
        registry.restart()


# Once for all of them: a hook cannot be taken back, and `attached` makes a registry each time.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
