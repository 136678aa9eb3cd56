"""Sampling settings of an application: rates, a cap, and rules about finished runs."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, NamedTuple, Protocol, Self

from ragaliq.capture import RunLog
from ragaliq.core.checks import require_positive
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A run with its answer, as a sampling rule sees it before the decision.

    Attributes:
        answered: Question, context and answer: a case, or the log that one is built from.
        run_id: The framework's id of the run.
        pipeline: The application's name for the chain.
        session_id: The conversation, when the application names it.
    """

    answered: RAGTestCase | RunLog
    run_id: str
    pipeline: str
    session_id: str | None

    @property
    def query(self) -> str:
        """The user's question."""
        return self.answered.query

    @property
    def response(self) -> str:
        """The application's answer."""
        return self.answered.response

    @property
    def tags(self) -> Sequence[str]:
        """The run's labels."""
        return self.answered.tags

    @property
    def contexts(self) -> list[str]:
        """The retrieved texts, in rank order."""
        if isinstance(self.answered, RunLog):
            return [passage.text for passage in self.answered.found_context.passages]
        return self.answered.context_texts

    @property
    def scores(self) -> list[float]:
        """Retriever's scores of the passages that have one."""
        if isinstance(self.answered, RunLog):
            scores = [passage.score for passage in self.answered.found_context.passages]
        else:
            scores = [each.score for each in self.answered.context if not isinstance(each, str)]
        return [score for score in scores if score is not None]

    @property
    def had_errors(self) -> bool:
        """True if something in the run failed and a retry, a fallback or a model made up for it."""
        return isinstance(self.answered, RunLog) and self.answered.had_errors


class SamplingRule(Protocol):
    """A rule with a name, a probability and a `matches`; called in the request path."""

    @property
    def name(self) -> str:
        """`sampling_reason` of runs that the rule chose."""

    @property
    def probability(self) -> float:
        """Chance of a matching run, in (0, 1]."""

    def matches(self, run: FinishedRun) -> bool:
        """Check whether the run matches; must depend on nothing but the run."""


@dataclass(frozen=True, kw_only=True)
class OnError:
    """Matches runs with an error in a retriever, tool or model that still gave an answer."""

    name: str = "error"
    probability: float = 1.0

    def matches(self, run: FinishedRun) -> bool:
        """Check whether something failed and a retry, a fallback or a model made up for it."""
        return run.had_errors


@dataclass(frozen=True)
class OnTag:
    """Matches runs with a tag.

    Args:
        tags: One or more tags; one match is enough.
    """

    tags: str | Collection[str]
    _: KW_ONLY
    name: str = "tag"
    probability: float = 1.0

    def matches(self, run: FinishedRun) -> bool:
        """Check whether the run has one of the tags."""
        wanted = (self.tags,) if isinstance(self.tags, str) else self.tags
        return any(tag in wanted for tag in run.tags)


@dataclass(frozen=True)
class OnLowScore:
    """Matches runs whose passages have low scores from the retriever.

    For scores where higher is better. Runs without scores never match.

    Args:
        below: The limit, in the retriever's own unit.
        which: `best`: even the best passage is below it; `any`: at least one is.
    """

    below: float
    _: KW_ONLY
    which: Literal["best", "any"] = "best"
    name: str = "low_score"
    probability: float = 1.0

    def __post_init__(self) -> None:
        if self.which not in {"best", "any"}:
            raise ConfigurationError(f"OnLowScore: which is 'best' or 'any', not {self.which!r}")
        _require_number("OnLowScore", self.below)

    def matches(self, run: FinishedRun) -> bool:
        """Check whether the best passage, or any, is below the limit."""
        scores = run.scores
        if not scores:
            return False
        return (max(scores) if self.which == "best" else min(scores)) < self.below


@dataclass(frozen=True)
class OnCondition:
    """Matches runs for which a function of the application returns true.

    The function runs inside the request: keep it fast. If it raises, the run does not match, and
    `stats().sampling["rule_errors"]` counts it.

    Args:
        condition: Takes a `FinishedRun`; must depend on nothing but the run.
    """

    condition: Callable[[FinishedRun], object]
    _: KW_ONLY
    name: str = "condition"
    probability: float = 1.0

    def __post_init__(self) -> None:
        if not callable(self.condition) or inspect.iscoroutinefunction(self.condition):
            raise ConfigurationError("OnCondition: give a plain function, not a coroutine function")

    def matches(self, run: FinishedRun) -> bool:
        """Call the function."""
        return bool(self.condition(run))


@dataclass(frozen=True, kw_only=True)
class OnFeedback:
    """Matches runs whose user reports afterwards that they were bad; see `Monitor.feedback`.

    Runs that were not sampled are held for a while, with their text, in this process's memory.

    Args:
        below: Feedback below this number is bad; False counts as 0, True as 1.
        hold: Seconds to hold a run.
        max_runs: Most held runs; the oldest is dropped first.
        max_bytes: Most bytes of their texts; the oldest is dropped first.
    """

    below: float = 0.5
    hold: float = 3600.0
    max_runs: int = 10_000
    max_bytes: int = 64 * 2**20
    name: str = "feedback"
    probability: float = 1.0

    def __post_init__(self) -> None:
        _require_number("OnFeedback", self.below)
        require_positive(
            "OnFeedback", hold=self.hold, max_runs=self.max_runs, max_bytes=self.max_bytes
        )

    def matches(self, run: FinishedRun) -> bool:  # noqa: ARG002 - as of every rule
        """Return False: at the end of a run there is no feedback yet."""
        return False

    def is_bad(self, value: float) -> bool:
        """Check whether this feedback calls for an evaluation."""
        return value < self.below


def _require_number(owner: str, below: object) -> None:
    if not isinstance(below, int | float) or math.isnan(below):
        raise ConfigurationError(f"{owner}: below must be a number, got {below!r}")


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Rates by pipeline and metric, rules, and a cap.

    A metric's rate in a pipeline is the lower one if both have a rate, the given one if one has,
    and `rate` if neither has.

    Args:
        rate: Share of runs to evaluate, 0 to 1; by default from `RAGALIQ_SAMPLE_RATE`, else 1.0.
        pipelines: Rates of pipelines, by name.
        metrics: Rates of metrics, by name.
        rules: Rules that evaluate runs beyond the rate; the highest probability applies. With
            rules, every run is captured to its end.
        max_per_minute: Most runs this process evaluates in a minute. Near it, the chance of every
            run is lowered, and recorded.

    Raises:
        ConfigurationError: A value is out of its range, or two rules have one name.
    """

    rate: float | None = None
    pipelines: Mapping[str, float] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    rules: Sequence[SamplingRule] = ()
    max_per_minute: int | None = None

    def __post_init__(self) -> None:
        if self.rate is not None:
            require_rate("Sampling: rate", self.rate)
        for what in ("pipelines", "metrics"):
            for name, rate in getattr(self, what).items():
                require_rate(f"Sampling: {what}[{name!r}]", rate)
        cap = self.max_per_minute
        if cap is not None and not (isinstance(cap, int) and cap > 0):
            raise ConfigurationError(
                f"Sampling: max_per_minute must be a whole number above 0, got {cap!r}"
            )
        names: set[str] = {"rate"}
        for rule in self.rules:
            if isinstance(rule, type) or not hasattr(rule, "matches"):
                raise ConfigurationError(
                    f"Sampling: {rule!r} is not a rule; give an object such as OnError() or "
                    "OnCondition(function)"
                )
            require_rate(f"Sampling: the probability of rule {rule.name!r}", rule.probability)
            if rule.probability == 0:
                raise ConfigurationError(f"Sampling: rule {rule.name!r} could never choose a run")
            if not isinstance(rule.name, str) or not rule.name or rule.name in names:
                raise ConfigurationError(
                    f"Sampling: the rule name {rule.name!r} is empty, taken or reserved; give each "
                    "rule a name of its own with name="
                )
            names.add(rule.name)
        if sum(isinstance(rule, OnFeedback) for rule in self.rules) > 1:
            raise ConfigurationError("Sampling: give one OnFeedback rule at most")

    @classmethod
    def everything(cls) -> Self:
        """Sampling of every run with every metric, for tests."""
        return cls(rate=1.0)

    @classmethod
    def nothing(cls) -> Self:
        """Sampling of no run, for tests; unlike a monitor that is off, runs are counted."""
        return cls(rate=0.0)


def require_rate(what: str, rate: object) -> None:
    """Refuse a rate that is not a share.

    Raises:
        ConfigurationError: It is not a number within [0, 1]; the message names the setting.
    """
    if not isinstance(rate, int | float) or not 0.0 <= rate <= 1.0:
        raise ConfigurationError(f"{what} must be within [0, 1], got {rate!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingResult:
    """Reason to evaluate a run, the chosen metrics, and their chances.

    Attributes:
        probability: The chance the run had of being evaluated at all, in (0, 1].
        metrics: The chosen metrics, each with the chance it had; empty for all of them.
        reason: `rate`, the name of the decisive rule, or `requested`.
        rules: The names of all rules the run matched.
        represents_traffic: False for a run that was chosen after its end.
    """

    probability: float = 1.0
    metrics: Mapping[str, float] = field(default_factory=dict)
    reason: str = "rate"
    rules: tuple[str, ...] = ()
    represents_traffic: bool = True


class SamplingDraw(NamedTuple):
    """A run's sampling number, drawn at its start.

    Attributes:
        position: The number, in [0, 1).
        result: The result, if it is certain already; None if it needs the finished run.
    """

    position: float
    result: SamplingResult | None
