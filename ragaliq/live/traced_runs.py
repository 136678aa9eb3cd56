"""Runs in finished spans, offered to a monitor: from this process or from anywhere else."""

from __future__ import annotations

from opentelemetry import context as otel_context

from ragaliq.live.monitor import Monitor
from ragaliq.live.run import RunHandle
from ragaliq.telemetry.emit import target_context
from ragaliq.traces import TracedCase
from ragaliq.traces.conventions import Kind


def begin_traced(monitor: Monitor, case: TracedCase, pipeline: str = "") -> RunHandle | None:
    """Announce the run of a trace, which is sampled by its trace id; None where it is not chosen.

    Args:
        monitor: Samples and counts it.
        case: The run.
        pipeline: Name for it; by default its own.
    """
    token = otel_context.attach(target_context(case.target))
    try:
        return monitor.begin(case.id, pipeline=pipeline or case.pipeline, framework=case.framework)
    finally:
        otel_context.detach(token)


def end_traced(
    run: RunHandle, case: TracedCase, *, is_sampled: bool = True, is_open: bool = False
) -> None:
    """End a run with its case, or with the reason why there is none.

    Args:
        run: The run.
        case: What its spans show.
        is_sampled: Whether the application's tracer keeps its spans.
        is_open: Whether a step of it had not ended when the run had.
    """
    if case.log is None:
        run.discard(case.reason)
    elif is_open and not _was_said(case):
        # The run is over and a step of it is not: the answer is only its beginning.
        run.discard("truncated")
    else:
        flags = {} if is_sampled else {"trace_flags": 0}
        run.submit(
            case.log,
            target=case.target.model_copy(update=flags),
            session_id=case.session_id,
            response_id=case.response_id,
            ended_at=case.ended_at,
        )


def _was_said(case: TracedCase) -> bool:
    """Whether a model that came to its end gave the answer, while another was given up."""
    answer = case.log.response if case.log is not None else ""
    return any(step.kind is Kind.LLM and step.reply == answer for step in case.steps)
