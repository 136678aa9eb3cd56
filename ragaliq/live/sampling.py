"""Which runs are evaluated: a decision made from the trace or run id alone.

The same id gives the same decision in every process, so that a trace spread over several services
is scored whole or not at all, and a rate can be estimated without bias from the sampled runs.
"""

from __future__ import annotations

from hashlib import blake2b

from ragaliq.errors import ConfigurationError

__all__ = ["Sampler"]

_BUCKETS = 2**64


class Sampler:
    """Samples a share of ids.

    Args:
        rate: Share to sample, 0 to 1; also each run's inclusion probability.

    Raises:
        ConfigurationError: The rate is outside [0, 1].
    """

    def __init__(self, rate: float) -> None:
        if not 0.0 <= rate <= 1.0:
            raise ConfigurationError(f"sample_rate must be within [0, 1], got {rate}")
        self.rate = rate
        self._limit = round(rate * _BUCKETS)

    def decide(self, key: str) -> bool:
        """Whether the run or trace with this id is evaluated."""
        if self._limit == 0:
            return False
        if self._limit == _BUCKETS:
            return True
        # Ids are not uniform (the high bits of a UUIDv7 are the clock): hash them first.
        digest = blake2b(
            key.encode("utf-8", "surrogatepass"), digest_size=8, person=b"ragaliq"
        ).digest()
        return int.from_bytes(digest) < self._limit
