"""The decision about each run, and the chance it had.

Every run has one number in [0, 1), made from its trace id or run id (`position`). A metric is
evaluated where the number is below the highest of the chances that speak for it: its rate, and the
probability of every rule the run matches. Since all of them compare the same number, that highest
chance is exactly the metric's inclusion probability; were the comparisons independent of each
other it would be `1 - (1 - p)(1 - q)...` instead, and more runs would be judged for the same rates.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from opentelemetry import context, trace

from ragaliq.core.suppression import suppress
from ragaliq.errors import ConfigurationError
from ragaliq.live.sampling.rules import (
    Choice,
    FinishedRun,
    OnFeedback,
    OnLowScore,
    Sampling,
    SamplingRule,
    require_rate,
)

if TYPE_CHECKING:
    from ragaliq.live.engine import Engine
    from ragaliq.live.run import Submission

__all__ = ["RateCap", "Rates", "Sampler", "SamplingDecision", "position", "sampling_key"]

logger = logging.getLogger(__name__)

_BLANK = blake2b(digest_size=8, person=b"ragaliq")  # a copy costs a third of a new one
_SPARE_BITS = 64 - 53
_UNIT = 2.0**-53
_MINUTE = 60.0
_ENOUGH = 5  # runs with passages and without a score

Count = Literal["thinned", "capped", "crowded_out", "rule_errors"]


class SamplingDecision:
    """What is known at a run's start about whether it will be evaluated.

    Attributes:
        position: The run's number.
        rates: The rates in its pipeline.
        choice: The decision, where none has to wait for the end of the run.
    """

    __slots__ = ("_sampler", "choice", "position", "rates")

    def __init__(
        self, sampler: Sampler, at: float, rates: PipelineRates, choice: Choice | None = None
    ) -> None:
        self._sampler = sampler
        self.position = at
        self.rates = rates
        self.choice = choice

    def settle(self, submission: Submission, engine: Engine) -> bool:
        """Queue the finished run if it is chosen, else count it; whether it was queued."""
        if self.choice is None:
            return self._sampler.settle(submission, self, engine)
        submission.chosen(self.choice)
        return engine.submit(submission)


class Sampler:
    """Decides which runs are evaluated; safe to use from many threads.

    Args:
        sampling: What the application said.
        general: The rate where it said nothing.
        metrics: The names of all metrics.
        clock: Seconds, monotonic.

    Raises:
        ConfigurationError: A metric is named that is not measured, or a rate is out of range.
    """

    def __init__(
        self,
        sampling: Sampling,
        *,
        general: float,
        metrics: Sequence[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        sampling.require(metrics)
        rate = general if sampling.rate is None else sampling.rate
        require_rate("sample_rate", rate)
        self._rates = Rates(sampling, general=rate, metrics=metrics)
        self._rules = tuple(sampling.rules)
        self._counts = SamplingCounts()
        cap = sampling.max_per_minute
        self._cap = RateCap(cap, clock=clock) if cap is not None else None
        self._by_score = next((r for r in self._rules if isinstance(r, OnLowScore)), None)
        self._unscored = Unscored() if self._by_score else None
        self._feedback = next((r for r in self._rules if isinstance(r, OnFeedback)), None)
        self._held = HeldRuns(self._feedback, self._counts, clock=clock) if self._feedback else None
        # A rule can only choose a run below its probability, so above the highest one nothing has
        # to be followed. A cap, however, has to hear of every run.
        highest = max((rule.probability for rule in self._rules), default=0.0)
        self._reach = 1.0 if self._rules and self._cap else highest

    @classmethod
    def of(
        cls,
        sampling: Sampling | None,
        sample_rate: float | None,
        *,
        general: float,
        metrics: Sequence[str],
    ) -> Sampler:
        """The sampler a monitor's arguments ask for.

        Raises:
            ConfigurationError: Both are given, or one is wrong.
        """
        if sampling is not None and sample_rate is not None:
            raise ConfigurationError(
                "give sample_rate or sampling, not both: Sampling(rate=...) holds the rate"
            )
        if sampling is not None and not isinstance(sampling, Sampling):
            raise ConfigurationError(f"sampling must be a Sampling, got {type(sampling).__name__}")
        if sample_rate is not None:
            general = sample_rate
        return cls(sampling or Sampling(), general=general, metrics=metrics)

    def begin(self, run_id: str | UUID, pipeline: str) -> SamplingDecision | None:
        """What a run that has just started may expect; None when it cannot be chosen any more.

        Args:
            run_id: Decides outside any trace, as text.
            pipeline: The application's name for the chain.
        """
        rates = self._rates.everywhere or self._rates.of(pipeline)
        if self._rules:
            at = position(sampling_key(run_id))
            return (
                SamplingDecision(self, at, rates) if at < max(rates.highest, self._reach) else None
            )
        if rates.is_certain and self._cap is None:
            at, choice = 0.0, rates.shared_choice
        else:
            at = position(sampling_key(run_id))
            if at >= rates.highest and self._cap is None:
                return None  # most runs of most applications end here
            choice = self._choose(at, rates, ())
        return None if choice is None else SamplingDecision(self, at, rates, choice)

    def settle(self, submission: Submission, decision: SamplingDecision, engine: Engine) -> bool:
        """Decide about a finished run: queue it, hold it for feedback, or count it out."""
        try:
            matched = self._matched(submission)
        except Exception:
            raise  # the ticket counts it
        except BaseException:
            # Something from outside, such as Ctrl-C, while a rule was asked: not ours to stop.
            submission.end("incomplete_run", "interrupted")
            raise
        choice = self._choose(decision.position, decision.rates, matched)
        if choice is not None:
            submission.chosen(choice)
            return engine.submit(submission)
        feedback = self._feedback
        if self._held is None or feedback is None or decision.position >= feedback.probability:
            submission.end("sampled_out")
        else:
            self._held.add(submission, decision, engine, tuple(rule.name for rule in matched))
        return False

    def feedback(self, name: str, value: float) -> bool:
        """Have a held run evaluated if what its user says is bad; whether one will be.

        Args:
            name: The run id, or the trace id.
            value: What the user said.
        """
        rule, held_runs = self._feedback, self._held
        if rule is None or held_runs is None or not self._is_bad(rule, value):
            return False
        # A trace may hold several runs.
        return sum(self._choose_late(held, rule) for held in held_runs.take(name)) > 0

    def counts(self) -> dict[str, int]:
        """What became of runs here; see `MonitorStats.sampling`."""
        if self._held is not None:
            self._held.expire()
        held = {"held": len(self._held)} if self._held is not None else {}
        return {**self._counts.snapshot(), **held}

    def close(self) -> None:
        """Let go what is held: no feedback will be heard any more."""
        if self._held is not None:
            self._held.close()

    def restart(self) -> None:
        """Start anew in a forked child."""
        for part in (self._counts, self._cap, self._held, self._unscored):
            if part is not None:
                part.restart()

    def _matched(self, submission: Submission) -> tuple[SamplingRule, ...]:
        run = FinishedRun(
            case=submission.case,
            run_id=submission.run_id,
            pipeline=submission.pipeline,
            session_id=submission.session_id,
        )
        # What a condition calls is not the application's own work. In a context of its own, so that
        # nothing has to be undone: a signal's exception could prevent it.
        return copy_context().run(self._ask, run)

    def _ask(self, run: FinishedRun) -> tuple[SamplingRule, ...]:
        with suppress():
            return tuple(rule for rule in self._rules if self._matches(rule, run))

    def _matches(self, rule: SamplingRule, run: FinishedRun) -> bool:
        try:
            if self._unscored is not None and rule is self._by_score:
                self._unscored.look(run)
            return bool(rule.matches(run))
        except Exception as error:  # noqa: BLE001 - the application's request must not notice
            self._failed(error)
            return False

    def _is_bad(self, rule: OnFeedback, value: float) -> bool:
        try:
            return rule.is_bad(value)
        except Exception as error:  # noqa: BLE001 - as above
            self._failed(error)
            return False

    def _failed(self, error: Exception) -> None:
        if self._counts.add("rule_errors") == 1:
            logger.warning(
                "a sampling rule raised %s; further errors are counted, not logged",
                type(error).__name__,
            )

    def _choose_late(self, held: Held, rule: OnFeedback) -> bool:
        choice = self._choose(held.decision.position, held.decision.rates, (rule,))
        if choice is None:
            held.submission.end("sampled_out")
            return False
        # The rate had its say when the run ended, and the runs it chose then stand for those users
        # complained about as well: counted once more, complaints would weigh too much.
        held.submission.chosen(
            replace(
                choice,
                reason=rule.name,
                rules=(*held.rules, rule.name),
                represents_traffic=False,
            )
        )
        try:
            return held.engine.submit(held.submission)
        except Exception as error:  # noqa: BLE001 - as above
            logger.debug("a run could not be enqueued: %s", type(error).__name__)
            held.submission.end("incomplete_run", "internal_error")
            return False

    def _choose(
        self, at: float, rates: PipelineRates, matched: Sequence[SamplingRule]
    ) -> Choice | None:
        if not matched and self._cap is None and rates.shared_choice is not None:
            return rates.shared_choice if at < rates.highest else None
        ruled = max((rule.probability for rule in matched), default=0.0)
        highest = max(rates.highest, ruled)
        factor = self._cap.factor(highest) if self._cap is not None and highest else 1.0
        if at >= highest * factor:
            if at < highest:
                self._counts.add("thinned")
            return None
        if self._cap is not None and not self._cap.admit():
            self._counts.add("capped")
            return None
        return Choice(
            probability=highest * factor,
            metrics=_below(rates.by_metric, at, ruled=ruled, factor=factor),
            reason=_reason(at, rates, matched, factor=factor),
            rules=tuple(rule.name for rule in matched),
        )


def _below(
    rates: Mapping[str, float], at: float, *, ruled: float, factor: float
) -> dict[str, float]:
    chances = {metric: max(rate, ruled) * factor for metric, rate in rates.items()}
    return {metric: chance for metric, chance in chances.items() if at < chance}


def _reason(
    at: float, rates: PipelineRates, matched: Sequence[SamplingRule], *, factor: float
) -> str:
    # The rate first: runs with this reason are then a plain random sample.
    if at < rates.highest * factor:
        return "rate"
    return next(rule.name for rule in matched if at < rule.probability * factor)


# --- the number of a run, and the rates it is compared with ---------------------------------


def position(key: str) -> float:
    """A trace or run id as a number in [0, 1), uniform over ids.

    Whatever has a chance of `p` is chosen where this is below `p`. Being the same number for all,
    a lower chance chooses a subset of what a higher one does.

    Args:
        key: Any text; the same text gives the same number everywhere.
    """
    # Ids are not uniform (the high bits of a UUIDv7 are the clock): hash them first. The 53 bits
    # kept are a float's, or rounding could give 1.0.
    hashed = _BLANK.copy()
    hashed.update(key.encode("utf-8", "surrogatepass"))
    return (int.from_bytes(hashed.digest()) >> _SPARE_BITS) * _UNIT


def sampling_key(run_id: str | UUID) -> str:
    """The id that decides about a run: that of the current trace, else its own."""
    if not context.get_current():
        return str(run_id)  # nothing is current at all, no span either
    span_context = trace.get_current_span().get_span_context()
    return f"{span_context.trace_id:032x}" if span_context.is_valid else str(run_id)


class PipelineRates:
    """The rates of all metrics in one pipeline.

    Attributes:
        by_metric: Each metric's rate.
        highest: The highest of them: the chance of a run of being evaluated at all.
        is_certain: Whether every run is evaluated with every metric, or none with any.
        shared_choice: What is decided about every run the rate chooses, where all metrics have one
            rate and nothing but the rate decides.
    """

    __slots__ = ("by_metric", "highest", "is_certain", "shared_choice")

    def __init__(self, by_metric: Mapping[str, float]) -> None:
        self.by_metric = dict(by_metric)
        self.highest = max(by_metric.values())
        is_shared = self.highest == min(by_metric.values()) > 0
        self.shared_choice = (
            Choice(probability=self.highest, metrics=self.by_metric) if is_shared else None
        )
        self.is_certain = not self.highest or min(by_metric.values()) == 1.0


class Rates:
    """Looks a pipeline's rates up; made once, since every run asks.

    Attributes:
        everywhere: The rates of all pipelines, where none has its own.

    Args:
        sampling: What the application said.
        general: The rate where it said nothing.
        metrics: The names of all metrics.
    """

    def __init__(self, sampling: Sampling, *, general: float, metrics: Sequence[str]) -> None:
        own = sampling.evaluators
        self._others = PipelineRates({name: own.get(name, general) for name in metrics})
        self._named = {
            pipeline: PipelineRates({name: min(rate, own.get(name, rate)) for name in metrics})
            for pipeline, rate in sampling.pipelines.items()
        }
        self.everywhere = None if self._named else self._others

    def of(self, pipeline: str) -> PipelineRates:
        """The rates in this pipeline."""
        return self._named.get(pipeline, self._others)


# --- a cap on runs per minute that leaves each run a chance that can be stated ---------------

# Stopping after the first so many runs of a minute would leave the others no chance at all, and no
# estimate could make up for them. Here every chance is lowered instead, by a factor that depends on
# earlier traffic only: on how many runs came, and what chance each had, never on which were chosen.
# So a run's chance is exactly what is recorded with it.


class RateCap:
    """A bucket filled by the chances given out and emptied at a steady rate.

    Up to half of the bucket, runs keep their chance; above, the factor falls in a straight line to
    0 for a full one. Under steady load it settles where as much is given out as runs out. Bucket
    and outflow of a minute together make the cap, so that in no minute more than the cap is
    expected.

    What chance exceeds all the same is stopped by `admit`; these runs are lost to estimates.

    Args:
        per_minute: Runs in any minute at most.
        clock: Seconds, monotonic.
    """

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # At least 2, or a single certain run could overflow it.
        self._size = max(2.0, per_minute / 6)
        self._outflow = max(per_minute - self._size, per_minute / 2) / _MINUTE
        self._admitted: deque[float] = deque(maxlen=per_minute)
        self.restart()

    def restart(self) -> None:
        """Start anew, with a lock that nobody holds: for a forked child."""
        # Re-entrant: a stream that is dropped half-read ends its run from the garbage collector,
        # which may run on this thread while it holds the lock.
        self._lock = threading.RLock()
        self._level = 0.0
        self._at = self._clock()
        self._admitted.clear()

    def factor(self, probability: float) -> float:
        """What to multiply a run's chances with, in [0, 1].

        Args:
            probability: The chance the run would have without a cap; it counts whether or not the
                run is then chosen.
        """
        with self._lock:
            now = self._clock()
            self._level = max(0.0, self._level - (now - self._at) * self._outflow)
            self._at = now
            factor = min(1.0, 2.0 * (1.0 - self._level / self._size))
            self._level += probability * factor
            return factor

    def admit(self) -> bool:
        """Whether a chosen run still finds room in the last minute."""
        with self._lock:
            now = self._clock()
            times = self._admitted
            if len(times) == times.maxlen and now - times[0] < _MINUTE:
                return False
            times.append(now)
            return True


# --- runs that wait for what their users say -------------------------------------------------


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
        held.submission.end("sampled_out")


class Unscored:
    """Says once that the retriever gives no scores; content when a single one was seen."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Count anew, in a forked child."""
        self._lock = threading.Lock()
        self._runs = 0
        self._is_settled = False

    def look(self, run: FinishedRun) -> None:
        """Count a finished run; one without passages says nothing."""
        if self._is_settled or not run.contexts:
            return
        if run.scores:
            self._is_settled = True
            return
        with self._lock:
            self._runs += 1
            if self._is_settled or self._runs < _ENOUGH:
                return
            self._is_settled = True
        logger.warning(
            "OnLowScore has seen %d runs and no scores: their passages carry none, so it chooses "
            "nothing; put `score` or `relevance_score` into the documents' metadata",
            _ENOUGH,
        )


class SamplingCounts:
    """Thread-safe counters behind `MonitorStats.sampling`."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Start anew, with a lock that nobody holds: for a forked child."""
        self._lock = threading.RLock()  # re-entrant, as in `Tally`
        self._counts: Counter[str] = Counter()

    def add(self, what: Count, number: int = 1) -> int:
        """Count something; returns how often it has happened."""
        with self._lock:
            self._counts[what] += number
            return self._counts[what]

    def snapshot(self) -> dict[str, int]:
        """The counts now."""
        with self._lock:
            return dict(self._counts)
