"""Circuit breaker: pauses a judge that keeps failing.

It is our own, since neither known library fits. pybreaker is for threads and Tornado, holds a lock
during a call, and does not support asyncio. purgatory is asynchronous, but after its pause it lets
every waiting call through instead of one. Both count exceptions; here a failure is a result.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ragaliq.core.checks import require_positive
from ragaliq.errors import CircuitOpenError

logger = logging.getLogger(__name__)

BreakerState = Literal["closed", "open", "half_open"]
"""`closed`: runs go to the judge. `open`: none does. `half_open`: one tries."""


NOT_ASKED = "the judge was not asked: it failed too often in a row"


@dataclass(frozen=True, kw_only=True)
class CircuitBreaker:
    """Settings of the circuit breaker.

    Attributes:
        failures: Failed runs in a row that open the breaker.
        pause: Seconds without calls; then the breaker is half-open and one run tries the judge.

    Raises:
        ConfigurationError: One of them is not positive.
    """

    failures: int = 5
    pause: float = 30.0

    def __post_init__(self) -> None:
        require_positive(**{"breaker.failures": self.failures, "breaker.pause": self.pause})


class Circuit:
    """State of the breaker; used on the worker's loop only, without concurrent calls.

    Args:
        breaker: The settings.
        clock: Seconds, monotonic.
    """

    def __init__(
        self, breaker: CircuitBreaker, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._breaker = breaker
        self._clock = clock
        self._failed = 0
        self._opened_at: float | None = None
        self._is_probing = False

    @property
    def state(self) -> BreakerState:
        """Current state."""
        if self._opened_at is None:
            return "closed"
        over = self._clock() - self._opened_at >= self._breaker.pause
        return "half_open" if over else "open"

    def enter(self) -> bool:
        """Admit a run to the judge; return True if it is the probe.

        Raises:
            CircuitOpenError: The breaker is open.
        """
        if self._is_probing or self.state == "open":
            raise CircuitOpenError(NOT_ASKED)
        self._is_probing = self._opened_at is not None
        return self._is_probing

    def leave(self, *, failed: bool | None, is_probe: bool, is_lasting: bool = False) -> None:
        """Record the outcome of a run.

        Args:
            failed: Whether the judge failed; None if the run says nothing about the judge.
            is_probe: The value that `enter` returned.
            is_lasting: Whether the failure is permanent: one such failure opens the breaker.
        """
        if is_probe:
            self._is_probing = False
        elif self._opened_at is not None:
            return  # sent before it opened: the probe decides
        if failed is None:
            return
        if not failed:
            if self._opened_at is not None:
                logger.warning("the judge answers again")
            self._failed, self._opened_at = 0, None
            return
        self._failed += 1
        if is_probe or is_lasting or self._failed >= self._breaker.failures:
            logger.warning(
                "the judge failed %d runs in a row%s: none is sent to it for %g s",
                self._failed,
                ", its account has no credit left" if is_lasting else "",
                self._breaker.pause,
            )
            self._opened_at = self._clock()
