"""Runs kept for feedback that may still come: bounded in number, age and bytes."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragaliq.live.sampling.counts import SamplingCounts
from ragaliq.live.sampling.rules import OnFeedback

if TYPE_CHECKING:
    from ragaliq.live.engine import Engine
    from ragaliq.live.job import Submission
    from ragaliq.live.sampling.sampler import SamplingDecision

__all__ = ["Held", "HeldRuns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A run that ended unchosen, with all that is needed to choose it after all."""

    submission: Submission
    decision: SamplingDecision
    engine: Engine
    rules: tuple[str, ...]
    size: int
    until: float


class HeldRuns:
    """The runs that nothing has chosen so far; those let go end as `sampled_out`.

    Args:
        rule: The bounds.
        counts: `crowded_out` is counted there.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        rule: OnFeedback,
        counts: SamplingCounts,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rule = rule
        self._counts = counts
        self._clock = clock
        self.restart()

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def size(self) -> int:
        """Bytes of text held."""
        return self._size

    def restart(self) -> None:
        """Forget everything, in a forked child: the parent's runs are the parent's."""
        # Re-entrant, as everywhere: the garbage collector may end a run here.
        self._lock = threading.RLock()
        self._runs: OrderedDict[str, Held] = OrderedDict()
        self._of_trace: dict[str, list[str]] = {}
        self._size = 0
        self._closed = False

    def add(
        self,
        submission: Submission,
        decision: SamplingDecision,
        engine: Engine,
        rules: tuple[str, ...],
    ) -> None:
        """Hold a run."""
        held = Held(
            submission=submission,
            decision=decision,
            engine=engine,
            rules=rules,
            size=submission.size,
            until=self._clock() + self._rule.hold,
        )
        with self._lock:
            gone = list(self._pop(submission.run_id))  # the application used an id twice
            if self._closed:
                gone.append(held)
            else:
                self._put(held)
                gone += self._overdue()
                crowded_out = list(self._beyond_bounds())
                gone += crowded_out
                if crowded_out:
                    self._counts.add("crowded_out", len(crowded_out))
        _let_go(gone)

    def take(self, name: str) -> list[Held]:
        """The runs with this run or trace id, out of the store."""
        self.expire()
        with self._lock:
            names = [name] if name in self._runs else self._of_trace.get(name, [])
            return [held for each in list(names) for held in self._pop(each)]

    def expire(self) -> None:
        """Let go what has been held for long enough."""
        with self._lock:
            gone = list(self._overdue())
        _let_go(gone)

    def close(self) -> None:
        """Let go everything, and hold nothing any more."""
        with self._lock:
            self._closed = True
            gone = [held for name in list(self._runs) for held in self._pop(name)]
        _let_go(gone)

    def _put(self, held: Held) -> None:
        submission = held.submission
        self._runs[submission.run_id] = held
        self._size += held.size
        if submission.target is not None:
            trace = self._of_trace.setdefault(submission.target.trace_id, [])
            trace.append(submission.run_id)

    def _pop(self, name: str) -> Iterator[Held]:
        held = self._runs.pop(name, None)
        if held is None:
            return
        self._size -= held.size
        if held.submission.target is not None:
            trace_id = held.submission.target.trace_id
            rest = [each for each in self._of_trace.pop(trace_id, ()) if each != name]
            if rest:
                self._of_trace[trace_id] = rest
        yield held

    def _overdue(self) -> Iterator[Held]:
        now = self._clock()
        while self._runs:
            name, oldest = next(iter(self._runs.items()))
            if oldest.until > now:
                return
            yield from self._pop(name)

    def _beyond_bounds(self) -> Iterator[Held]:
        while len(self._runs) > self._rule.max_runs or self._size > self._rule.max_bytes:
            yield from self._pop(next(iter(self._runs)))


def _let_go(gone: list[Held]) -> None:
    for held in gone:
        held.engine.tally.end("sampled_out")
