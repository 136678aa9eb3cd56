"""Counts of all runs by outcome, so that nothing is lost silently."""

from __future__ import annotations

import os
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ragaliq.core.results import EvaluationResult, JudgeUsage, Status
from ragaliq.records.sinks import SinkStats
from ragaliq.scoring.limits.breaker import BreakerState
from ragaliq.scoring.limits.budget import BudgetLine
from ragaliq.scoring.limits.shared import StorageState
from ragaliq.telemetry.names import OTHER, Outcome


class Counted(Protocol):
    """A run, as the counters see it."""

    pipeline: str
    is_pending: bool


@dataclass(frozen=True, kw_only=True)
class MonitorStats:
    """Counts of a monitor at one moment.

    `started == sum(outcomes.values()) + pending` always holds.

    Attributes:
        started: Runs that were begun.
        pending: Runs still open, queued or being evaluated.
        outcomes: Runs by outcome.
        incomplete: The runs that ended as `incomplete_run`, by reason.
        without_context: The evaluated runs whose case has no context, by reason; see `CaseSources`.
        evaluations: Per metric, results by status.
        usage: Tokens, requests and money spent on the judge.
        unjudged: The evaluated runs that were kept from the judge while the breaker was open.
        breaker: `closed`, `open` or `half_open`; see `CircuitBreaker`.
        queued: Runs waiting to be evaluated.
        queued_bytes: Bytes of their texts.
        budget: State of each limit of the budget.
        limits_storage: Storage of budget and rate limits: `local` in this process, `shared` with
            other processes, or `unavailable` if the shared one cannot be reached.
        callback_errors: Times `on_result` raised.
        callback_timeouts: Times it took too long, or was not called because an earlier call still
            blocked its thread.
        sinks: Counts of each sink, by name.
        sampling: Counts of sampling by rules, cap and feedback; see the page on sampling.
        executor: Executor in use: `thread`, `process`, or for a broker's workers its kind, such as
            `redis`.
        publish_errors: Failed attempts to enqueue runs for a broker's workers.
        restarts: Times the child process died and was restarted.
    """

    started: int = 0
    pending: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    incomplete: Mapping[str, int] = field(default_factory=dict)
    without_context: Mapping[str, int] = field(default_factory=dict)
    evaluations: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    usage: JudgeUsage = JudgeUsage()
    unjudged: int = 0
    breaker: BreakerState = "closed"
    queued: int = 0
    queued_bytes: int = 0
    budget: Mapping[str, BudgetLine] = field(default_factory=dict)
    limits_storage: StorageState = "local"
    callback_errors: int = 0
    callback_timeouts: int = 0
    sinks: Mapping[str, SinkStats] = field(default_factory=dict)
    sampling: Mapping[str, int] = field(default_factory=dict)
    executor: str = "thread"
    publish_errors: int = 0
    restarts: int = 0


_SKIPPED: tuple[Outcome, ...] = ("incomplete_run", "not_rag")
_MOST_SKIPPED = 1_000
# Runs that end without a score before a warning.
_TELLING_RUNS = 20


class RunCounters:
    """Counters of one monitor in one process; thread-safe.

    Pending runs have their own counter, and `started` is the sum, so the counts always add up. An
    exception from a signal (Ctrl-C, Celery's time limit) may come between any two statements, so
    related counts change in one.

    Attributes:
        process: The process it counts for.
        is_closed: Whether the monitor takes no further runs.
        is_given_up: Whether it was closed before all its runs were evaluated.
        callback_errors: Times `on_result` raised.
        callback_timeouts: Times it took too long.
        publish_errors: Failed attempts to enqueue a run.
    """

    def __init__(self) -> None:
        # Re-entrant: a stream that is dropped half-read ends its run from the garbage collector,
        # which may run on this thread while it holds the lock.
        self._lock = threading.RLock()
        self.process = os.getpid()
        self._pending = 0
        self._sampled_out = 0  # apart from the outcomes: most runs of most applications end so
        self._without_context: Counter[str] = Counter()
        self._ended: defaultdict[tuple[Outcome, str], int] = defaultdict(int)
        self._skipped: Counter[tuple[str, str, str]] = Counter()  # with the pipeline
        self._evaluations: dict[str, Counter[str]] = {}
        self._usage = JudgeUsage()
        self._unjudged = 0
        self.callback_errors = self.callback_timeouts = self.publish_errors = 0
        self.is_closed = self.is_given_up = False

    def begin(self, run: Counted) -> None:
        """Count the begin of a run."""
        with self._lock:
            run.is_pending, self._pending = True, self._pending + 1

    def sampled_out(self) -> None:
        """Count the begin and end of a run that is not evaluated."""
        with self._lock:
            self._sampled_out += 1

    def withdraw(self, run: Counted) -> None:
        """Remove a run that is counted elsewhere."""
        with self._lock:
            if run.is_pending:
                run.is_pending, self._pending = False, self._pending - 1

    def end(self, run: Counted, outcome: Outcome, reason: str = "") -> None:
        """Count the end of a run; `reason` says why it is incomplete. Only the first end counts."""
        how, ended = (outcome, reason), self._ended
        with self._lock:
            left = self._pending - 1
            if run.is_pending:
                run.is_pending, self._pending, ended[how] = False, left, ended[how] + 1
                if outcome in _SKIPPED:
                    is_known = len(self._skipped) < _MOST_SKIPPED
                    self._skipped[outcome, reason, run.pipeline if is_known else OTHER] += 1

    def evaluated(
        self,
        run: Counted,
        results: Mapping[str, EvaluationResult],
        *,
        unjudged: bool = False,
        no_context: str = "",
    ) -> None:
        """Count an evaluated run.

        Args:
            run: The run.
            results: Its results by metric.
            unjudged: Whether the breaker kept it from the judge.
            no_context: Reason why its case has no context; empty if it has one.
        """
        is_lacking = {result.status for result in results.values()} == {Status.NO_CONTEXT}
        with self._lock:
            self.end(run, "no_context" if is_lacking else "evaluated")
            if no_context:
                self._without_context[no_context] += 1
            self._unjudged += unjudged
            for name, result in results.items():
                self._evaluations.setdefault(name, Counter())[result.status.value] += 1
                self._usage += result.usage

    def skipped(self) -> Mapping[tuple[str, str, str], int]:
        """Number of runs without a case, by outcome, reason and pipeline."""
        with self._lock:
            return Counter(self._skipped)

    def none_scored(self) -> str:
        """Outcomes of the first runs, if many ended and none was scored; empty otherwise."""
        with self._lock:
            ended = dict(self._ended)
        is_telling = sum(ended.values()) >= _TELLING_RUNS
        if not is_telling or any(outcome == "evaluated" for outcome, _ in ended):
            return ""
        return ", ".join(f"{n} {reason or outcome}" for (outcome, reason), n in ended.items())

    def abandon(self) -> None:
        """Make late calls for the parent's runs harmless in a forked child.

        The parent may have held the lock at the moment of the fork.
        """
        self._lock = threading.RLock()
        self.is_closed = True

    def snapshot(self) -> MonitorStats:
        """Current counts."""
        outcomes: Counter[str] = Counter()
        incomplete: Counter[str] = Counter()
        with self._lock:
            for (outcome, reason), count in self._ended.items():
                outcomes[outcome] += count
                if outcome == "incomplete_run":
                    incomplete[reason] += count
            if self._sampled_out:
                outcomes["sampled_out"] += self._sampled_out
            return MonitorStats(
                started=self._pending + outcomes.total(),
                pending=self._pending,
                outcomes=dict(outcomes),
                incomplete=dict(incomplete),
                without_context=dict(self._without_context),
                evaluations={name: dict(counts) for name, counts in self._evaluations.items()},
                usage=self._usage,
                unjudged=self._unjudged,
                callback_errors=self.callback_errors,
                callback_timeouts=self.callback_timeouts,
                publish_errors=self.publish_errors,
            )
