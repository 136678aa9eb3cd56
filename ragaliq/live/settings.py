"""Settings from the environment; explicit arguments win over them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from ragaliq.errors import ConfigurationError
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.resolve import CalibrationSpec, JudgeSpec, resolve_judge

if TYPE_CHECKING:
    from pydantic_settings import BaseSettings

    class LiveSettings(BaseSettings):
        """The variables a monitor reads; see `read_settings`."""

        judge: str
        model: str | None
        sample_rate: float
        enabled: bool
        executor: str | None
        calibration: str | None


__all__ = [
    "chosen_judge",
    "read_settings",
    "require_choice",
    "require_kind",
    "require_limits",
    "require_positive",
]

# Larger amounts, of calls, tokens or millionths of a dollar, are not counted exactly everywhere.
_MOST, _MOST_USD = 1e15, 1e9


@cache
def _settings_class() -> type[LiveSettings]:
    # Loaded on first use: importing pydantic-settings costs more than all of `import ragaliq`.
    from pydantic_settings import BaseSettings, SettingsConfigDict

    class EnvironmentSettings(BaseSettings):
        model_config = SettingsConfigDict(env_prefix="RAGALIQ_", env_ignore_empty=True)

        judge: str = "local"
        model: str | None = None
        sample_rate: float = 1.0
        enabled: bool = True
        executor: str | None = None
        calibration: str | None = None

    return EnvironmentSettings  # type: ignore[return-value]


def read_settings() -> LiveSettings:
    """Read the variables that begin with `RAGALIQ_`; see `LiveSettings`.

    Raises:
        ConfigurationError: A variable has a value of the wrong kind; the message names it.
    """
    from pydantic import ValidationError

    try:
        return _settings_class()()  # type: ignore[call-arg]
    except ValidationError as error:
        problems = "; ".join(
            f"RAGALIQ_{str(problem['loc'][0]).upper()}: {problem['msg']}"
            for problem in error.errors()
        )
        raise ConfigurationError(f"wrong environment setting: {problems}") from None


def chosen_judge(
    settings: LiveSettings,
    judge: JudgeSpec | str | None,
    calibration: CalibrationSpec | None,
) -> LLMJudge:
    """The judge that the arguments ask for, else the environment.

    Raises:
        ConfigurationError: It cannot be built, or the calibration was made for another one.
    """
    return resolve_judge(
        settings.judge if judge is None else judge,
        model=settings.model,
        calibration=settings.calibration if calibration is None else calibration,
    )


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
