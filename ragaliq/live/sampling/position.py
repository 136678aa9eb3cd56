"""The one random number of a run: the same in every process, for every rate and every rule."""

from __future__ import annotations

from hashlib import blake2b
from uuid import UUID

from opentelemetry import context, trace

__all__ = ["position", "sampling_key"]

_BLANK = blake2b(digest_size=8, person=b"ragaliq")  # a copy costs a third of a new one
_SPARE_BITS = 64 - 53
_UNIT = 2.0**-53


def position(key: str) -> float:
    """A trace or run id as a number in [0, 1), uniform over ids.

    Whatever has a chance of `p` is chosen where this is below `p`. Being the same number for all,
    a lower chance chooses a subset of what a higher one does.

    Args:
        key: Any text; the same text gives the same number everywhere.
    """
    # Ids are not uniform (the high bits of a UUIDv7 are the clock): hash them first. The 53 bits
    # kept are a float's, or rounding could give 1.0.
    hashed = _BLANK.copy()
    hashed.update(key.encode("utf-8", "surrogatepass"))
    return (int.from_bytes(hashed.digest()) >> _SPARE_BITS) * _UNIT


def sampling_key(run_id: str | UUID) -> str:
    """The id that decides about a run: that of the current trace, else its own."""
    if not context.get_current():
        return str(run_id)  # nothing is current at all, no span either
    span_context = trace.get_current_span().get_span_context()
    return f"{span_context.trace_id:032x}" if span_context.is_valid else str(run_id)
