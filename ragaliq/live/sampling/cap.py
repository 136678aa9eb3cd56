"""A cap on runs per minute that leaves each run a chance that can be stated.

Stopping after the first so many runs of a minute would leave the others no chance at all, and no
estimate could make up for them. Here every chance is lowered instead, by a factor that depends on
earlier traffic only: on how many runs came, and what chance each had, never on which were chosen.
So a run's chance is exactly what is recorded with it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

__all__ = ["RateCap"]

_MINUTE = 60.0


class RateCap:
    """A bucket filled by the chances given out and emptied at a steady rate.

    Up to half of the bucket, runs keep their chance; above, the factor falls in a straight line to
    0 for a full one. Under steady load it settles where as much is given out as runs out. Bucket
    and outflow of a minute together make the cap, so that in no minute more than the cap is
    expected.

    What chance exceeds all the same is stopped by `admit`; these runs are lost to estimates.

    Args:
        per_minute: Runs in any minute at most.
        clock: Seconds, monotonic.
    """

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # At least 2, or a single certain run could overflow it.
        self._size = max(2.0, per_minute / 6)
        self._outflow = max(per_minute - self._size, per_minute / 2) / _MINUTE
        self._admitted: deque[float] = deque(maxlen=per_minute)
        self.restart()

    def restart(self) -> None:
        """Start anew, with a lock that nobody holds: for a forked child."""
        # Re-entrant: a stream that is dropped half-read ends its run from the garbage collector,
        # which may run on this thread while it holds the lock.
        self._lock = threading.RLock()
        self._level = 0.0
        self._at = self._clock()
        self._admitted.clear()

    def factor(self, probability: float) -> float:
        """What to multiply a run's chances with, in [0, 1].

        Args:
            probability: The chance the run would have without a cap; it counts whether or not the
                run is then chosen.
        """
        with self._lock:
            now = self._clock()
            self._level = max(0.0, self._level - (now - self._at) * self._outflow)
            self._at = now
            factor = min(1.0, 2.0 * (1.0 - self._level / self._size))
            self._level += probability * factor
            return factor

    def admit(self) -> bool:
        """Whether a chosen run still finds room in the last minute."""
        with self._lock:
            now = self._clock()
            times = self._admitted
            if len(times) == times.maxlen and now - times[0] < _MINUTE:
                return False
            times.append(now)
            return True
