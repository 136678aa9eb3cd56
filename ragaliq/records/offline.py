"""Sinks for cases that are evaluated outside of live traffic."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

from ragaliq.core.results import Evaluation
from ragaliq.records.base import SinkLimits, SinkStats
from ragaliq.records.resolve import SinkSpec
from ragaliq.records.sink_set import SinkSet
from ragaliq.telemetry.content import ContentPolicy, Redactor

__all__ = ["OfflineSinks", "offline_sinks"]

# Seconds to wait for sinks when everything is evaluated.
_PATIENCE = 60.0


class OfflineSinks:
    """Stores the results of one run over many cases."""

    def __init__(self, sinks: SinkSet) -> None:
        self._sinks = sinks

    def record(self, evaluation: Evaluation) -> None:
        """Have a case's results stored; never blocks and never raises."""
        self._sinks.record(evaluation)

    def stats(self) -> Mapping[str, SinkStats]:
        """Counts by sink."""
        return self._sinks.stats()


@asynccontextmanager
async def offline_sinks(
    sinks: Iterable[SinkSpec],
    *,
    capture_content: bool | None,
    redact: Redactor | None,
    cases: int,
) -> AsyncIterator[OfflineSinks]:
    """Open the sinks of a run; at its end, however it comes, what is pending is stored.

    Raises:
        ConfigurationError: A spec names no sink, or the environment asks for nonsense.
    """
    content = ContentPolicy.resolve(capture_content=capture_content, redact=redact)
    # Room for all: nobody's request waits here, so there is no reason to drop anything.
    limits = SinkLimits(max_queue=max(cases, SinkLimits().max_queue), max_characters=sys.maxsize)
    opened = SinkSet(sinks, content=content, limits=limits)
    try:
        yield OfflineSinks(opened)
    finally:
        await asyncio.to_thread(opened.close, _PATIENCE)
