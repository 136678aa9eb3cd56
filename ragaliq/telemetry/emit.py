"""Evaluations as traces of their own, events and measurements; nothing here raises into the caller.

A trace is new and linked to the evaluated span: a late child would stretch the application's
trace and may miss a collector's tail-sampling window.
"""

from __future__ import annotations

import copy
import logging
import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args

from opentelemetry import _logs, metrics, trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
)

from ragaliq._version import __version__
from ragaliq.core.results import ClaimDetail, EvaluationResult
from ragaliq.core.run import RunInfo, SpanTarget
from ragaliq.errors import ConfigurationError
from ragaliq.telemetry import names
from ragaliq.telemetry.attributes import (
    ClaimDetailLevel,
    claim_arrays,
    claim_attributes,
    metric_attributes,
    root_attributes,
    summary_attributes,
)
from ragaliq.telemetry.content import ContentPolicy, identifier
from ragaliq.telemetry.metrics import Counts, MetricsRecorder, Queue, RunReadings, run_readings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.sampling import Sampler

__all__ = [
    "Emission",
    "Emitter",
    "OnUnsampled",
    "Relation",
    "TelemetryOptions",
    "current_span_target",
    "following_links",
    "span_target",
    "target_context",
    "target_span_context",
    "unsampled_context",
]

logger = logging.getLogger(__name__)

Relation = Literal["link", "child"]
"""How an evaluation's spans relate to the evaluated span."""

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

    @classmethod
    def silent(cls) -> TelemetryOptions:
        """Options with which nothing is emitted, such as for evaluations that are only tried."""
        return cls(
            tracer_provider=trace.NoOpTracerProvider(),
            logger_provider=_logs.NoOpLoggerProvider(),
            meter_provider=metrics.NoOpMeterProvider(),
        )

    def _settle(self, field: str, choices: Any, variable: str) -> None:
        allowed = get_args(choices)
        given = getattr(self, field)
        where = f"TelemetryOptions: {field}"
        if given is None:
            where, given = variable, os.environ.get(variable, "").strip().lower() or allowed[0]
        if given not in allowed:
            listed = ", ".join(allowed)
            raise ConfigurationError(f"{where} must be one of {listed}, got {given!r}")
        object.__setattr__(self, field, given)


def span_target(context: trace.SpanContext, *, source: str) -> SpanTarget | None:
    """The target for a span context, or None where it is not valid.

    Args:
        context: The span's context.
        source: How it was found, such as `openinference` or `ambient`.
    """
    if not context.is_valid:
        return None
    return SpanTarget(
        trace_id=f"{context.trace_id:032x}",
        span_id=f"{context.span_id:016x}",
        trace_flags=int(context.trace_flags),
        source=source,
    )


def current_span_target(*, source: str = "ambient") -> SpanTarget | None:
    """The current span as a target, or None outside any span; never raises."""
    try:
        return span_target(trace.get_current_span().get_span_context(), source=source)
    except Exception as error:  # noqa: BLE001 - another library's span may do anything
        logger.debug("the current span could not be read: %s", type(error).__name__)
        return None


def target_span_context(target: SpanTarget) -> SpanContext:
    """The target as OpenTelemetry's API names a span elsewhere."""
    return SpanContext(
        trace_id=int(target.trace_id, 16),
        span_id=int(target.span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(target.trace_flags),
    )


def target_context(target: SpanTarget | None) -> Context:
    """A context in which the target is the current span; an empty one without a target."""
    if target is None:
        return Context()
    return trace.set_span_in_context(NonRecordingSpan(target_span_context(target)), Context())


def unsampled_context() -> Context:
    """A context in a trace that nobody records."""
    unsampled = SpanContext(
        trace_id=secrets.randbits(128) or 1, span_id=secrets.randbits(64) or 1, is_remote=True
    )
    return trace.set_span_in_context(NonRecordingSpan(unsampled), Context())


class Emitter:
    """Emits evaluations through the options' providers, or the process's own.

    Args:
        content: Whether text may be emitted.
        options: The shape of what is emitted.

    Attributes:
        content: Whether text may be emitted.
        options: The shape of what is emitted.
        metrics: Records metrics.
    """

    def __init__(
        self, content: ContentPolicy | None = None, options: TelemetryOptions | None = None
    ) -> None:
        self.content = content or ContentPolicy()
        self.options = options or TelemetryOptions()
        self._tracer: tuple[trace.TracerProvider, trace.Tracer] | None = None
        self._readings: RunReadings | None = None
        self._complained = False
        try:
            self.metrics = MetricsRecorder(self.options.meter_provider)
        except Exception as error:  # noqa: BLE001 - another library's provider may do anything
            self.complain("making instruments", error)
            self.metrics = MetricsRecorder(metrics.NoOpMeterProvider())

    def watch(self, queue: Queue, counts: Counts) -> None:
        """Report a monitor's queue and counts whenever metrics are collected."""
        try:
            # Looked up once: a forked child must not wait for a lock its parent held.
            self._readings = self._readings or run_readings(self.options.meter_provider)
            self._readings.watch(queue, counts)
        except Exception as error:  # noqa: BLE001 - another library's provider may do anything
            self.complain("making instruments", error)

    def unjudged(self, pipeline: str, results: Mapping[str, EvaluationResult]) -> None:
        """Count the results of a run that was kept from the judge; it makes no spans or events."""
        try:
            self.metrics.unjudged(pipeline, results)
        except Exception as error:  # noqa: BLE001 - telemetry must not stop the worker
            self.complain("recording metrics", error)

    @contextmanager
    def evaluation(self, run: RunInfo, *, lag: float = 0.0) -> Iterator[Emission]:
        """Open the root span of an evaluation and make it current, so that a judge's spans nest.

        The span is ended in every case, cancellation included.

        Args:
            run: The evaluated run.
            lag: Seconds between the end of the run and now.
        """
        emission = Emission(self, run, lag)
        token = None
        try:
            token = attach(emission.open())
        except Exception as error:  # noqa: BLE001 - telemetry must not stop the evaluation
            self.complain("opening an evaluation span", error)
        try:
            yield emission
        except BaseException:
            emission.failed()
            raise
        finally:
            if token is not None:
                detach(token)
            emission.close()

    @property
    def tracer(self) -> trace.Tracer:
        """The tracer; a new one when the application has set its provider meanwhile."""
        provider = self.options.tracer_provider or trace.get_tracer_provider()
        if self._tracer is None or self._tracer[0] is not provider:
            tracer = following_links(
                provider.get_tracer(names.SCOPE, __version__, names.SCHEMA_URL),
                all_targets=self.options.on_unsampled == "all",
            )
            self._tracer = provider, tracer
        return self._tracer[1]

    def event_logger(self) -> _logs.Logger | None:
        """Where events go, or None where the application has set up no logger provider."""
        provider = self.options.logger_provider or _logs.get_logger_provider()
        # The API's own providers (proxy, no-op) swallow everything.
        if type(provider).__module__.startswith("opentelemetry._logs"):
            return None
        return provider.get_logger(names.SCOPE, __version__, names.SCHEMA_URL)

    def complain(self, what: str, error: Exception) -> None:
        """Log a telemetry failure, the first time only, without any content."""
        if not self._complained:
            self._complained = True
            logger.warning(
                "telemetry failed while %s (%s); further failures are not logged",
                what,
                type(error).__name__,
            )


_LONGEST = 7 * 86_400.0  # seconds; a start before 1970 would cost the exporter its whole batch


class Emission:
    """The open telemetry of one evaluation.

    Args:
        emitter: Where it goes.
        run: The evaluated run.
        lag: Seconds between the end of the run and the start of its evaluation.
    """

    def __init__(self, emitter: Emitter, run: RunInfo, lag: float) -> None:
        self._emitter = emitter
        self._run = run
        self._lag = lag
        self._scope: OnUnsampled = "all"
        if run.target is not None and not run.target.is_sampled:
            self._scope = emitter.options.on_unsampled or "metrics"
        self._root: trace.Span = trace.INVALID_SPAN
        self._context = Context()

    def open(self) -> Context:
        """Start the root span; returns the context in which it is current."""
        if self._scope != "all":
            # Not an empty context: a judge that traces itself would begin traces of its own.
            self._context = unsampled_context()
            return self._context
        target = self._run.target
        child = self._emitter.options.relation == "child"
        self._root = self._emitter.tracer.start_span(
            f"{names.SPAN_EVALUATION} {identifier(self._run.pipeline)}".strip(),
            context=target_context(target) if child else Context(),
            kind=SpanKind.INTERNAL,
            attributes=root_attributes(self._run, self._lag),
            links=[Link(target_span_context(target))] if target and not child else [],
        )
        self._context = trace.set_span_in_context(self._root, Context())
        return self._context

    def record(self, results: Mapping[str, EvaluationResult]) -> None:
        """Emit the results: attributes on the root, a span and an event for each metric."""
        with self._contained("recording what was spent"):
            self._emitter.metrics.spent(self._run, results)
        if self._scope != "none":
            with self._contained("recording metrics"):
                self._emitter.metrics.evaluated(
                    self._run, results, lag=self._lag, target=target_context(self._run.target)
                )
        if self._scope != "all":
            return
        if any(result.status.is_failure for result in results.values()):
            self.failed()
        with self._contained("recording an evaluation"):
            self._root.set_attributes(summary_attributes(results, self._emitter.content))
        detailed: list[tuple[ClaimDetail, ...]] = []
        for result in results.values():
            # Metrics that share a claim check hold the same claims: detail them once.
            claims = () if result.claims in detailed else result.claims
            detailed.append(result.claims)
            with self._contained("recording a metric"):
                self._record_metric(result, claims)

    def failed(self) -> None:
        """Say that the evaluation itself failed."""
        with self._contained("recording a failure"):
            self._root.set_status(StatusCode.ERROR, "evaluation failed")

    def close(self) -> None:
        """End the root span."""
        with self._contained("ending an evaluation span"):
            self._root.end()

    @contextmanager
    def _contained(self, what: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - telemetry must not stop the evaluation
            self._emitter.complain(what, error)

    def _record_metric(self, result: EvaluationResult, claims: tuple[ClaimDetail, ...]) -> None:
        content, detail = self._emitter.content, self._emitter.options.claim_detail
        ended = time.time_ns()
        # An evaluator of the user's own may give any number of seconds.
        duration = result.duration or 0.0
        started = ended - int(duration * 1e9) if 0.0 <= duration <= _LONGEST else ended
        attributes = metric_attributes(result, content, captured=content.on_spans, detail=detail)
        attributes[names.SPAN_KIND] = names.SPAN_KIND_EVALUATOR
        chance = self._run.metric_probabilities.get(result.evaluator_name)
        if chance is not None:
            attributes[names.SAMPLING_PROBABILITY] = chance
        if detail == "arrays" and claims:
            attributes.update(claim_arrays(claims, content))
        span: trace.Span = trace.INVALID_SPAN
        with self._contained("starting a metric's span"):  # the event may arrive all the same
            span = self._emitter.tracer.start_span(
                f"{names.SPAN_EVALUATION} {identifier(result.evaluator_name)}",
                context=self._context,
                attributes=attributes,
                start_time=started,
            )
        try:
            if result.status.is_failure:
                span.set_status(StatusCode.ERROR, identifier(result.error_type or ""))
            if detail == "spans" and span.get_span_context().is_valid:
                within = trace.set_span_in_context(span, Context())
                for index, claim in enumerate(claims[: names.MAX_CLAIM_SPANS]):
                    own = claim_attributes(index, claim, content)
                    own[names.SPAN_KIND] = names.SPAN_KIND_EVALUATOR
                    self._emitter.tracer.start_span(
                        names.SPAN_CLAIM, context=within, attributes=own, start_time=started
                    ).end(ended)
            self._record_event(result, span, chance)
        finally:
            span.end(ended)

    def _record_event(
        self, result: EvaluationResult, span: trace.Span, chance: float | None
    ) -> None:
        own, content = span.get_span_context(), self._emitter.content
        detail = self._emitter.options.claim_detail
        attributes = metric_attributes(result, content, captured=content.on_events, detail=detail)
        if span.is_recording():  # it is not where only a logger provider is set up
            attributes[names.EVALUATION_TRACE_ID] = trace.format_trace_id(own.trace_id)
            attributes[names.EVALUATION_SPAN_ID] = trace.format_span_id(own.span_id)
        attributes[names.SAMPLING_PROBABILITY] = (
            self._run.sampling_probability if chance is None else chance
        )
        if self._run.pipeline:
            attributes[names.PIPELINE_NAME] = identifier(self._run.pipeline)
        if self._run.response_id:
            attributes[names.RESPONSE_ID] = identifier(self._run.response_id)
        event_logger = self._emitter.event_logger()
        if event_logger is None:
            # Span events are on their way out: only where there is no other carrier.
            span.add_event(names.EVENT_RESULT, attributes)
            return
        failed = result.status.is_failure
        event_logger.emit(
            _logs.LogRecord(
                timestamp=time.time_ns(),
                context=target_context(self._run.target),
                severity_number=_logs.SeverityNumber.WARN if failed else _logs.SeverityNumber.INFO,
                severity_text="WARN" if failed else "INFO",
                attributes=attributes,
                event_name=names.EVENT_RESULT,
            )
        )


_SDK = "opentelemetry.sdk.trace"


def following_links(tracer: trace.Tracer, *, all_targets: bool) -> trace.Tracer:
    """A tracer whose linked root spans are sampled as the span they link to.

    Spans with a parent follow their parent; roots without a link are left to the application's
    sampler. Where `tracer` is not the SDK's it is returned as it is.

    Args:
        tracer: Ragaliq's own tracer.
        all_targets: Record linked roots even where the linked span was not sampled.
    """
    sdk: Any = sys.modules.get(_SDK)
    if sdk is None or type(tracer) is not sdk.Tracer:
        return tracer
    following = copy.copy(tracer)
    following.sampler = _sampler_class()(tracer.sampler, all_targets=all_targets)  # type: ignore[attr-defined]
    return following


@cache
def _sampler_class() -> Any:
    # Loaded only where the application has loaded the SDK already.
    from opentelemetry.sdk.trace import sampling

    class FollowingSampler(sampling.Sampler):
        def __init__(self, roots: Sampler, *, all_targets: bool) -> None:
            self._roots = roots
            self._all_targets = all_targets

        def should_sample(  # noqa: PLR0917 - the SDK's signature
            self,
            parent_context: Any,
            trace_id: int,
            name: str,
            kind: Any = None,
            attributes: Any = None,
            links: Any = None,
            trace_state: Any = None,
        ) -> sampling.SamplingResult:
            parent = trace.get_current_span(parent_context).get_span_context()
            if parent.is_valid:
                # A remote parent is the evaluated span itself, with `relation="child"`.
                sampled = parent.trace_flags.sampled or (self._all_targets and parent.is_remote)
            elif links:
                sampled = links[0].context.trace_flags.sampled or self._all_targets
            else:
                return self._roots.should_sample(
                    parent_context, trace_id, name, kind, attributes, links, trace_state
                )
            if sampled:
                return sampling.SamplingResult(
                    sampling.Decision.RECORD_AND_SAMPLE, attributes, parent.trace_state
                )
            return sampling.SamplingResult(sampling.Decision.DROP)

        def get_description(self) -> str:
            return f"FollowLinkedSpan({self._roots.get_description()})"

    return FollowingSampler
