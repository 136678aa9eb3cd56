"""One judge a process: an engine's worker scores thousands of batches."""

from __future__ import annotations

import os
from pathlib import Path

from ragaliq.judges.base import LLMJudge
from ragaliq.judges.resolve import CalibrationSpec, JudgeSpec, resolve_judge

__all__ = ["judge_of_process"]

_Key = tuple[int, str, str | None, tuple[str, int] | None]

_JUDGES: dict[_Key, LLMJudge] = {}


def judge_of_process(
    judge: JudgeSpec | str, *, model: str | None, calibration: CalibrationSpec | None
) -> LLMJudge:
    """The judge that is meant, the same for the same words; a judge that is given, as it is.

    Raises:
        ConfigurationError: See `resolve_judge`.
    """
    written = calibration is None or isinstance(calibration, str | Path)
    if not isinstance(judge, str) or not written:
        return resolve_judge(judge, model=model, calibration=calibration)
    # A forked worker must not use its parent's connections.
    key = (os.getpid(), judge, model, _stamp(calibration))
    known = _JUDGES.get(key)
    if known is None:
        made = resolve_judge(judge, model=model, calibration=calibration)
        # One wins where several threads make the first. There is no lock to hold over a fork.
        known = _JUDGES.setdefault(key, made)
    return known


def _stamp(calibration: CalibrationSpec | None) -> tuple[str, int] | None:
    """The file and when it was written: a new calibration makes another judge."""
    if not isinstance(calibration, str | Path):
        return None
    try:
        return str(calibration), Path(calibration).stat().st_mtime_ns
    except OSError:
        return str(calibration), 0
