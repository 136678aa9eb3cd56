"""How long to wait before something that failed is tried again."""

from __future__ import annotations

import random

__all__ = ["pause_before_retry", "spread"]

_MOST_DOUBLINGS = 60  # beyond that a float would overflow one day, and every cap is reached


def spread(seconds: float) -> float:
    """Up to a quarter more, so that a fleet does not come back in step."""
    return seconds * (1.0 + random.random() / 4)  # noqa: S311 - not for secrets


def pause_before_retry(failures: int, *, first: float, longest: float) -> float:
    """Seconds to wait after so many failures in a row, spread.

    Args:
        failures: How many there were, from 1.
        first: Seconds after the first one, doubled with each further one.
        longest: Most seconds, before they are spread.
    """
    return spread(min(first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), longest))
