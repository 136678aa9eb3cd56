"""An estimated figure with its interval."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Estimate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure and how far it can be trusted.

    Attributes:
        value: The estimate.
        low: Lower end of the interval.
        high: Upper end of the interval.
        method: How the interval was made, such as `wilson` or `bca_bootstrap`.
        n: Number of values it rests on.
        effective_n: How many equally weighted values would tell as much; `n` without weights.
        confidence: How often such intervals hold the true figure, 0.95 by default.
    """

    value: float
    low: float
    high: float
    method: str
    n: int
    effective_n: float
    confidence: float = 0.95

    @property
    def interval(self) -> tuple[float, float]:
        """The lower and the upper end."""
        return self.low, self.high

    @property
    def width(self) -> float:
        """The length of the interval."""
        return self.high - self.low
