"""What is followed together, because it becomes one case: the spans of one run."""

from __future__ import annotations

from collections.abc import Iterable

from ragaliq.live.open_run import OpenRun
from ragaliq.live.tracing.copied import Copied

__all__ = ["PastSpans", "Unit"]

_PAST = 8192


class Unit:
    """A run in progress, or the steps that an application takes in one trace without a chain.

    Args:
        ticket: What it was begun with; None for one that is only followed in order to leave out
            the spans below it.
        top: Id of its first span.
        trace_id: The trace it is in.
        started: Seconds on the monotonic clock.
        start_ns: When its first span began.
        is_sampled: Whether the application's tracer keeps its spans.

    Attributes:
        is_loose: Whether it waits for the end of the request around it.
        ids: The spans that belong to it.
        open: Those of language model work that have not ended.
        spans: Copies of those that have.
        size: Bytes the copies take.
        due: Seconds on the monotonic clock when it is to be read; None while it goes on.
        is_closed: Whether it is followed no more.
    """

    __slots__ = (
        "due",
        "ids",
        "is_closed",
        "is_loose",
        "is_sampled",
        "open",
        "size",
        "spans",
        "start_ns",
        "started",
        "ticket",
        "top",
        "trace_id",
    )

    def __init__(
        self,
        ticket: OpenRun | None,
        *,
        top: int,
        trace_id: int,
        started: float,
        start_ns: int,
        is_sampled: bool,
    ) -> None:
        self.ticket = ticket
        self.top = top
        self.trace_id = trace_id
        self.started = started
        self.start_ns = start_ns
        self.is_sampled = is_sampled
        self.is_loose = False
        self.ids: set[int] = {top}
        self.open: set[int] = {top}
        self.spans: list[Copied] = []
        self.size = 0
        self.due: float | None = None
        self.is_closed = False


class PastSpans:
    """A bounded memory of spans whose runs are over, so that a late child begins no new run.

    It remembers the latest `_PAST` of them at least and about twice as many at most.
    """

    def __init__(self) -> None:
        self._latest: set[int] = set()
        self._before: set[int] = set()

    def __contains__(self, span_id: int) -> bool:
        return span_id in self._latest or span_id in self._before

    def __len__(self) -> int:
        return len(self._latest) + len(self._before)

    def add(self, span_ids: Iterable[int]) -> None:
        """Remember spans; under the lock of whoever keeps this."""
        self._latest.update(span_ids)
        if len(self._latest) >= _PAST:
            self._latest, self._before = set(), self._latest
