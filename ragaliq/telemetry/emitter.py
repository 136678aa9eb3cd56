"""The only place that emits: one evaluated run becomes a trace of its own and an event a metric.

The trace is new and linked to the evaluated span: a late child would stretch the application's
trace and may miss a collector's tail-sampling window. Nothing here ever raises into the caller.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import _logs, trace
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
from ragaliq.core.run import EvaluatedRun, SpanTarget
from ragaliq.telemetry import names
from ragaliq.telemetry.attributes import (
    Attributes,
    claim_attributes,
    is_failure,
    metric_attributes,
    root_attributes,
    summary_attributes,
)
from ragaliq.telemetry.content import ContentPolicy, sendable

__all__ = ["Emission", "Emitter"]

logger = logging.getLogger(__name__)


class Emitter:
    """Emits evaluations through the given providers, or the process's own.

    Args:
        content: Whether text may be emitted.
        tracer_provider: For spans; the global provider when None.
        logger_provider: For events; the global provider when None.
    """

    def __init__(
        self,
        content: ContentPolicy | None = None,
        *,
        tracer_provider: trace.TracerProvider | None = None,
        logger_provider: _logs.LoggerProvider | None = None,
    ) -> None:
        self._content = content or ContentPolicy()
        self._logger_provider = logger_provider
        self._tracer = trace.get_tracer(names.SCOPE, __version__, tracer_provider)
        self._complained = False

    @contextmanager
    def evaluation(self, run: EvaluatedRun, *, lag: float = 0.0) -> Iterator[Emission]:
        """Open the root span of an evaluation and make it current, so that a judge's spans nest.

        The span is ended in every case, cancellation included.

        Args:
            run: The evaluated run.
            lag: Seconds between the end of the run and now.
        """
        emission = Emission(self, run)
        token = None
        try:
            token = attach(emission.open(lag))
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
    def content(self) -> ContentPolicy:
        """Whether text may be emitted."""
        return self._content

    @property
    def tracer(self) -> trace.Tracer:
        """The tracer of this emitter."""
        return self._tracer

    def event_logger(self) -> _logs.Logger | None:
        """Where events go, or None where the application has set up no logger provider."""
        provider = self._logger_provider or _logs.get_logger_provider()
        # The API's own providers (proxy, no-op) swallow everything.
        if type(provider).__module__.startswith("opentelemetry._logs"):
            return None
        return provider.get_logger(names.SCOPE, __version__)

    def complain(self, what: str, error: Exception) -> None:
        """Log a telemetry failure, the first time only, without any content."""
        if not self._complained:
            self._complained = True
            logger.warning(
                "telemetry failed while %s (%s); further failures are not logged",
                what,
                type(error).__name__,
            )


class Emission:
    """The open telemetry of one evaluation."""

    def __init__(self, emitter: Emitter, run: EvaluatedRun) -> None:
        self._emitter = emitter
        self._run = run
        self._root: trace.Span = trace.INVALID_SPAN
        self._context = Context()

    def open(self, lag: float) -> Context:
        """Start the root span; returns the context in which it is current."""
        links = [Link(_span_context(self._run.target))] if self._run.target else []
        self._root = self._emitter.tracer.start_span(
            sendable(f"{names.SPAN_EVALUATION} {self._run.pipeline}".strip()),
            context=Context(),
            kind=SpanKind.INTERNAL,
            attributes=root_attributes(self._run, lag),
            links=links,
        )
        self._context = trace.set_span_in_context(self._root, Context())
        return self._context

    def record(self, results: Mapping[str, EvaluationResult]) -> None:
        """Emit the results: attributes on the root, a span and an event for each metric."""
        if any(is_failure(result) for result in results.values()):
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
        content = self._emitter.content
        ended = time.time_ns()
        started = ended - int((result.duration or 0.0) * 1e9)
        span = self._emitter.tracer.start_span(
            f"{names.SPAN_EVALUATION} {result.evaluator_name}",
            context=self._context,
            attributes=self._attributes_of(result, captured=content.on_spans)
            | {names.SPAN_KIND: names.SPAN_KIND_EVALUATOR},
            start_time=started,
        )
        try:
            if is_failure(result):
                span.set_status(StatusCode.ERROR, result.error_type)
            for index, claim in enumerate(claims[: names.MAX_CLAIM_SPANS]):
                self._record_claim(index, claim, span, started, ended)
            self._record_event(result, span)
        finally:
            span.end(ended)

    def _record_claim(
        self, index: int, claim: ClaimDetail, parent: trace.Span, started: int, ended: int
    ) -> None:
        self._emitter.tracer.start_span(
            names.SPAN_CLAIM,
            context=trace.set_span_in_context(parent, Context()),
            attributes=claim_attributes(index, claim, self._emitter.content)
            | {names.SPAN_KIND: names.SPAN_KIND_EVALUATOR},
            start_time=started,
        ).end(ended)

    def _attributes_of(self, result: EvaluationResult, *, captured: bool) -> Attributes:
        attributes = metric_attributes(result, self._emitter.content, captured=captured)
        chance = self._run.metric_probabilities.get(result.evaluator_name)
        return attributes if chance is None else attributes | {names.SAMPLING_PROBABILITY: chance}

    def _record_event(self, result: EvaluationResult, span: trace.Span) -> None:
        own = span.get_span_context()
        attributes = self._attributes_of(result, captured=self._emitter.content.on_events)
        if own.is_valid:  # it is not where only a logger provider is set up
            attributes[names.EVALUATION_TRACE_ID] = trace.format_trace_id(own.trace_id)
            attributes[names.EVALUATION_SPAN_ID] = trace.format_span_id(own.span_id)
        if self._run.response_id:
            attributes[names.RESPONSE_ID] = sendable(self._run.response_id)
        event_logger = self._emitter.event_logger()
        if event_logger is None:
            # Span events are on their way out: only where there is no other carrier.
            span.add_event(names.EVENT_RESULT, attributes)
            return
        failed = is_failure(result)
        event_logger.emit(
            _logs.LogRecord(
                timestamp=time.time_ns(),
                context=_target_context(self._run.target),
                severity_number=_logs.SeverityNumber.WARN if failed else _logs.SeverityNumber.INFO,
                severity_text="WARN" if failed else "INFO",
                attributes=attributes,
                event_name=names.EVENT_RESULT,
            )
        )


def _span_context(target: SpanTarget) -> SpanContext:
    return SpanContext(
        trace_id=int(target.trace_id, 16),
        span_id=int(target.span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(target.trace_flags),
    )


def _target_context(target: SpanTarget | None) -> Context:
    if target is None:
        return Context()
    return trace.set_span_in_context(NonRecordingSpan(_span_context(target)), Context())
