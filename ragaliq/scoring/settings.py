"""Settings from the environment; explicit arguments win over them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ragaliq.core.checks import naming
from ragaliq.core.evaluator import identity_of
from ragaliq.core.results import UNCALIBRATED
from ragaliq.errors import ConfigurationError
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.resolve import CalibrationSpec, JudgeSpec, assembled, named_judges
from ragaliq.scoring.execution import Executor

if TYPE_CHECKING:
    from pydantic_settings import BaseSettings

    class JudgeSettings(BaseSettings):
        """The variables that say who judges; see `read_judge_settings`."""

        judge: str | None
        model: str | None
        calibration: str | None

    class LiveSettings(JudgeSettings):
        """The variables a monitor reads; see `read_settings`."""

        sample_rate: float
        enabled: bool
        executor: Executor | None


_PREFIX = "RAGALIQ_"
ENV_JUDGE, ENV_MODEL, ENV_CALIBRATION = "RAGALIQ_JUDGE", "RAGALIQ_MODEL", "RAGALIQ_CALIBRATION"


@cache
def _settings_classes() -> tuple[type[JudgeSettings], type[LiveSettings]]:
    # Loaded on first use: importing pydantic-settings costs more than all of `import ragaliq`.
    from pydantic import Field
    from pydantic_settings import BaseSettings, SettingsConfigDict

    class FromEnvironment(BaseSettings):
        model_config = SettingsConfigDict(env_prefix=_PREFIX, env_ignore_empty=True)

        judge: str | None = None
        model: str | None = None
        calibration: str | None = None

    class AllFromEnvironment(FromEnvironment):
        sample_rate: float = Field(1.0, ge=0.0, le=1.0)
        enabled: bool = True
        executor: Executor | None = None

    return FromEnvironment, AllFromEnvironment  # type: ignore[return-value]


def read_judge_settings() -> JudgeSettings:
    """Read the variables that say who judges; None stands for one that is not set."""
    return _settings_classes()[0]()  # type: ignore[call-arg]


def settings_variables() -> frozenset[str]:
    """The names of the variables that `read_settings` reads."""
    return frozenset(f"{_PREFIX}{name.upper()}" for name in _settings_classes()[1].model_fields)


def read_settings() -> LiveSettings:
    """Read the variables that begin with `RAGALIQ_`; see `LiveSettings`.

    Raises:
        ConfigurationError: A variable has a value of the wrong kind; the message names it.
    """
    problems = settings_problems()
    if problems:
        raise ConfigurationError("; ".join(problems))
    return _settings_classes()[1]()  # type: ignore[call-arg]


def settings_problems() -> list[str]:
    """What is wrong with the variables that begin with `RAGALIQ_`, each by its name."""
    from pydantic import ValidationError

    try:
        _settings_classes()[1]()  # type: ignore[call-arg]
    except ValidationError as error:
        return [
            f"{_PREFIX}{str(problem['loc'][0]).upper()}: {problem['msg']}, "
            f"got {_without_address(problem['input'])!r}"
            for problem in error.errors()
        ]
    return []


def _without_address(value: object) -> str:
    # An address in the wrong variable may hold a password.
    scheme, colon, _ = str(value).partition("://")
    return f"{scheme}{colon}..." if colon else scheme


def chosen_judge(
    settings: JudgeSettings,
    judge: JudgeSpec | str | None,
    calibration: CalibrationSpec | None,
) -> LLMJudge:
    """The judge that the arguments ask for, else the environment.

    A judge that came calibrated stays as it is: an argument wins.

    Raises:
        ConfigurationError: It cannot be built, or the calibration was made for another one. The
            message names the variable where the value came from one.
    """
    spec = (settings.judge or "local") if judge is None else judge
    with naming(ENV_JUDGE if judge is None else None):
        judges = named_judges(spec, model=settings.model)
    if calibration is not None:
        return assembled(judges, calibration)
    is_calibrated = isinstance(judge, LLMJudge) and identity_of(judge).calibration != UNCALIBRATED
    with naming(ENV_CALIBRATION):
        return assembled(judges, None if is_calibrated else settings.calibration)
