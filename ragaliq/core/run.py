"""The application run that is evaluated, as plain data that can cross a queue or a process."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class SpanTarget(BaseModel):
    """Span that an evaluation refers to.

    Attributes:
        trace_id: 32 lower-case hex digits.
        span_id: 16 lower-case hex digits.
        trace_flags: W3C trace flags; bit 0 says whether the span is sampled.
        source: How the span was found, such as `openinference` or `ambient`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    trace_id: str = Field(pattern=r"^[0-9a-f]{32}$")
    span_id: str = Field(pattern=r"^[0-9a-f]{16}$")
    trace_flags: int = 1
    source: str = "ambient"

    @property
    def is_sampled(self) -> bool:
        """True if the span itself is recorded by its tracer."""
        return bool(self.trace_flags & 1)


class RunInfo(BaseModel):
    """Origin of an answer, and how it was sampled for evaluation.

    Attributes:
        run_id: The framework's id of the run.
        pipeline: The application's name for the chain; may be empty.
        framework: `langchain`, `llama_index`, or empty for cases submitted directly.
        target: The span to link to, when one was found.
        sampling_probability: The chance this run had of being evaluated, in (0, 1].
        sampling_reason: Why it was chosen: `rate`, or the name of a rule.
        sampling_rules: The names of all rules it matched, decisive or not.
        metric_probabilities: The chosen metrics, each with the chance it had of being evaluated for
            this run; empty where all were, with `sampling_probability`.
        represents_traffic: False for a run that was chosen after its end because its user
            complained. The rate had already sampled those runs when they ended, so estimates over
            all traffic exclude them; see `weight`.
        session_id: The conversation, when the application names it.
        response_id: The model's id of the response, when known.
        model: Name of the application's model that answered, when known.
        ended_at: Unix time in seconds when the application's run ended.
        release: The application's release, its resource's `service.version`; empty where none is
            known.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str
    pipeline: str = ""
    framework: Literal["", "langchain", "llama_index"] = ""
    target: SpanTarget | None = None
    sampling_probability: float = Field(default=1.0, gt=0.0, le=1.0)
    sampling_reason: str = "rate"
    sampling_rules: tuple[str, ...] = ()
    metric_probabilities: dict[str, Annotated[float, Field(gt=0.0, le=1.0)]] = Field(
        default_factory=dict
    )
    represents_traffic: bool = True
    session_id: str | None = None
    response_id: str | None = None
    model: str | None = None
    ended_at: float = 0.0
    release: str = ""

    def weight(self, metric: str) -> float:
        """Number of runs this one represents in estimates of `metric` over all traffic.

        One over its chance (Horvitz and Thompson 1952); 0.0 if it represents no traffic or was not
        evaluated with the metric.
        """
        if not self.represents_traffic:
            return 0.0
        if not self.metric_probabilities:
            return 1.0 / self.sampling_probability
        chance = self.metric_probabilities.get(metric)
        return 1.0 / chance if chance else 0.0
