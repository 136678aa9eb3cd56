"""From the spans of a finished unit to the monitor; where there is time, not in a request."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from opentelemetry import context as otel_context

from ragaliq.live.monitor import Monitor
from ragaliq.live.open_run import OpenRun
from ragaliq.live.tracing.copied import trace_span
from ragaliq.live.tracing.unit import Unit
from ragaliq.telemetry.emit import target_context
from ragaliq.traces import AttributeNames, TracedCase, cases_of_trace
from ragaliq.traces.conventions import Kind, step_of

__all__ = ["UnitReader"]

logger = logging.getLogger(__name__)


class UnitReader:
    """Reads finished units and ends their tickets.

    Args:
        monitor: Gets the cases.
        attribute_names: Where the application itself keeps what the conventions do not say.
        pipeline: Name for every run; by default the run's own.
    """

    def __init__(self, monitor: Monitor, *, attribute_names: AttributeNames, pipeline: str) -> None:
        self._monitor = monitor
        self._names = attribute_names
        self._pipeline = pipeline

    def hand_over(self, unit: Unit) -> None:
        """Read a unit that was begun with a ticket, and end the ticket; never raises."""
        ticket = unit.ticket
        if ticket is None:
            return
        try:
            found = cases_of_trace(map(trace_span, unit.spans), attribute_names=self._names)
            for case, its_ticket in self._tickets(found, ticket, unit):
                _end(case, its_ticket, unit)
            ticket.withdraw()  # what was no run after all; does nothing where it has ended
        except Exception as error:  # noqa: BLE001 - on the monitor's thread, or the application's
            logger.debug("a run could not be read: %s", type(error).__name__)
            ticket.discard("internal_error")

    def _tickets(
        self, found: Sequence[TracedCase], ticket: OpenRun, unit: Unit
    ) -> Iterator[tuple[TracedCase, OpenRun]]:
        """Each case with a ticket: the unit's own for one, new ones for the others."""
        top = f"{unit.top:016x}"
        own = next(
            (case for case in found if case.target.span_id == top), found[0] if found else None
        )
        for case in found:
            if case is own:
                yield case, ticket
                continue
            # Sampling goes by the current trace.
            token = otel_context.attach(target_context(case.target))
            try:
                another = self._monitor.begin(
                    case.id, pipeline=self._pipeline or ticket.pipeline, framework=case.framework
                )
            finally:
                otel_context.detach(token)
            if another is not None:
                yield case, another


def _end(case: TracedCase, ticket: OpenRun, unit: Unit) -> None:
    if case.draft is None:
        ticket.discard(case.reason)
    elif unit.open and not _was_said(case.draft.response, unit):
        # The run is over and a step of it is not: what there is of the answer is its beginning.
        ticket.discard("truncated")
    else:
        target = case.target
        if not unit.is_sampled:
            target = target.model_copy(update={"trace_flags": 0})
        ticket.submit(
            case.draft,
            target=target,
            session_id=case.session_id,
            response_id=case.response_id,
            ended_at=case.ended_at,
        )


def _was_said(answer: str, unit: Unit) -> bool:
    """Whether a model that came to its end gave the answer, while another was given up."""
    steps = map(step_of, map(trace_span, unit.spans))
    return any(step.kind is Kind.LLM and step.reply == answer for step in steps)
