"""What a sink is, how it says that it failed, and what is counted of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from ragaliq.errors import RagaliqError
from ragaliq.records.record import EvaluationRecord

__all__ = ["Remembering", "Settling", "Sink", "SinkError", "SinkLimits", "SinkStats"]


@runtime_checkable
class Sink(Protocol):
    """A place where records go. One method does the work; a class of your own will do.

    `write` is called on a thread that serves this sink alone, never twice at the same time, and
    again for records it did not deliver: writing the same record twice must leave one.
    """

    @property
    def name(self) -> str:
        """Names the sink in counts and logs."""
        ...

    async def write(self, records: Sequence[EvaluationRecord]) -> None:
        """Store the records.

        Raises:
            SinkError: Some or all were not stored, and whether trying again can help. Any other
                exception counts as one that may pass.
        """
        ...

    async def aclose(self) -> None:
        """Let go of connections; the sink may be used again afterwards."""
        ...


@runtime_checkable
class Remembering(Protocol):
    """A sink that can tell what it has: a job that comes again is then not judged again."""

    async def holds(self, evaluation_id: str) -> bool:
        """Whether a record with this id is stored."""
        ...


@runtime_checkable
class Settling(Protocol):
    """A sink with something to do when nothing is left to be written: the process may end now."""

    async def settle(self) -> None:
        """Bring what was written to its last place; more may be written later."""
        ...


class SinkError(RagaliqError):
    """A sink did not store records.

    Args:
        message: What happened; never a key, never text that was judged.
        kind: A word for counting and for metrics, such as `timeout` or `http_500`.
        permanent: Trying again cannot help.
        retry_after: Seconds the receiver asks to wait.
        undelivered: The records concerned; all that were handed over when None.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str = "error",
        permanent: bool = False,
        retry_after: float | None = None,
        undelivered: Sequence[EvaluationRecord] | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.permanent = permanent
        self.retry_after = retry_after
        self.undelivered = undelivered


@dataclass(frozen=True, kw_only=True)
class SinkLimits:
    """How long and how often a sink is tried.

    Attributes:
        max_queue: Records that may wait; further ones are dropped and counted.
        max_characters: Characters their texts may have; further records are dropped and counted.
        max_batch: Records handed over at once.
        timeout: Seconds one `write` may take.
        attempts: Times a record is tried.
        backoff: Seconds before the second attempt; doubled for each further one.
        max_backoff: Most seconds between two attempts, whatever the receiver asks for.
    """

    max_queue: int = 1000
    max_characters: int = 32_000_000
    max_batch: int = 100
    timeout: float = 10.0
    attempts: int = 5
    backoff: float = 0.5
    max_backoff: float = 30.0


@dataclass(frozen=True, kw_only=True)
class SinkStats:
    """Counts of one sink: `records == written + failed + dropped + pending` always holds.

    Attributes:
        records: Records meant for the sink.
        written: Records it stored.
        failed: Records given up after the last attempt, or refused for good.
        dropped: Records that found the queue full, or were left over at the end.
        pending: Records that wait or are being written.
        errors: Failed attempts by kind.
    """

    records: int = 0
    written: int = 0
    failed: int = 0
    dropped: int = 0
    pending: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
