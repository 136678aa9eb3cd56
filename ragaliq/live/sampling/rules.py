"""Rules that choose runs for what they are, beside the rate that chooses them by chance."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass
from typing import Literal, Protocol

from ragaliq.core.checks import require_positive
from ragaliq.errors import ConfigurationError
from ragaliq.live.sampling.finished import FinishedRun

__all__ = ["OnCondition", "OnError", "OnFeedback", "OnLowScore", "OnTag", "SamplingRule"]


class SamplingRule(Protocol):
    """Anything with a name, a probability and a `matches`; called in the request path."""

    @property
    def name(self) -> str:
        """The `sampling_reason` of runs the rule chose."""

    @property
    def probability(self) -> float:
        """The chance of a run that matches, in (0, 1]."""

    def matches(self, run: FinishedRun) -> bool:
        """Whether the rule is about this run; must depend on nothing but the run."""


@dataclass(frozen=True, kw_only=True)
class OnError:
    """Runs in which something failed and that answered all the same.

    A retriever, a tool or a model raised, and a retry, a fallback or a model made up for it.
    """

    name: str = "error"
    probability: float = 1.0

    def matches(self, run: FinishedRun) -> bool:
        """Whether something failed."""
        return run.had_errors


@dataclass(frozen=True)
class OnTag:
    """Runs that carry a tag.

    Args:
        tags: A tag, or several of which one is enough.
    """

    tags: str | Collection[str]
    _: KW_ONLY
    name: str = "tag"
    probability: float = 1.0

    def matches(self, run: FinishedRun) -> bool:
        """Whether the run carries one of the tags."""
        wanted = (self.tags,) if isinstance(self.tags, str) else self.tags
        return any(tag in wanted for tag in run.tags)


@dataclass(frozen=True)
class OnLowScore:
    """Runs whose passages the retriever itself found poor.

    For scores of which higher is better. Runs without any score never match.

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
        """Whether the best passage, or any, is below the limit."""
        scores = run.scores
        if not scores:
            return False
        return (max(scores) if self.which == "best" else min(scores)) < self.below


@dataclass(frozen=True)
class OnCondition:
    """Runs for which a function of yours is true.

    It runs inside the request: keep it quick. When it raises, the run does not match, and
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
        """What the function says."""
        return bool(self.condition(run))


@dataclass(frozen=True, kw_only=True)
class OnFeedback:
    """Runs whose user says afterwards that they were bad; see `Monitor.feedback`.

    Runs that nothing else chose are kept for a while, with their text, in this process's memory.

    Args:
        below: Feedback below this number is bad; False counts as 0, True as 1.
        hold: Seconds a run is kept.
        max_runs: Runs kept; beyond, the oldest is let go.
        max_bytes: Bytes of text kept; beyond, the oldest is let go.
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
        """False: when a run ends, nobody has said anything about it yet."""
        return False

    def is_bad(self, value: float) -> bool:
        """Whether this feedback calls for an evaluation."""
        return value < self.below


def _require_number(owner: str, below: object) -> None:
    if not isinstance(below, int | float) or math.isnan(below):
        raise ConfigurationError(f"{owner}: below must be a number, got {below!r}")
