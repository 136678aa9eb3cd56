"""Runs in finished spans, submitted to a monitor: from this process or others."""

from __future__ import annotations

from opentelemetry import context as otel_context

from ragaliq.live.monitor import Monitor
from ragaliq.live.run import RunHandle
from ragaliq.telemetry.emit import target_context
from ragaliq.traces.cases import TracedCase
from ragaliq.traces.conventions import Kind


def begin_traced(monitor: Monitor, case: TracedCase, pipeline: str = "") -> RunHandle | None:
    """Announce the run of a trace, sampled by its trace id; None if it is not sampled.

    Args:
        monitor: Samples and counts it.
        case: The run.
        pipeline: Name for it; by default its own.
    """
    token = otel_context.attach(target_context(case.target))
    try:
        run = case.run
        return monitor.begin(run.run_id, pipeline=pipeline or run.pipeline, framework=run.framework)
    finally:
        otel_context.detach(token)


def end_traced(
    run: RunHandle, case: TracedCase, *, is_sampled: bool = True, is_open: bool = False
) -> None:
    """End a run with its case, or with the reason why there is none.

    Args:
        run: The run.
        case: The run as read from its spans.
        is_sampled: Whether the application's tracer records its spans.
        is_open: Whether one of its steps had not ended when the run had.
    """
    if case.log is None:
        run.discard(case.reason)
    elif is_open and not _was_said(case):
        # The run has ended but a step has not: the answer is incomplete.
        run.discard("truncated")
    else:
        flags = {} if is_sampled else {"trace_flags": 0}
        run.submit(
            case.log,
            target=case.target.model_copy(update=flags),
            session_id=case.run.session_id,
            response_id=case.run.response_id,
            model=case.run.model,
            ended_at=case.run.ended_at,
            release=case.run.release,
        )


def _was_said(case: TracedCase) -> bool:
    """True if a model that finished gave the answer, while another one was abandoned."""
    answer = case.log.response if case.log is not None else ""
    return any(step.kind is Kind.LLM and step.reply == answer for step in case.steps)
