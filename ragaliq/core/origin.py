"""The run that a case came from: kept in its metadata, so that results can name its span."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from pydantic import ValidationError

from ragaliq.core.run import RunInfo
from ragaliq.core.test_case import RAGTestCase

KEY = "trace"
KEPT = (
    "target",
    "pipeline",
    "framework",
    "session_id",
    "response_id",
    "model",
    "ended_at",
    "release",
)
"""Fields of a run that a case from a trace keeps in its metadata, under `KEY`."""


def run_of(case: RAGTestCase, *, run_id: str, pipeline: str, ended_at: float = 0.0) -> RunInfo:
    """Run that results of a case refer to: the case's own one if it came from a trace.

    Args:
        case: The case; where its metadata hold a `sampling_probability`, results count for the
            answers it stands for.
        run_id: Names this evaluation of it.
        pipeline: The data set's name, where the case names none of its own.
        ended_at: Unix time in seconds, where the case is not from a trace.
    """
    held = case.metadata.get(KEY)
    # Otherwise the application uses the same key for something else.
    if isinstance(held, Mapping) and held.get("target") and held.keys() <= set(KEPT):
        with suppress(ValidationError):
            named = {**held, "run_id": run_id, "pipeline": held.get("pipeline") or pipeline}
            return RunInfo.model_validate(named)
    try:
        chance = float(case.metadata.get("sampling_probability", 1.0))
    except (TypeError, ValueError):
        chance = 1.0
    return RunInfo(
        run_id=run_id,
        pipeline=pipeline,
        ended_at=ended_at,
        sampling_probability=chance if 0.0 < chance <= 1.0 else 1.0,
    )
