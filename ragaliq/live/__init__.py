"""Production traffic: sampled, queued and scored off the request path."""

from ragaliq.core.suppression import is_suppressed, suppress
from ragaliq.live.lifespan import lifespan
from ragaliq.live.monitor import Monitor
from ragaliq.live.run import RunHandle
from ragaliq.live.sampling import (
    FinishedRun,
    OnCondition,
    OnError,
    OnFeedback,
    OnLowScore,
    OnTag,
    Sampling,
    SamplingRule,
)
from ragaliq.live.stats import MonitorStats
from ragaliq.scoring.limits.breaker import CircuitBreaker
from ragaliq.scoring.limits.budget import Budget, BudgetLine
from ragaliq.scoring.limits.rate_limits import RateLimits

__all__ = [
    "Budget",
    "BudgetLine",
    "CircuitBreaker",
    "FinishedRun",
    "Monitor",
    "MonitorStats",
    "OnCondition",
    "OnError",
    "OnFeedback",
    "OnLowScore",
    "OnTag",
    "RateLimits",
    "RunHandle",
    "Sampling",
    "SamplingRule",
    "is_suppressed",
    "lifespan",
    "suppress",
]
