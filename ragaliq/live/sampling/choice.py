"""What was decided about a run that is evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Choice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Why a run is evaluated, with which metrics, and what chance each had.

    Attributes:
        probability: The chance the run had of being evaluated at all, in (0, 1].
        metrics: The chosen metrics, each with the chance it had; empty for all of them.
        reason: `rate`, or the name of the rule that made the difference.
        rules: The names of all rules the run matched.
        represents_traffic: False for a run that was chosen when it was already over.
    """

    probability: float = 1.0
    metrics: Mapping[str, float] = field(default_factory=dict)
    reason: str = "rate"
    rules: tuple[str, ...] = ()
    represents_traffic: bool = True
