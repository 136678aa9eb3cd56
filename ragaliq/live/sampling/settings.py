"""What the application says about sampling."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from ragaliq.errors import ConfigurationError
from ragaliq.live.sampling.rules import OnFeedback, SamplingRule

__all__ = ["Sampling", "require_rate"]


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Which runs are evaluated, and with which metrics.

    A metric's rate in a pipeline is the lower of the two where both have a rate of their own, the
    one that is given where one has, and `rate` where neither has.

    Args:
        rate: Share of runs to evaluate, 0 to 1; by default from `RAGALIQ_SAMPLE_RATE`, else 1.0.
        pipelines: Rates of pipelines, by name.
        evaluators: Rates of metrics, by name.
        rules: What is evaluated beside the rate; a run that matches several things has the highest
            of their probabilities. Rules need the end of a run, so every run is followed.
        max_per_minute: Runs this process evaluates in a minute at most; where there would be more,
            every chance is lowered, and what is recorded is the lowered one.

    Raises:
        ConfigurationError: A value is out of its range, or two rules have one name.
    """

    rate: float | None = None
    pipelines: Mapping[str, float] = field(default_factory=dict)
    evaluators: Mapping[str, float] = field(default_factory=dict)
    rules: Sequence[SamplingRule] = ()
    max_per_minute: int | None = None

    def __post_init__(self) -> None:
        if self.rate is not None:
            require_rate("Sampling: rate", self.rate)
        for what in ("pipelines", "evaluators"):
            for name, rate in getattr(self, what).items():
                require_rate(f"Sampling: {what}[{name!r}]", rate)
        if self.max_per_minute is not None and not (
            isinstance(self.max_per_minute, int) and self.max_per_minute > 0
        ):
            raise ConfigurationError(
                f"Sampling: max_per_minute must be a whole number above 0, "
                f"got {self.max_per_minute!r}"
            )
        _check_rules(self.rules)

    @classmethod
    def everything(cls) -> Self:
        """Every run with every metric, for tests."""
        return cls(rate=1.0)

    @classmethod
    def nothing(cls) -> Self:
        """No run at all, for tests; unlike a monitor that is off, it still counts."""
        return cls(rate=0.0)

    def require(self, metrics: Collection[str]) -> None:
        """Check that the evaluators named are there.

        Raises:
            ConfigurationError: One is not.
        """
        unknown = sorted(set(self.evaluators) - set(metrics))
        if unknown:
            raise ConfigurationError(
                f"Sampling: evaluators names {', '.join(unknown)}, but the monitor measures "
                f"{', '.join(metrics)}"
            )


def require_rate(what: str, rate: object) -> None:
    """Refuse what is no share.

    Raises:
        ConfigurationError: It is not a number within [0, 1]; the message says what it is for.
    """
    if not isinstance(rate, int | float) or not 0.0 <= rate <= 1.0:
        raise ConfigurationError(f"{what} must be within [0, 1], got {rate!r}")


def _check_rules(rules: Sequence[SamplingRule]) -> None:
    names: set[str] = {"rate"}
    for rule in rules:
        if isinstance(rule, type) or not hasattr(rule, "matches"):
            raise ConfigurationError(
                f"Sampling: {rule!r} is no rule; give an object such as OnError() or "
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
    if sum(isinstance(rule, OnFeedback) for rule in rules) > 1:
        raise ConfigurationError("Sampling: give one OnFeedback rule at most")
