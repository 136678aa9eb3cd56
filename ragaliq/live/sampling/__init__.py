"""Which runs are evaluated, with which metrics, and with what chance."""

from ragaliq.live.sampling.choice import Choice
from ragaliq.live.sampling.finished import FinishedRun
from ragaliq.live.sampling.rules import (
    OnCondition,
    OnError,
    OnFeedback,
    OnLowScore,
    OnTag,
    SamplingRule,
)
from ragaliq.live.sampling.sampler import Sampler, SamplingDecision
from ragaliq.live.sampling.settings import Sampling

__all__ = [
    "Choice",
    "FinishedRun",
    "OnCondition",
    "OnError",
    "OnFeedback",
    "OnLowScore",
    "OnTag",
    "Sampler",
    "Sampling",
    "SamplingDecision",
    "SamplingRule",
]
