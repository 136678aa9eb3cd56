"""What a cascade is built from, checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ragaliq.core.evaluator import judge_name
from ragaliq.errors import ConfigurationError
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.calibration import CalibratedJudge, Calibration
from ragaliq.judges.cascade.screening import Screening

__all__ = ["check_settings", "choose_screening", "screen_of", "stage_names"]

_HALF = 0.5


def check_settings(
    *,
    escalate: float | None,
    band: tuple[float, float] | None,
    audit: float,
    window: int,
    least_agreement: float,
    **stages: str,
) -> None:
    """Refuse settings that are out of range.

    Raises:
        ConfigurationError: One is; the message names it.
    """
    if escalate is not None and band is not None:
        raise ConfigurationError("CascadeJudge: give escalate= or band=, not both")
    shares = {"escalate": escalate, "audit": audit, "least_agreement": least_agreement}
    for name, value in shares.items():
        if value is not None and not _is_share(value):
            raise ConfigurationError(f"CascadeJudge: {name} must be within [0, 1], got {value!r}")
    if band is not None and not _is_band(band):
        raise ConfigurationError(
            f"CascadeJudge: band must be (low, high) with 0 <= low < high <= 1, got {band!r}"
        )
    if not isinstance(window, int) or window < 1:
        raise ConfigurationError(f"CascadeJudge: window must be at least 1, got {window!r}")
    for name, stage in stages.items():
        if stage not in ("first", "last"):
            raise ConfigurationError(
                f"CascadeJudge: {name} must be 'first' or 'last', got {stage!r}"
            )


def screen_of(first: LLMJudge, calibration: Calibration | str | Path | None) -> LLMJudge:
    """The first judge, calibrated where there is a calibration.

    Raises:
        ConfigurationError: The calibration was made for another judge.
    """
    return first if calibration is None else CalibratedJudge(first, calibration)


def choose_screening(
    first: LLMJudge, *, escalate: float | None, band: tuple[float, float] | None
) -> Screening:
    """Which of the first judge's verdicts are accepted.

    Raises:
        ConfigurationError: A band without a calibration, or what would be accepted may be a guess.
    """
    if not isinstance(first, CalibratedJudge):
        if band is not None:
            raise ConfigurationError(
                "CascadeJudge: band is about calibrated support, and the first judge has no "
                "calibration; pass calibration= (made by `ragaliq calibrate`)"
            )
        return Screening.everything()
    if band is not None:
        return Screening.by_band(first.curve, *band)
    return Screening.by_share(first.curve, _HALF if escalate is None else escalate)


def stage_names(first: LLMJudge, second: LLMJudge) -> tuple[str, str]:
    """What two judges are called in `decided_by`; with their models where the names are the same.

    Raises:
        ConfigurationError: They cannot be told apart.
    """
    names = judge_name(first), judge_name(second)
    if names[0] != names[1]:
        return names
    with_models = f"{names[0]}:{first.model}", f"{names[1]}:{second.model}"
    if first.model == second.model:
        raise ConfigurationError(
            f"CascadeJudge: two judges are called {names[0]!r} and have the same model, so nobody "
            "could tell who decided; give one another name"
        )
    return with_models


def _is_share(value: Any) -> bool:
    return isinstance(value, (int, float)) and 0.0 <= value <= 1.0


def _is_band(band: Any) -> bool:
    return (
        isinstance(band, (tuple, list))
        and len(band) == 2
        and all(_is_share(bound) for bound in band)
        and band[0] < band[1]
    )
