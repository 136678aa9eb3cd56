"""Settings from the environment; explicit arguments win over them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from ragaliq.core.evaluator import judge_calibration
from ragaliq.core.naming import naming
from ragaliq.core.results import UNCALIBRATED
from ragaliq.errors import ConfigurationError
from ragaliq.execution.choice import Executor
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.resolve import CalibrationSpec, JudgeSpec, assembled, named_judges

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


__all__ = [
    "ENV_CALIBRATION",
    "ENV_JUDGE",
    "ENV_MODEL",
    "chosen_judge",
    "read_judge_settings",
    "read_settings",
    "require_choice",
    "require_kind",
    "require_limits",
    "require_positive",
]

_PREFIX = "RAGALIQ_"
ENV_JUDGE, ENV_MODEL, ENV_CALIBRATION = "RAGALIQ_JUDGE", "RAGALIQ_MODEL", "RAGALIQ_CALIBRATION"

# Larger amounts, of calls, tokens or millionths of a dollar, are not counted exactly everywhere.
_MOST, _MOST_USD = 1e15, 1e9


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

    A judge that was calibrated by whoever made it stays as it is: an argument wins.

    Raises:
        ConfigurationError: It cannot be built, or the calibration was made for another one. The
            message names the variable where the value came from one.
    """
    spec = (settings.judge or "local") if judge is None else judge
    with naming(ENV_JUDGE if judge is None else None):
        judges = named_judges(spec, model=settings.model)
    if calibration is not None:
        return assembled(judges, calibration)
    is_calibrated = isinstance(judge, LLMJudge) and judge_calibration(judge) != UNCALIBRATED
    with naming(ENV_CALIBRATION):
        return assembled(judges, None if is_calibrated else settings.calibration)


def require_positive(owner: str = "Monitor", /, **settings: object) -> None:
    """Refuse settings that are not numbers above zero.

    Args:
        owner: Whose settings they are.
        **settings: By name.

    Raises:
        ConfigurationError: One is not; the message names it.
    """
    for name, value in settings.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not value > 0:  # type: ignore[operator]  # neither is NaN
            raise ConfigurationError(f"{owner}: {name} must be a positive number, got {value!r}")


def require_limits(owner: str, limits: Mapping[str, float]) -> None:
    """Refuse limits that cannot be counted.

    Args:
        owner: Where they are given, for the message.
        limits: By name; US dollars where it begins with `usd`, else calls or tokens.

    Raises:
        ConfigurationError: One is not above zero, no whole number of calls or tokens, or too large.
    """
    require_positive(**{f"{owner}.{name}": limit for name, limit in limits.items()})
    for name, limit in limits.items():
        is_money = name.startswith("usd")
        most = _MOST_USD if is_money else _MOST
        if limit > most:
            raise ConfigurationError(
                f"Monitor: {owner}.{name} must be at most {most:g}, got {limit!r}; "
                "leave it out for no limit"
            )
        if not is_money and limit != int(limit):
            raise ConfigurationError(
                f"Monitor: {owner}.{name} must be a whole number, got {limit!r}"
            )


def require_kind(kind: type, **settings: object) -> None:
    """Refuse settings that are there and of another kind.

    Raises:
        ConfigurationError: One is; the message names it.
    """
    for name, value in settings.items():
        if value is not None and not isinstance(value, kind):
            raise ConfigurationError(
                f"Monitor: {name} must be a {kind.__name__}, got {type(value).__name__}"
            )


def require_choice(value: str, *choices: str, name: str) -> None:
    """Refuse a setting that is none of its choices.

    Raises:
        ConfigurationError: It is not; the message names it.
    """
    if value not in choices:
        raise ConfigurationError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
