"""Checks of data before anything is computed: a figure from broken data is worse than none."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sized
from numbers import Real

from ragaliq.errors import ConfigurationError, DatasetError

Bounds = tuple[float, float]
"""The lowest and the highest value a score can take."""

_PLAIN = {float, int, bool}


def numbers_of(
    values: Iterable[float], *, name: str, bounds: Bounds = (-math.inf, math.inf)
) -> list[float]:
    """Convert values to finite floats within the bounds; require at least one."""
    given = list(values)
    if not given:
        raise DatasetError(f"{name}: no values; at least one is needed")
    # Resampling checks every resample: the usual case avoids a Python loop.
    if not set(map(type, given)) <= _PLAIN:
        for position, value in enumerate(given):
            if not isinstance(value, Real):
                kind = type(value).__name__
                raise DatasetError(f"{name}[{position}] is a {kind}, not a number")
    numbers = list(map(float, given))
    low, high = bounds
    if all(map(math.isfinite, numbers)) and low <= min(numbers) <= max(numbers) <= high:
        return numbers
    for position, number in enumerate(numbers):
        if not math.isfinite(number):
            raise DatasetError(
                f"{name}[{position}] is {number}; exclude what was not scored before counting"
            )
        if not low <= number <= high:
            raise DatasetError(
                f"{name}[{position}] is {number:g}; values must be within [{low:g}, {high:g}]"
            )
    return numbers


def probabilities_of(values: Iterable[float]) -> list[float]:
    """Check inclusion probabilities: each above 0 and at most 1."""
    probabilities = numbers_of(values, name="probabilities")
    for position, probability in enumerate(probabilities):
        if not 0.0 < probability <= 1.0:
            raise DatasetError(
                f"probabilities[{position}] is {probability:g}; the chance of being included must "
                "be within (0, 1]"
            )
    return probabilities


def require_same_length(**columns: Sized) -> None:
    """Raise DatasetError unless all columns have the same length."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise DatasetError(f"columns differ in length: {listed}")


def require_share(value: float, *, name: str = "confidence") -> None:
    """Raise ConfigurationError unless the value is strictly between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise ConfigurationError(f"{name} must be between 0 and 1, got {value}")
