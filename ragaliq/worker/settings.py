"""What a worker does with jobs: the settings a monitor has where it judges by itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ragaliq.core.checks import require_kind, require_positive
from ragaliq.core.policy import ScoringPolicy
from ragaliq.errors import ConfigurationError
from ragaliq.evaluators.registry import EvaluatorSpec
from ragaliq.judges.resolve import CalibrationSpec, JudgeSpec
from ragaliq.records.sinks import SinkSpec
from ragaliq.scoring.limits.breaker import CircuitBreaker
from ragaliq.scoring.limits.budget import Budget
from ragaliq.scoring.limits.rate_limits import RateLimits
from ragaliq.telemetry.content import Redactor
from ragaliq.telemetry.emit import TelemetryOptions

__all__ = ["WorkerSettings"]


@dataclass(frozen=True, kw_only=True)
class WorkerSettings:
    """What a worker does, for `ragaliq worker --app module:name`; as the arguments of `Monitor`.

    Attributes:
        judge: As in `Monitor`.
        calibration: As in `Monitor`.
        evaluators: The metrics that jobs may ask for; by default faithfulness, and relevance where
            the judge is a language model.
        policy: As in `Monitor`.
        deadline: Seconds for each metric of a job.
        budget: Limits on cost; for each process, unless they share a storage.
        judge_limits: Limits on the judge's calls; likewise.
        breaker: When to pause a failing judge; jobs wait for half of `time_limit`, and then go to
            the end of the queue.
        sinks: As in `Monitor`.
        capture_content: As in `Monitor`.
        redact: As in `Monitor`.
        redact_for_judge: As in `Monitor`.
        telemetry: As in `Monitor`.
        attempts: Attempts at a job whose judge failed altogether; the last failure counts.
        backoff: Seconds before the second attempt, doubled for each further one.
        max_deliveries: Deliveries of a job to workers that die; after them it becomes a dead
            letter.
        time_limit: Seconds for a job with all attempts; after them it becomes a dead letter. A dead
            worker's job goes to another one a little later.

    Raises:
        ConfigurationError: A limit is not positive, or something is of the wrong kind.
    """

    judge: JudgeSpec | str | None = None
    calibration: CalibrationSpec | None = None
    evaluators: Iterable[EvaluatorSpec] | None = None
    policy: ScoringPolicy = ScoringPolicy.LIVE
    deadline: float = 60.0
    budget: Budget | None = None
    judge_limits: RateLimits | None = None
    breaker: CircuitBreaker | None = CircuitBreaker()
    sinks: Iterable[SinkSpec] = ()
    capture_content: bool | None = None
    redact: Redactor | None = None
    redact_for_judge: Redactor | None = None
    telemetry: TelemetryOptions | None = None
    attempts: int = 3
    backoff: float = 2.0
    max_deliveries: int = 5
    time_limit: float = 300.0

    def __post_init__(self) -> None:
        # Read more than once.
        for name in ("evaluators", "sinks"):
            given = getattr(self, name)
            if given is not None and not isinstance(given, str):  # which its reader refuses
                object.__setattr__(self, name, tuple(given))
        require_positive(
            "WorkerSettings",
            deadline=self.deadline,
            attempts=self.attempts,
            backoff=self.backoff,
            max_deliveries=self.max_deliveries,
            time_limit=self.time_limit,
        )
        require_kind(Budget, budget=self.budget)
        require_kind(RateLimits, judge_limits=self.judge_limits)
        require_kind(CircuitBreaker, breaker=self.breaker)
        if self.time_limit <= self.deadline:
            raise ConfigurationError(
                f"WorkerSettings: time_limit ({self.time_limit:g} s) must be longer than deadline "
                f"({self.deadline:g} s): a job has several attempts"
            )

    @property
    def hold(self) -> float:
        """Seconds after which a job that a worker holds goes to another one."""
        return self.time_limit + min(30.0, max(1.0, self.time_limit / 10))
