"""Evaluations as traces of their own, events and measurements; errors never reach the caller.

Each trace is new and linked to the evaluated span: a late child would lengthen the application's
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
from typing import Any, Literal, get_args

from opentelemetry import _logs, metrics, trace
from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, StatusCode, TraceFlags

from ragaliq._private import is_stand_in
from ragaliq._version import __version__
from ragaliq.core.log_once import LogOnce
from ragaliq.core.results import ClaimDetail, EvaluationResult
from ragaliq.core.run import RunInfo, SpanTarget
from ragaliq.core.test_case import ChunkId, RAGTestCase
from ragaliq.errors import ConfigurationError
from ragaliq.telemetry import names
from ragaliq.telemetry.attributes import (
    Attributes,
    ClaimDetailLevel,
    claim_arrays,
    claim_attributes,
    document_sources,
    explanation,
    known,
    metadata_attributes,
    result_attributes,
    root_attributes,
    summary_attributes,
)
from ragaliq.telemetry.content import ContentPolicy, identifier
from ragaliq.telemetry.metrics import (
    Counts,
    Queue,
    RunReadings,
    metrics_recorder,
    run_readings,
)

logger = logging.getLogger(__name__)

_PROJECT = "openinference.project.name"
_NO_METRICS = metrics.NoOpMeterProvider()
_FAILED = StatusCode.ERROR, "evaluation failed"
_LONGEST = 7 * 86_400.0  # seconds; a start before 1970 would cost the exporter its whole batch

Relation = Literal["link", "child"]
"""How an evaluation's spans relate to the evaluated span."""

OnUnsampled = Literal["metrics", "all", "none"]
"""What is emitted about a run whose own span the application's sampler did not take."""


@dataclass(frozen=True, kw_only=True)
class TelemetryOptions:
    """Shape of the telemetry, and the providers it goes through.

    The first three default to the environment and are never None after construction.

    Attributes:
        relation: `link` (the default): a separate trace with a link to the evaluated span; `child`:
            spans in the evaluated trace. By default from `RAGALIQ_TELEMETRY_RELATION`.
        claim_detail: `spans` (the default), `arrays` or `none`. By default from
            `RAGALIQ_TELEMETRY_CLAIM_DETAIL`.
        on_unsampled: Telemetry of a run whose span is not sampled: `metrics` (the default), `all`
            or `none`. By default from `RAGALIQ_TELEMETRY_ON_UNSAMPLED`.
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
        for field, choices, variable in (
            ("relation", Relation, names.ENV_RELATION),
            ("claim_detail", ClaimDetailLevel, names.ENV_CLAIM_DETAIL),
            ("on_unsampled", OnUnsampled, names.ENV_ON_UNSAMPLED),
        ):
            allowed = get_args(choices)
            where, given = f"TelemetryOptions: {field}", getattr(self, field)
            if given is None:
                where, given = variable, os.environ.get(variable, "").strip().lower() or allowed[0]
            if given not in allowed:
                raise ConfigurationError(
                    f"{where} must be one of {', '.join(allowed)}, got {given!r}"
                )
            object.__setattr__(self, field, given)

    @classmethod
    def silent(cls) -> TelemetryOptions:
        """Options that emit nothing, such as for a trial evaluation."""
        return cls(
            tracer_provider=trace.NoOpTracerProvider(),
            logger_provider=_logs.NoOpLoggerProvider(),
            meter_provider=metrics.NoOpMeterProvider(),
        )


def span_target(context: SpanContext, *, source: str) -> SpanTarget | None:
    """Target for a span context; None if the context is not valid.

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


def current_span_target() -> SpanTarget | None:
    """Target for the current span; None outside any span. Never raises."""
    try:
        if not get_current():
            return None  # asked several times in every request, most of which are not traced
        span = trace.get_current_span()
        untraced = span is trace.INVALID_SPAN
        return None if untraced else span_target(span.get_span_context(), source="ambient")
    except Exception as error:  # noqa: BLE001 - another library's span may do anything
        logger.debug("the current span could not be read: %s", type(error).__name__)
        return None


def target_context(target: SpanTarget | None) -> Context:
    """Context in which the target is the current span; an empty one without a target."""
    if target is None:
        return Context()
    span = SpanContext(
        trace_id=int(target.trace_id, 16),
        span_id=int(target.span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(target.trace_flags),
    )
    return trace.set_span_in_context(NonRecordingSpan(span), Context())


class Emitter:
    """Emits evaluations through the options' providers, or the process's own.

    Attributes:
        content: Whether text may be emitted; by default it may not.
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
        self._log_once = LogOnce(logger)
        self.metrics = metrics_recorder(_NO_METRICS)
        with self.contained("making instruments"):
            self.metrics = metrics_recorder(self.options.meter_provider)

    def watch(self, queue: Queue, counts: Counts, *, owner: object) -> None:
        """Report a monitor's queue and counts whenever metrics are collected."""
        with self.contained("making instruments"):
            # Looked up once: a forked child must not wait for a lock its parent held.
            self._readings = self._readings or run_readings(self.options.meter_provider)
            self._readings.watch(queue, counts, owner=owner)

    @contextmanager
    def evaluation(self, case: RAGTestCase, *, lag: float = 0.0) -> Iterator[Emission]:
        """Open the root span of an evaluation and make it current, so that a judge's spans nest.

        The span is ended in every case, cancellation included.

        Args:
            case: The evaluated case; texts that were fetched for it are never emitted.
            lag: Seconds between the end of the run and now.
        """
        is_fetched = case.sources.has_fetched_texts
        content = self.content.without_chunks() if is_fetched else self.content
        emission = Emission(self, case.evaluated_run, lag, content)
        token = attach(emission.context)
        try:
            yield emission
        except BaseException:
            emission.fail()
            raise
        finally:
            detach(token)
            with self.contained("ending an evaluation span"):
                emission.root.end()

    @property
    def tracer(self) -> trace.Tracer:
        """Tracer whose linked spans are sampled as the span they link to.

        It is renewed if the application sets its provider later.
        """
        provider = self.options.tracer_provider or trace.get_tracer_provider()
        if self._tracer is None or self._tracer[0] is not provider:
            tracer = provider.get_tracer(names.SCOPE, __version__, names.SCHEMA_URL)
            sdk: Any = sys.modules.get("opentelemetry.sdk.trace")
            if sdk is not None and type(tracer) is sdk.Tracer:
                from opentelemetry.sdk.resources import Resource

                from ragaliq.telemetry.sampling import FollowingSampler

                own: Any = copy.copy(tracer)
                own.sampler = FollowingSampler(own.sampler, self.options.on_unsampled == "all")
                if self.options.relation == "link":
                    # A separate project: otherwise a product's list of traces would show as many
                    # evaluations as requests.
                    project = own.resource.attributes.get(_PROJECT) or "default"
                    named = Resource({_PROJECT: f"{project}-evaluations"})
                    own.resource = own.resource.merge(named)
                tracer = own
            self._tracer = provider, tracer
        return self._tracer[1]

    @property
    def logger_provider(self) -> _logs.LoggerProvider | None:
        """Logger provider for events; None if none is set up."""
        provider = self.options.logger_provider or _logs.get_logger_provider()
        return None if is_stand_in(provider) else provider

    @property
    def is_heard(self) -> bool:
        """True if spans, metrics or events are exported; otherwise none are created."""
        providers: tuple[object, ...] = (
            self.options.tracer_provider or trace.get_tracer_provider(),
            self.options.meter_provider or metrics.get_meter_provider(),
            self.options.logger_provider or _logs.get_logger_provider(),
        )
        return not all(map(is_stand_in, providers))

    def event(
        self,
        name: str,
        attributes: Attributes,
        *,
        is_warning: bool,
        context: Context,
        time_ns: int | None = None,
    ) -> None:
        """Emit an event, by default as of now; does nothing without a logger provider."""
        if (provider := self.logger_provider) is None:
            return
        severity = _logs.SeverityNumber.WARN if is_warning else _logs.SeverityNumber.INFO
        provider.get_logger(names.SCOPE, __version__, names.SCHEMA_URL).emit(
            _logs.LogRecord(
                timestamp=time_ns or time.time_ns(),
                context=context,
                severity_number=severity,
                severity_text=severity.name,
                attributes=attributes,
                event_name=name,
            )
        )

    @contextmanager
    def contained(self, what: str) -> Iterator[None]:
        """Contain errors of the block; the first one is logged, without content."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - telemetry must not stop an evaluation
            kind = type(error).__name__
            self._log_once.message(
                "telemetry",
                f"telemetry failed while {what} ({kind}); further failures are not logged",
            )


class Emission:
    """Open telemetry of one evaluation.

    Attributes:
        root: Its root span.
        context: The context in which that is current.
    """

    def __init__(self, emitter: Emitter, run: RunInfo, lag: float, content: ContentPolicy) -> None:
        self._emitter, self._run, self._lag, self._content = emitter, run, lag, content
        self.root: trace.Span = trace.INVALID_SPAN
        self.context = Context()
        self._target = target_context(run.target)
        self._scope: OnUnsampled = "all"
        if run.target is not None and not run.target.is_sampled:
            self._scope = emitter.options.on_unsampled or "metrics"
        self._is_heard = emitter.is_heard
        if not self._is_heard:
            return
        if self._scope != "all":
            # An unrecorded trace rather than an empty context, in which a judge that is traced
            # would begin its own traces.
            trace_id, span_id = secrets.randbits(128) or 1, secrets.randbits(64) or 1
            nobodys = NonRecordingSpan(SpanContext(trace_id, span_id, is_remote=True))
            self.context = trace.set_span_in_context(nobodys, Context())
            return
        target = trace.get_current_span(self._target).get_span_context()
        with emitter.contained("opening an evaluation span"):
            self.root = emitter.tracer.start_span(
                f"{names.SPAN_EVALUATION} {identifier(run.pipeline)}".strip(),
                context=self._target if emitter.options.relation == "child" else Context(),
                attributes=root_attributes(run, lag),
                # A process may have begun before the span.
                start_time=int((run.ended_at + lag) * 1e9) if lag and run.ended_at else None,
                # A child has its link too: OpenInference requires exactly one.
                links=[Link(target)] if run.target else [],
            )
            self.context = trace.set_span_in_context(self.root, Context())

    def fail(self) -> None:
        """Mark the root as failed, in place of results."""
        with self._emitter.contained("recording a failure"):
            self.root.set_status(*_FAILED)

    def emit(self, results: Mapping[str, EvaluationResult], case: RAGTestCase) -> None:
        """Emit the results: attributes on the root, a span and an event for each metric.

        Args:
            results: Results by metric.
            case: The evaluated case; its metadata counts as content.
        """
        if not self._is_heard:
            return
        emitter, run = self._emitter, self._run
        emitter.metrics.spent(run.pipeline, results)
        if self._scope != "none":
            emitter.metrics.evaluated(run.pipeline, results, lag=self._lag, target=self._target)
        # Skip the work where nothing is exported.
        if self._scope != "all" or not (self.root.is_recording() or emitter.logger_provider):
            return
        may_show = case if emitter.content.on_spans else None
        documents = {} if may_show is None else document_sources(may_show, emitter.content)
        detailed: list[tuple[ClaimDetail, ...]] = []
        emitted: list[Attributes] = []
        for result in results.values():
            # Metrics that share a claim check hold the same claims: detail them once.
            claims = () if result.claims in detailed else result.claims
            detailed.append(result.claims)
            with emitter.contained("recording a metric"):
                shared = result_attributes(result, emitter.options.claim_detail)
                reason = explanation(result, self._content, captured=self._content.on_spans)
                emitted.append(shared | reason)
                self._metric(result, claims, shared, reason, documents)
        with emitter.contained("recording an evaluation"):
            if any(result.status.is_failure for result in results.values()):
                self.root.set_status(*_FAILED)
            self.root.set_attributes(summary_attributes(emitted))
            if may_show is not None:
                self.root.set_attributes(metadata_attributes(may_show, emitter.content))

    def _metric(
        self,
        result: EvaluationResult,
        claims: tuple[ClaimDetail, ...],
        shared: Attributes,
        reason: Attributes,
        documents: Mapping[ChunkId, str],
    ) -> None:
        """Emit the span of a metric, those of its claims, and its event."""
        emitter, content, run = self._emitter, self._content, self._run
        detail = emitter.options.claim_detail
        ended = time.time_ns()
        # A user's metric may return any number of seconds.
        duration = result.duration or 0.0
        started = ended - int(duration * 1e9) if 0.0 <= duration <= _LONGEST else ended
        own = shared | reason | {names.SPAN_KIND: names.SPAN_KIND_EVALUATOR}
        chance = run.metric_probabilities.get(result.evaluator_name)
        if chance is not None:
            own[names.SAMPLING_PROBABILITY] = chance
        if detail == "arrays" and claims:
            own |= claim_arrays(claims, content)
        span: trace.Span = trace.INVALID_SPAN
        with emitter.contained("starting a metric's span"):  # the event may still arrive
            span = emitter.tracer.start_span(
                f"{names.SPAN_EVALUATION} {identifier(result.evaluator_name)}",
                context=self.context,
                attributes=own,
                start_time=started,
            )
        try:
            failed, of_span = result.status.is_failure, span.get_span_context()
            if failed:
                span.set_status(StatusCode.ERROR, identifier(result.error_type or ""))
            if detail == "spans" and of_span.is_valid:
                within, tracer = trace.set_span_in_context(span, Context()), emitter.tracer
                for index, claim in enumerate(claims[: names.MAX_CLAIM_SPANS]):
                    tracer.start_span(
                        f"{names.SPAN_CLAIM} {(claim.verdict or 'unverified').lower()}",
                        context=within,
                        attributes=claim_attributes(index, claim, content, documents),
                        start_time=started,
                    ).end(ended)
            attributes = shared | explanation(result, content, captured=content.on_events)
            if span.is_recording():  # it is not where only a logger provider is set up
                attributes[names.EVALUATION_TRACE_ID] = trace.format_trace_id(of_span.trace_id)
                attributes[names.EVALUATION_SPAN_ID] = trace.format_span_id(of_span.span_id)
            attributes[names.SAMPLING_PROBABILITY] = (
                run.sampling_probability if chance is None else chance
            )
            attributes |= known(
                {
                    names.PIPELINE_NAME: run.pipeline,
                    names.EVALUATION_TARGET: run.pipeline,
                    names.CONVERSATION_ID: run.session_id,
                    names.RESPONSE_ID: run.response_id,
                    names.TARGET_MODEL: run.model,
                }
            )
            if emitter.logger_provider is None:
                # Span events are being deprecated: only if there is no other carrier. The rest
                # is on the span, and each attribute costs the application time at the exporter.
                # The conventions define these attributes of the event.
                defined = {
                    name: value
                    for name, value in attributes.items()
                    if name.startswith("gen_ai.") or name == names.ERROR_TYPE
                }
                span.add_event(names.EVENT_RESULT, defined)
            else:
                emitter.event(
                    names.EVENT_RESULT, attributes, is_warning=failed, context=self._target
                )
        finally:
            span.end(ended)
