"""Judges whose replies take minutes or hours by design: deadlines and numbers made for others."""

from __future__ import annotations

from collections.abc import Iterable

from ragaliq.errors import ConfigurationError
from ragaliq.judges.base import LLMJudge

__all__ = ["deadline_for", "in_flight_for", "longest", "require_prompt"]


def deadline_for(judge: LLMJudge, deadline: float | None) -> float | None:
    """Seconds an evaluation may take; None where the judge limits the waiting itself."""
    return deadline if _number(judge.patience) is None else None


def in_flight_for(judge: LLMJudge, concurrency: int) -> int:
    """Cases in work at the same time: what was asked for, or more where the judge needs more."""
    wanted = _number(judge.cases_in_flight)
    return concurrency if wanted is None else max(concurrency, int(wanted))


def longest(values: Iterable[float | None]) -> float | None:
    """The largest of those that are set; None where none is."""
    return max((value for value in map(_number, values) if value is not None), default=None)


def require_prompt(judge: LLMJudge, what: str) -> None:
    """Refuse a judge that answers in minutes to hours where somebody waits.

    Raises:
        ConfigurationError: It does.
    """
    if _number(judge.patience) is not None:
        raise ConfigurationError(
            f"{what} cannot wait for {judge.name}, which replies in minutes to hours; use another "
            "judge"
        )


def _number(value: object) -> float | None:
    # A MagicMock(spec=LLMJudge) answers any attribute with another mock.
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else None  # type: ignore[return-value]
