"""Settings from the environment; explicit arguments take precedence."""

from __future__ import annotations

import os
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from ragaliq.core.checks import naming
from ragaliq.core.results import UNCALIBRATED
from ragaliq.errors import ConfigurationError
from ragaliq.judges.base import LLMJudge, identity_of
from ragaliq.judges.resolve import CalibrationSpec, JudgeSpec, assembled, named_judges
from ragaliq.scoring.execution import Executor

_PREFIX = "RAGALIQ_"
ENV_JUDGE, ENV_MODEL, ENV_CALIBRATION = "RAGALIQ_JUDGE", "RAGALIQ_MODEL", "RAGALIQ_CALIBRATION"
ENV_BROKER_URL, ENV_HEARTBEAT = "RAGALIQ_BROKER_URL", "RAGALIQ_WORKER_HEARTBEAT"
"""Read by the annex of workers, and by `ragaliq doctor`."""


class JudgeSettings(BaseModel):
    """Environment variables that select the judge; None if not set."""

    judge: str | None = None
    model: str | None = None
    calibration: str | None = None


class LiveSettings(JudgeSettings):
    """Environment variables that a monitor reads."""

    sample_rate: float = Field(1.0, ge=0.0, le=1.0)
    enabled: bool = True
    executor: Executor | None = None


def settings_variables() -> frozenset[str]:
    """Names of the variables that `read_settings` reads."""
    return frozenset(f"{_PREFIX}{name.upper()}" for name in LiveSettings.model_fields)


def _values_of(kind: type[JudgeSettings]) -> dict[str, Any]:
    """Values of the variables by field; an empty variable counts as not set."""
    values = {name: os.environ.get(f"{_PREFIX}{name.upper()}") for name in kind.model_fields}
    return {name: value for name, value in values.items() if value}


def read_judge_settings() -> JudgeSettings:
    """Read the variables that select the judge."""
    return JudgeSettings.model_validate(_values_of(JudgeSettings))


def read_settings() -> LiveSettings:
    """Read the variables that begin with `RAGALIQ_`.

    Raises:
        ConfigurationError: A variable has a value of the wrong kind; the message names it.
    """
    if problems := settings_problems():
        raise ConfigurationError("; ".join(problems))
    return LiveSettings.model_validate(_values_of(LiveSettings))


def settings_problems() -> list[str]:
    """Problems of the variables that begin with `RAGALIQ_`, each by its name."""
    try:
        LiveSettings.model_validate(_values_of(LiveSettings))
    except ValidationError as error:
        return [
            f"{_PREFIX}{str(problem['loc'][0]).upper()}: {problem['msg']}, "
            f"got {_without_address(problem['input'])!r}"
            for problem in error.errors()
        ]
    return []


def _without_address(value: object) -> str:
    # An address in the wrong variable may contain a password.
    scheme, colon, _ = str(value).partition("://")
    return f"{scheme}{colon}..." if colon else scheme


def chosen_judge(
    settings: JudgeSettings,
    judge: JudgeSpec | str | None,
    calibration: CalibrationSpec | None,
) -> LLMJudge:
    """Judge of the arguments, else of the environment.

    A judge that is already calibrated keeps its calibration.

    Raises:
        ConfigurationError: The judge cannot be built, or the calibration was made for another one.
            The message names the variable that a wrong value came from.
    """
    spec = (settings.judge or "local") if judge is None else judge
    with naming(ENV_JUDGE if judge is None else None):
        judges = named_judges(spec, model=settings.model)
    if calibration is not None:
        return assembled(judges, calibration)
    is_calibrated = any(identity_of(each).calibration != UNCALIBRATED for each in judges)
    with naming(ENV_CALIBRATION):
        return assembled(judges, None if is_calibrated else settings.calibration)
