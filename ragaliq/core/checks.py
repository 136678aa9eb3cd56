"""Checks of settings; messages name the setting and its owner."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar

from ragaliq.errors import ConfigurationError

# Larger amounts, of calls, tokens or millionths of a dollar, are not counted exactly everywhere.
_MOST, _MOST_USD = 1e15, 1e9
# Arguments as other tools of the field call them.
_MEANT = {"evaluators": "metrics", "llm": "judge", "model": "judge"}

P = ParamSpec("P")
T = TypeVar("T")


def require_positive(owner: str = "Monitor", /, **settings: float) -> None:
    """Refuse settings that are not above zero."""
    for name, value in settings.items():
        if not value > 0:  # neither is NaN
            raise ConfigurationError(f"{owner}: {name} must be a positive number, got {value!r}")


def takes_only(*behind: Callable[..., object]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make a function refuse unknown arguments in its own name.

    It raises `TypeError`, as Python does, with a message that suggests the argument meant.

    Args:
        *behind: Functions that the remaining keyword arguments are passed to.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        owner = function.__qualname__.removesuffix(".__init__")
        signatures = [inspect.signature(each).parameters for each in (function, *behind)]
        known = {n for each in signatures for n, p in each.items() if p.kind is not p.VAR_KEYWORD}

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            for name in kwargs:
                if name not in known:
                    meant = _MEANT.get(name, name)
                    hint = did_you_mean(meant, known)
                    raise TypeError(f"{owner} got an unexpected argument {name!r}{hint}")
            return function(*args, **kwargs)

        return call

    return decorate


def did_you_mean(name: str, known: Iterable[str], *, at_least: float = 0.6) -> str:
    """Suggestion for a message: the nearest known name; empty where none is near enough.

    Args:
        name: The unknown name; upper and lower case are the same.
        known: The names that exist.
        at_least: Least similarity, 0 to 1.
    """
    by_plain_name = {each.lower(): each for each in known}
    nearest = get_close_matches(name.lower(), by_plain_name, n=1, cutoff=at_least)
    return f" (did you mean {by_plain_name[nearest[0]]!r}?)" if nearest else ""


def require_limits(owner: str, limits: Mapping[str, float]) -> None:
    """Refuse limits that cannot be counted: US dollars (`usd_...`), or whole calls or tokens."""
    require_positive(**{f"{owner}.{name}": limit for name, limit in limits.items()})
    for name, limit in limits.items():
        is_money = name.startswith("usd")
        most = _MOST_USD if is_money else _MOST
        if limit > most:
            raise ConfigurationError(
                f"Monitor: {owner}.{name} must be at most {most:g}, got {limit!r}; "
                "omit it for no limit"
            )
        if not is_money and limit != int(limit):
            raise ConfigurationError(
                f"Monitor: {owner}.{name} must be a whole number, got {limit!r}"
            )


def require_choice(value: str, *choices: str, name: str) -> None:
    """Refuse a setting that is none of its choices."""
    if value not in choices:
        raise ConfigurationError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


@contextmanager
def naming(variable: str | None) -> Iterator[None]:
    """Name the variable that a wrong value came from in a `ConfigurationError` raised inside."""
    try:
        yield
    except ConfigurationError as error:
        if variable is None or variable in str(error):
            raise
        raise ConfigurationError(f"{variable}: {error}") from None
