"""When batches are sent, asked after and given up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ragaliq.errors import ConfigurationError

__all__ = ["MOST_BYTES", "MOST_REQUESTS", "Backoff", "Schedule"]

MOST_REQUESTS = 100_000
MOST_BYTES = 256_000_000
"""What the API takes in one batch."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Limits and pauses; times in seconds.

    Attributes:
        max_requests: Requests that are sent as soon as they are there.
        max_bytes: Bytes of requests that are sent as soon as they are there.
        max_wait: How long a request waits for company.
        poll_interval: First pause between two looks at a batch; later ones are longer.
        max_age: How long somebody waits for the reply to one request.
        resend_after: How long after a batch was perhaps sent it is sent again, if the API does
            not list it by then.

    Raises:
        ConfigurationError: One is not positive, or beyond what the API takes.
    """

    max_requests: int = 10_000
    max_bytes: int = 200_000_000
    max_wait: float = 30.0
    poll_interval: float = 15.0
    max_age: float = 26 * 3600.0
    resend_after: float = 60.0

    @classmethod
    def names(cls) -> list[str]:
        """The names of all settings."""
        return [field.name for field in fields(cls)]

    @classmethod
    def of(cls, options: Mapping[str, float], **arguments: float) -> Schedule:
        """A schedule from arguments, over which options win."""
        chosen: dict[str, Any] = {**arguments, **options}
        for name in ("max_requests", "max_bytes"):
            if isinstance(chosen[name], float) and math.isfinite(chosen[name]):
                chosen[name] = int(chosen[name])
        return cls(**chosen)

    def __post_init__(self) -> None:
        for name in self.names():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise ConfigurationError(
                    f"ClaudeBatchJudge: {name} must be a positive number, got {value!r}"
                )
        for name, value, most in (
            ("max_requests", self.max_requests, MOST_REQUESTS),
            ("max_bytes", self.max_bytes, MOST_BYTES),
        ):
            if value > most:
                raise ConfigurationError(
                    f"ClaudeBatchJudge: {name} can be at most {most:,}, which is what the API "
                    f"takes; got {value!r}"
                )


class Backoff:
    """Pauses that grow by half each time, up to a limit.

    Args:
        first: The first pause, in seconds.
        longest: The longest one.
    """

    def __init__(self, first: float, longest: float) -> None:
        self._first, self._longest = first, max(first, longest)
        self._next = first

    def pause(self) -> float:
        """The next pause."""
        pause = self._next
        self._next = min(self._longest, pause * 1.5)
        return pause

    def reset(self) -> None:
        """Begin with the first one again."""
        self._next = self._first
