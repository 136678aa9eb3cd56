"""The decision about each run, and the chance it had.

Every run has one number in [0, 1), made from its trace id or run id (`position`). A metric is
evaluated where the number is below the highest of the chances that speak for it: its rate, and the
probability of every rule the run matches. Since all of them compare the same number, that highest
chance is exactly the metric's inclusion probability; were the comparisons independent of each
other it would be `1 - (1 - p)(1 - q)...` instead, and more runs would be judged for the same rates.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from ragaliq.core.suppression import suppress
from ragaliq.errors import ConfigurationError
from ragaliq.live.sampling.cap import RateCap
from ragaliq.live.sampling.choice import Choice
from ragaliq.live.sampling.counts import SamplingCounts
from ragaliq.live.sampling.finished import FinishedRun
from ragaliq.live.sampling.held import Held, HeldRuns
from ragaliq.live.sampling.position import position, sampling_key
from ragaliq.live.sampling.rates import PipelineRates, Rates
from ragaliq.live.sampling.rules import OnFeedback, OnLowScore, SamplingRule
from ragaliq.live.sampling.settings import Sampling, require_rate
from ragaliq.live.sampling.unscored import Unscored

if TYPE_CHECKING:
    from ragaliq.live.engine import Engine
    from ragaliq.live.job import Submission

__all__ = ["Sampler", "SamplingDecision"]

logger = logging.getLogger(__name__)


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
            engine.tally.end("incomplete_run", "interrupted")
            raise
        choice = self._choose(decision.position, decision.rates, matched)
        if choice is not None:
            submission.chosen(choice)
            return engine.submit(submission)
        feedback = self._feedback
        if self._held is None or feedback is None or decision.position >= feedback.probability:
            engine.tally.end("sampled_out")
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
        # What a condition calls is not the application's own work.
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
            held.engine.tally.end("sampled_out")
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
            return held.engine.submit(held.submission, is_late=True)
        except Exception as error:  # noqa: BLE001 - as above
            logger.debug("a run could not be handed over: %s", type(error).__name__)
            held.engine.tally.end("incomplete_run", "internal_error")
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
