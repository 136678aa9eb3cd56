"""Where a case came from, kept in its metadata, so that results can speak of the original span."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from ragaliq.core.run import RunInfo, SpanTarget
from ragaliq.core.test_case import RAGTestCase
from ragaliq.traces.traced_case import TracedCase

__all__ = ["case_of", "run_of"]

_KEY = "trace"


class _Origin(BaseModel):
    """What is kept of a traced run beside its case."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    target: SpanTarget
    pipeline: str = ""
    framework: str = ""
    session_id: str | None = None
    response_id: str | None = None
    ended_at: float = 0.0


def case_of(traced: TracedCase) -> RAGTestCase | None:
    """The case of a traced run, if it has one that can be evaluated.

    Raises:
        pydantic.ValidationError: A field is of the wrong type.
    """
    if traced.draft is None:
        return None
    origin = _Origin(
        target=traced.target,
        pipeline=traced.pipeline,
        framework=traced.framework,
        session_id=traced.session_id,
        response_id=traced.response_id,
        ended_at=traced.ended_at,
    )
    kept = origin.model_dump(mode="json", exclude_defaults=True)
    return traced.draft.build().model_copy(update={"metadata": {_KEY: kept}})


def run_of(case: RAGTestCase, *, run_id: str, pipeline: str, ended_at: float = 0.0) -> RunInfo:
    """The run that results of a case speak about; its own where the case is from a trace.

    Args:
        case: The case.
        run_id: Names this judging of it.
        pipeline: The data set's name, where the case names none of its own.
        ended_at: Unix time in seconds, where the case is not from a trace.
    """
    held: Any = case.metadata.get(_KEY)
    if isinstance(held, Mapping):
        try:
            origin = _Origin.model_validate(dict(held))
            return RunInfo.model_validate(
                {
                    **origin.model_dump(),
                    "run_id": run_id,
                    "pipeline": origin.pipeline or pipeline,
                }
            )
        except ValidationError:
            pass  # metadata of somebody else's under the same name
    return RunInfo(run_id=run_id, pipeline=pipeline, ended_at=ended_at)
