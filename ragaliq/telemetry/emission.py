"""One evaluated run becomes a trace of its own, an event a metric, and measurements.

The trace is new and linked to the evaluated span: a late child would stretch the application's
trace and may miss a collector's tail-sampling window. Nothing here ever raises into the caller.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from opentelemetry import _logs, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanKind, StatusCode

from ragaliq.core.results import ClaimDetail, EvaluationResult
from ragaliq.core.run import RunInfo
from ragaliq.telemetry import names
from ragaliq.telemetry.attributes import (
    Attributes,
    claim_arrays,
    claim_attributes,
    is_failure,
    metric_attributes,
    root_attributes,
    summary_attributes,
)
from ragaliq.telemetry.content import identifier
from ragaliq.telemetry.target import target_context, target_span_context, unsampled_context

if TYPE_CHECKING:
    from ragaliq.telemetry.emitter import Emitter

__all__ = ["Emission"]

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
        self._scope = emitter.options.scope_of(run.target)
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
        if self._scope == "all":
            self._record_trace(results)

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

    def _record_trace(self, results: Mapping[str, EvaluationResult]) -> None:
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

    def _record_metric(self, result: EvaluationResult, claims: tuple[ClaimDetail, ...]) -> None:
        content, detail = self._emitter.content, self._emitter.options.claim_detail
        ended = time.time_ns()
        started = _before(ended, result.duration)
        attributes = self._attributes_of(result, captured=content.on_spans)
        attributes[names.SPAN_KIND] = names.SPAN_KIND_EVALUATOR
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
            if is_failure(result):
                span.set_status(StatusCode.ERROR, identifier(result.error_type or ""))
            if detail == "spans" and span.get_span_context().is_valid:
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
        detail = self._emitter.options.claim_detail
        attributes = metric_attributes(
            result, self._emitter.content, captured=captured, detail=detail
        )
        chance = self._run.metric_probabilities.get(result.evaluator_name)
        if chance is not None:
            attributes[names.SAMPLING_PROBABILITY] = chance
        return attributes

    def _record_event(self, result: EvaluationResult, span: trace.Span) -> None:
        own = span.get_span_context()
        attributes = self._attributes_of(result, captured=self._emitter.content.on_events)
        if span.is_recording():  # it is not where only a logger provider is set up
            attributes[names.EVALUATION_TRACE_ID] = trace.format_trace_id(own.trace_id)
            attributes[names.EVALUATION_SPAN_ID] = trace.format_span_id(own.span_id)
        if self._run.response_id:
            attributes[names.RESPONSE_ID] = identifier(self._run.response_id)
        event_logger = self._emitter.event_logger()
        if event_logger is None:
            # Span events are on their way out: only where there is no other carrier.
            span.add_event(names.EVENT_RESULT, attributes)
            return
        failed = is_failure(result)
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


def _before(ended: int, duration: float | None) -> int:
    """The start in nanoseconds; an evaluator of the user's own may give any number of seconds."""
    if duration is None or not 0.0 <= duration <= _LONGEST:
        return ended
    return ended - int(duration * 1e9)
