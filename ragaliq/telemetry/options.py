"""How telemetry is shaped: explicit choice, else the environment, else the default."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from opentelemetry import _logs, metrics, trace

from ragaliq.core.run import SpanTarget
from ragaliq.errors import ConfigurationError
from ragaliq.telemetry import names

__all__ = ["ClaimDetailLevel", "OnUnsampled", "Relation", "TelemetryOptions"]

Relation = Literal["link", "child"]
"""How an evaluation's spans relate to the evaluated span."""

ClaimDetailLevel = Literal["spans", "arrays", "none"]
"""How much is said about each claim: a span, an entry in arrays on the metric's span, nothing."""

OnUnsampled = Literal["metrics", "all", "none"]
"""What is emitted about a run whose own span the application's sampler did not take."""


@dataclass(frozen=True, kw_only=True)
class TelemetryOptions:
    """The shape of what is emitted, and through which providers.

    The first three come from the environment where they are not given, and are never None after
    construction.

    Attributes:
        relation: `link`: a trace of its own with one link to the evaluated span (the default);
            `child`: spans in the evaluated trace. By default `RAGALIQ_TELEMETRY_RELATION`.
        claim_detail: `spans` (the default), `arrays` or `none`. By default
            `RAGALIQ_TELEMETRY_CLAIM_DETAIL`.
        on_unsampled: What to emit about a run whose span is not sampled: `metrics` (the default),
            `all`, or `none`. By default `RAGALIQ_TELEMETRY_ON_UNSAMPLED`.
        tracer_provider: For spans; the process's own when None.
        logger_provider: For events; the process's own when None.
        meter_provider: For metrics; the process's own when None.

    Raises:
        ConfigurationError: A choice is none of those named above.
    """

    relation: Relation | None = None
    claim_detail: ClaimDetailLevel | None = None
    on_unsampled: OnUnsampled | None = None
    tracer_provider: trace.TracerProvider | None = None
    logger_provider: _logs.LoggerProvider | None = None
    meter_provider: metrics.MeterProvider | None = None

    def __post_init__(self) -> None:
        self._settle("relation", Relation, names.ENV_RELATION)
        self._settle("claim_detail", ClaimDetailLevel, names.ENV_CLAIM_DETAIL)
        self._settle("on_unsampled", OnUnsampled, names.ENV_ON_UNSAMPLED)

    def scope_of(self, target: SpanTarget | None) -> OnUnsampled:
        """What is emitted about a run with this target."""
        if target is None or target.is_sampled:
            return "all"
        return self.on_unsampled or "metrics"

    def _settle(self, field: str, choices: Any, variable: str) -> None:
        allowed = get_args(choices)
        given = getattr(self, field)
        where = f"TelemetryOptions: {field}"
        if given is None:
            where, given = variable, _from_environment(variable, os.environ) or allowed[0]
        if given not in allowed:
            listed = ", ".join(allowed)
            raise ConfigurationError(f"{where} must be one of {listed}, got {given!r}")
        object.__setattr__(self, field, given)


def _from_environment(variable: str, environ: Mapping[str, str]) -> str:
    return environ.get(variable, "").strip().lower()
