"""Sinks for cases that are evaluated outside of live traffic."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

from ragaliq.core.results import EvaluationResult
from ragaliq.core.test_case import RAGTestCase
from ragaliq.sinks.base import SinkLimits, SinkStats
from ragaliq.sinks.resolve import SinkSpec
from ragaliq.sinks.sink_set import SinkSet
from ragaliq.telemetry.content import ContentPolicy, Redactor
from ragaliq.traces.origin import run_of

__all__ = ["OfflineSinks", "offline_sinks"]

# Seconds to wait for sinks when everything is evaluated.
_PATIENCE = 60.0


class OfflineSinks:
    """Stores the results of one run over many cases."""

    def __init__(self, sinks: SinkSet, pipeline: str) -> None:
        self._sinks, self._pipeline = sinks, pipeline

    def record(self, case: RAGTestCase, results: Mapping[str, EvaluationResult]) -> None:
        """Have a case's results stored; never blocks and never raises."""
        # Evaluated a second time, a case is another run: its history is what people look at.
        run = run_of(case, run_id=case.id, pipeline=self._pipeline, ended_at=time.time())
        self._sinks.record(case, results, run)

    def stats(self) -> Mapping[str, SinkStats]:
        """Counts by sink."""
        return self._sinks.stats()


@asynccontextmanager
async def offline_sinks(
    sinks: Iterable[SinkSpec],
    *,
    pipeline: str,
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
        yield OfflineSinks(opened, pipeline)
    finally:
        await asyncio.to_thread(opened.close, _PATIENCE)
