"""A run on its way to the judge, and what comes back. Jobs are plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from ragaliq.core.results import EvaluationResult
from ragaliq.core.run import EvaluatedRun, SpanTarget
from ragaliq.core.test_case import RAGTestCase

__all__ = ["Job", "LiveResult"]


class Job(BaseModel):
    """One run to evaluate; can be written as JSON and read in another process."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    case: RAGTestCase
    run: EvaluatedRun


@dataclass(frozen=True, kw_only=True)
class LiveResult:
    """One evaluated run, as `on_result` receives it.

    Attributes:
        case: Question, context and answer.
        results: Metric name to result.
        run: Where the answer came from and how it was chosen.
        lag: Seconds between the end of the run and the start of its evaluation.
    """

    case: RAGTestCase
    results: Mapping[str, EvaluationResult]
    run: EvaluatedRun
    lag: float

    @property
    def sampling_probability(self) -> float:
        """The chance this run had of being evaluated."""
        return self.run.sampling_probability

    @property
    def target(self) -> SpanTarget | None:
        """The span the evaluation speaks about."""
        return self.run.target

    @property
    def pipeline(self) -> str:
        """The application's name for the chain."""
        return self.run.pipeline
