"""Counting what was handed to an exporter and what became of it.

The SDK's batch processors keep a bounded queue, drop what does not fit and count it only for their
own metrics, which go the same way as the rest. Here the counts stay in the process.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass

from opentelemetry.sdk._logs import LogRecordProcessor, ReadableLogRecord, ReadWriteLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

__all__ = ["CountedEvents", "CountedSpans", "EventExport", "ExportCounts", "SpanExport"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ExportCounts:
    """What became of one signal.

    Attributes:
        emitted: Handed to the queue.
        exported: Taken by the receiver.
        failed: Given up on by the exporter, after its own retries.
    """

    emitted: int = 0
    exported: int = 0
    failed: int = 0

    @property
    def unsettled(self) -> int:
        """Still waiting, or dropped because the queue was full; after a shutdown, dropped."""
        return self.emitted - self.exported - self.failed


class _Ledger:
    def __init__(self) -> None:
        self._start_afresh()
        if hasattr(os, "register_at_fork"):
            again = weakref.WeakMethod(self._start_afresh)
            os.register_at_fork(after_in_child=lambda: (start := again()) and start())

    def _start_afresh(self) -> None:
        # Also in a forked child, whose queue is empty; the parent may have held the lock. It is
        # re-entrant since the garbage collector may end a span on the thread that holds it.
        self._lock = threading.RLock()
        self._emitted = self._exported = self._failed = 0

    def emitted(self) -> None:
        with self._lock:
            self._emitted += 1

    def settled(self, number: int, *, exported: bool) -> None:
        with self._lock:
            if exported:
                self._exported += number
            else:
                self._failed += number

    @property
    def counts(self) -> ExportCounts:
        """The counts now."""
        with self._lock:
            return ExportCounts(emitted=self._emitted, exported=self._exported, failed=self._failed)


class CountedSpans(_Ledger, SpanProcessor):
    """Counts the spans that end; put it beside the processor that exports them."""

    def on_end(self, span: ReadableSpan) -> None:
        """Count a span, if it is sampled: others are never exported."""
        if span.context is not None and span.context.trace_flags.sampled:
            self.emitted()

    def force_flush(self, timeout_millis: int = 30000) -> bool:  # noqa: ARG002
        """Nothing to wait for."""
        # SDK 1.39 inherits None here, takes it for a failure and flushes no processor after it.
        return True


class CountedEvents(_Ledger, LogRecordProcessor):
    """Counts log records; put it beside the processor that exports them."""

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:  # noqa: ARG002
        """Count a record."""
        self.emitted()

    def shutdown(self) -> None:
        """Nothing to end."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:  # noqa: ARG002
        """Nothing to wait for."""
        return True


class SpanExport(SpanExporter):
    """An exporter whose outcomes are counted."""

    def __init__(self, exporter: SpanExporter, ledger: CountedSpans) -> None:
        self._exporter = exporter
        self._ledger = ledger

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export a batch."""
        result = SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
        except Exception as error:  # noqa: BLE001 - OTLP 1.39 raises when nothing listens
            logger.warning("spans could not be exported: %s", type(error).__name__)
        finally:
            self._ledger.settled(len(spans), exported=result is SpanExportResult.SUCCESS)
        return result

    def shutdown(self) -> None:
        """Shut the exporter down."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Flush the exporter."""
        return self._exporter.force_flush(timeout_millis)


class EventExport(LogRecordExporter):
    """An exporter whose outcomes are counted."""

    def __init__(self, exporter: LogRecordExporter, ledger: CountedEvents) -> None:
        self._exporter = exporter
        self._ledger = ledger

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        """Export a batch."""
        result = LogRecordExportResult.FAILURE
        try:
            result = self._exporter.export(batch)
        except Exception as error:  # noqa: BLE001 - OTLP 1.39 raises when nothing listens
            logger.warning("events could not be exported: %s", type(error).__name__)
        finally:
            self._ledger.settled(len(batch), exported=result is LogRecordExportResult.SUCCESS)
        return result

    def shutdown(self) -> None:
        """Shut the exporter down."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Flush the exporter."""
        return self._exporter.force_flush(timeout_millis)
