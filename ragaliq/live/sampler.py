"""Sampling of runs: which are evaluated, and the chance each had.

Every run has one number in [0, 1), computed from its trace id or run id (`position`). A metric is
evaluated if the number is below the highest of its chances: its rate, and the probability of every
rule that the run matches. All comparisons use the same number, so the highest chance is exactly the
metric's inclusion probability; with independent numbers it would be `1 - (1 - p)(1 - q)...`, and
more runs would be evaluated at the same rates.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import replace
from hashlib import blake2b
from typing import NamedTuple
from uuid import UUID

from opentelemetry import context, trace

from ragaliq.core.log_once import LogOnce
from ragaliq.core.suppression import suppress
from ragaliq.errors import ConfigurationError
from ragaliq.live.run import RunHandle
from ragaliq.live.sampling import (
    FinishedRun,
    OnFeedback,
    OnLowScore,
    Sampling,
    SamplingDraw,
    SamplingResult,
    SamplingRule,
    require_rate,
)

logger = logging.getLogger(__name__)

_BLANK = blake2b(digest_size=8, person=b"ragaliq")  # a copy costs a third of a new one
_SPARE_BITS = 64 - 53
_UNIT = 2.0**-53
_MINUTE = 60.0
_ENOUGH = 5  # runs with passages and without a score


class _Rates:
    """Rates of all metrics in one pipeline.

    Args:
        by_metric: Each metric's rate; empty if a broker's workers choose the metrics.
        rate: The rate in that case.

    Attributes:
        by_metric: Each metric's rate.
        highest: The highest of them: the chance of a run of being evaluated at all.
        shared: The result for every run that the rate chooses, where all metrics have one rate.
        is_certain: Whether every run is evaluated with every metric, or none with any.
        certainty: The draw of every run in that case.
    """

    __slots__ = ("by_metric", "certainty", "highest", "is_certain", "shared")

    def __init__(self, by_metric: Mapping[str, float], rate: float) -> None:
        self.by_metric = dict(by_metric)
        rates = by_metric.values() or [rate]
        self.highest, lowest = max(rates), min(rates)
        self.shared: SamplingResult | None = None
        if self.highest == lowest > 0:
            self.shared = SamplingResult(probability=self.highest, metrics=self.by_metric)
        self.is_certain = not self.highest or lowest == 1.0
        self.certainty = SamplingDraw(0.0, self.shared) if self.shared else None


class _Held(NamedTuple):
    """A run that was not sampled and waits for its user's feedback."""

    run: RunHandle
    rules: tuple[str, ...]
    until: float


class Sampler:
    """Samples runs; thread-safe.

    Args:
        sampling: The application's `sampling`.
        sample_rate: The application's `sample_rate`, instead.
        general: The rate without either.
        metrics: The names of all metrics.
        clock: Seconds, monotonic.

    Raises:
        ConfigurationError: Both are given, a named metric is not evaluated, or a rate is out of
            range.
    """

    def __init__(
        self,
        sampling: Sampling | None = None,
        sample_rate: float | None = None,
        *,
        general: float = 1.0,
        metrics: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if sampling is not None and sample_rate is not None:
            raise ConfigurationError(
                "give sample_rate or sampling, not both: Sampling(rate=...) holds the rate"
            )
        sampling = sampling or Sampling()
        own = sampling.metrics
        if unknown := sorted(set(own) - set(metrics)):
            raise ConfigurationError(
                f"Sampling: metrics names {', '.join(unknown)}, but the monitor measures "
                f"{', '.join(metrics) or 'what its workers measure; name its metrics'}"
            )
        rate = next(each for each in (sample_rate, sampling.rate, general) if each is not None)
        require_rate("sample_rate", rate)
        self._others = _Rates({name: own.get(name, rate) for name in metrics}, rate)
        self._pipelines = {
            pipeline: _Rates({name: min(rate, own.get(name, rate)) for name in metrics}, rate)
            for pipeline, rate in sampling.pipelines.items()
        }
        self._rules = tuple(sampling.rules)
        self._by_score = next((r for r in self._rules if isinstance(r, OnLowScore)), None)
        self._feedback = next((r for r in self._rules if isinstance(r, OnFeedback)), None)
        self._max_per_minute, self._clock = sampling.max_per_minute, clock
        # A rule can only choose a run below its probability, so runs above the highest one need not
        # be captured. A cap, however, must count every run.
        highest = max((rule.probability for rule in self._rules), default=0.0)
        self._reach = 1.0 if self._rules and self._max_per_minute else highest
        self._log_once = LogOnce(logger)
        self.restart()

    def restart(self) -> None:
        """Reset held runs, counts and the lock, in a forked child."""
        # Re-entrant: a stream that is dropped half-read ends its run from the garbage collector,
        # which may run on this thread while it holds the lock.
        self._lock = threading.RLock()
        cap = self._max_per_minute
        self._cap = None if cap is None else RateCap(cap, clock=self._clock)
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._held_bytes = 0
        self._is_closed = False
        self._counts: Counter[str] = Counter()
        self._unscored = 0.0  # runs without a score; below any number once there was one

    def begin(self, run_id: str | UUID, pipeline: str) -> SamplingDraw | None:
        """Draw for a run that has just started; None when it cannot be chosen any more.

        Args:
            run_id: The run's id, which is used outside a trace.
            pipeline: The application's name for the chain.
        """
        rates = self._pipelines.get(pipeline, self._others)
        is_plain = not self._rules and self._cap is None
        if is_plain and rates.is_certain:
            return rates.certainty
        at = position(sampling_key(run_id))
        if self._rules:
            is_in_reach = at < max(rates.highest, self._reach)
            return SamplingDraw(at, None) if is_in_reach else None
        if is_plain and at >= rates.highest:
            return None  # most runs of most applications end here
        result = self._choose(at, pipeline, ())
        return None if result is None else SamplingDraw(at, result)

    def can_choose(self, key: str) -> bool:
        """True if a run of this trace or with this id may be chosen, in any pipeline.

        With a cap, always: it counts every run.
        """
        rates = (self._others, *self._pipelines.values())
        highest = max(self._reach, *(each.highest for each in rates))
        return self._cap is not None or position(key) < highest

    def settle(self, run: RunHandle) -> SamplingResult | None:
        """Decide about a finished run; one that is not chosen is held for feedback or ended."""
        at = run.draw.position
        finished = FinishedRun(
            answered=run.answered,
            run_id=run.run_id,
            pipeline=run.pipeline,
            session_id=run.session_id,
        )
        # Runs that a condition starts are not the application's. A separate context needs no
        # cleanup, which a signal's exception could prevent.
        try:
            matched = copy_context().run(self._matched, finished)
        except BaseException:
            # An exception from outside, such as Ctrl-C, is passed on.
            run.end("incomplete_run", "interrupted")
            raise
        result = self._choose(at, run.pipeline, matched)
        if result is None:
            if self._feedback is None or at >= self._feedback.probability:
                run.end("sampled_out")
            else:
                self._hold(run, self._feedback, tuple(rule.name for rule in matched))
        return result

    def feedback(self, name: str, value: float) -> list[tuple[RunHandle, SamplingResult]]:
        """Choose the held runs that their user found bad; each comes with its sampling result.

        Args:
            name: The run id, or the trace id: a trace may hold several runs.
            value: The user's feedback.
        """
        rule = self._feedback
        if rule is None:
            return []
        try:
            if not rule.is_bad(value):
                return []
        except Exception as error:  # noqa: BLE001 - the application's request must not notice
            self._rule_failed(error)
            return []
        with self._lock:
            _let_go(self._overdue())
            found = [self._pop(name)] if name in self._held else self._pop_trace(name)
        chosen = []
        for run, rules, _ in found:
            result = self._choose(run.draw.position, run.pipeline, (rule,))
            if result is None:
                run.end("sampled_out")
                continue
            # The rate already sampled this traffic when the runs ended, so its runs represent those
            # with complaints too: counted again, complaints would weigh too much.
            late = replace(
                result, reason=rule.name, rules=(*rules, rule.name), represents_traffic=False
            )
            chosen.append((run, late))
        return chosen

    def counts(self) -> dict[str, int]:
        """Counts of runs by sampling outcome; see `MonitorStats.sampling`."""
        with self._lock:
            _let_go(self._overdue())
            held = {"held": len(self._held)} if self._feedback else {}
            return {**self._counts, **held}

    def close(self) -> None:
        """Drop the held runs: there will be no more feedback."""
        with self._lock:
            self._is_closed = True
            _let_go([self._pop(name) for name in list(self._held)])

    # --- choosing -----------------------------------------------------------------------------

    def _choose(
        self, at: float, pipeline: str, matched: Sequence[SamplingRule]
    ) -> SamplingResult | None:
        rates = self._pipelines.get(pipeline, self._others)
        ruled = max((rule.probability for rule in matched), default=0.0)
        highest = max(rates.highest, ruled)
        factor = 1.0
        with self._lock:
            if self._cap is not None and highest:
                factor = self._cap.factor(highest)
            if at >= highest * factor:
                if at < highest:
                    self._counts["thinned"] += 1
                return None
            if self._cap is not None and not self._cap.admit():
                self._counts["capped"] += 1
                return None
        if not matched and factor == 1.0 and rates.shared is not None:
            return rates.shared
        chances = {metric: max(rate, ruled) * factor for metric, rate in rates.by_metric.items()}
        reason = "rate"
        # The rate first, so that runs with this reason are a simple random sample.
        if at >= rates.highest * factor:
            reason = next(rule.name for rule in matched if at < rule.probability * factor)
        return SamplingResult(
            probability=highest * factor,
            metrics={metric: chance for metric, chance in chances.items() if at < chance},
            reason=reason,
            rules=tuple(rule.name for rule in matched),
        )

    def _matched(self, run: FinishedRun) -> list[SamplingRule]:
        matched = []
        with suppress():
            for rule in self._rules:
                try:
                    if rule is self._by_score:
                        self._look_for_scores(run)
                    if rule.matches(run):
                        matched.append(rule)
                except Exception as error:  # noqa: BLE001 - the request must not notice
                    self._rule_failed(error)
        return matched

    def _rule_failed(self, error: Exception) -> None:
        with self._lock:
            self._counts["rule_errors"] += 1
        self._log_once.failure("a sampling rule raised", error, in_application=True)

    def _look_for_scores(self, run: FinishedRun) -> None:
        """Warn once if a retriever returns no scores; a single score is enough."""
        if not run.contexts:
            return
        # Without the lock: a lost count is harmless.
        self._unscored = -math.inf if run.scores else self._unscored + 1
        if self._unscored >= _ENOUGH:
            self._log_once.message(
                "no scores",
                f"OnLowScore has seen {_ENOUGH} runs and no scores: their passages carry none, so "
                "it chooses nothing; put `score` or `relevance_score` into the documents' metadata",
            )

    # --- runs that wait for what their users say ----------------------------------------------

    def _hold(self, run: RunHandle, rule: OnFeedback, rules: tuple[str, ...]) -> None:
        held = _Held(run, rules, self._clock() + rule.hold)
        gone: list[_Held] = []
        with self._lock:
            if run.run_id in self._held:  # the application used an id twice
                gone.append(self._pop(run.run_id))
            if self._is_closed:
                gone.append(held)
            else:
                self._held[run.run_id] = held
                self._held_bytes += run.size
                gone += self._overdue()
                while len(self._held) > rule.max_runs or self._held_bytes > rule.max_bytes:
                    gone.append(self._pop(next(iter(self._held))))
                    self._counts["crowded_out"] += 1
        _let_go(gone)

    def _pop(self, name: str) -> _Held:
        held = self._held.pop(name)
        self._held_bytes -= held.run.size
        return held

    def _pop_trace(self, trace_id: str) -> list[_Held]:
        names = [
            name
            for name, held in self._held.items()
            if held.run.target is not None and held.run.target.trace_id == trace_id
        ]
        return [self._pop(name) for name in names]

    def _overdue(self) -> Iterator[_Held]:
        now = self._clock()
        while self._held:
            name, oldest = next(iter(self._held.items()))
            if oldest.until > now:
                return
            yield self._pop(name)


def _let_go(gone: Iterable[_Held]) -> None:
    for held in gone:
        held.run.end("sampled_out")


def position(key: str) -> float:
    """Map a trace or run id to a number in [0, 1), uniform over ids.

    A chance of `p` chooses a run if its number is below `p`. All chances use the same number, so a
    lower chance chooses a subset of a higher one.

    Args:
        key: Any text; the same text gives the same number everywhere.
    """
    # Ids are not uniform (the high bits of a UUIDv7 are the clock): hash them first. Keep 53 bits,
    # as a float does, or rounding could give 1.0.
    hashed = _BLANK.copy()
    hashed.update(key.encode("utf-8", "surrogatepass"))
    return (int.from_bytes(hashed.digest()) >> _SPARE_BITS) * _UNIT


def sampling_key(run_id: str | UUID) -> str:
    """Id that decides about a run: that of the current trace, else its own."""
    if not context.get_current():
        return str(run_id)  # nothing is current at all, no span either
    span_context = trace.get_current_span().get_span_context()
    return f"{span_context.trace_id:032x}" if span_context.is_valid else str(run_id)


# A hard stop within each minute would give later runs a chance of 0, which no estimate can correct.
# Instead every chance is lowered by a factor that depends on earlier traffic only: on the number of
# runs and their chances, never on which were chosen. So the recorded chance of a run is exact.


class RateCap:
    """Cap on runs per minute under which each run's chance stays known.

    A leaky bucket that the granted chances fill. Up to half of the bucket, runs keep their chance;
    above, the factor falls linearly to 0 for a full one. Bucket size and outflow of a minute add up
    to the cap, so that the expected number of runs in any minute is within it. `admit` stops runs
    that exceed it by chance; these are lost to estimates.

    Args:
        per_minute: Most runs in any minute.
        clock: Seconds, monotonic.
    """

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # At least 2, or a single run with chance 1 could overflow it.
        self._size = max(2.0, per_minute / 6)
        self._outflow = max(per_minute - self._size, per_minute / 2) / _MINUTE
        self._admitted: deque[float] = deque(maxlen=per_minute)
        self._level, self._at = 0.0, clock()

    def factor(self, probability: float) -> float:
        """Factor on a run's chances, in [0, 1].

        Args:
            probability: The run's chance without a cap; it counts whether or not the run is chosen.
        """
        now = self._clock()
        self._level = max(0.0, self._level - (now - self._at) * self._outflow)
        self._at = now
        factor = min(1.0, 2.0 * (1.0 - self._level / self._size))
        self._level += probability * factor
        return factor

    def admit(self) -> bool:
        """Check whether a chosen run fits into the last minute."""
        now, times = self._clock(), self._admitted
        if len(times) == times.maxlen and now - times[0] < _MINUTE:
            return False
        times.append(now)
        return True
