"""Setting up the OpenTelemetry SDK for an application that has none; ended within a time limit."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from opentelemetry import _logs, metrics, trace
from opentelemetry.sdk._logs import (
    LoggerProvider,
    LogRecordProcessor,
    ReadableLogRecord,
    ReadWriteLogRecord,
)
from opentelemetry.sdk._logs.export import (
    BatchLogRecordProcessor,
    LogRecordExporter,
    LogRecordExportResult,
)
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    MetricExporter,
    MetricReader,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from ragaliq.errors import ConfigurationError

__all__ = ["ExportCounts", "TelemetrySetup", "configure"]

logger = logging.getLogger(__name__)


class TelemetrySetup:
    """The providers `configure` made.

    Attributes:
        tracer_provider: For spans.
        logger_provider: For events.
        meter_provider: For metrics.
    """

    def __init__(
        self,
        resource: Resource,
        *,
        span_exporter: SpanExporter,
        log_exporter: LogRecordExporter,
        metric_reader: MetricReader,
        exit_timeout: float,
    ) -> None:
        self._spans, self._events = CountedSpans(), CountedEvents()
        # Their own exit hooks would wait for a receiver for as long as it likes.
        self.meter_provider = MeterProvider(
            [metric_reader], resource=resource, shutdown_on_exit=False
        )
        self.tracer_provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self.logger_provider = LoggerProvider(resource=resource, shutdown_on_exit=False)
        self.tracer_provider.add_span_processor(self._spans)
        self.tracer_provider.add_span_processor(
            BatchSpanProcessor(SpanExport(span_exporter, self._spans))
        )
        self.logger_provider.add_log_record_processor(self._events)
        self.logger_provider.add_log_record_processor(
            BatchLogRecordProcessor(EventExport(log_exporter, self._events))
        )
        self._closing = Closing(self._close, exit_timeout=exit_timeout)

    def flush(self, timeout: float = 10.0) -> bool:
        """Export what is waiting; False if it failed, or the SDK found the time too short."""
        millis = int(timeout * 1000)
        try:
            measured = self.meter_provider.force_flush(millis)
        except Exception as error:  # noqa: BLE001 - the SDK has no class for it
            logger.debug("metrics could not be flushed: %s", type(error).__name__)
            measured = False
        spans = self.tracer_provider.force_flush(millis)
        return self.logger_provider.force_flush(millis) and spans and measured

    def shutdown(self, timeout: float = 10.0) -> bool:
        """Export what is waiting and stop; False if `timeout` seconds were not enough."""
        return self._closing.within(timeout)

    def exports(self) -> Mapping[str, ExportCounts]:
        """What became of `spans` and `events` so far."""
        return {"spans": self._spans.counts, "events": self._events.counts}

    def _close(self) -> None:
        for provider in (self.tracer_provider, self.logger_provider, self.meter_provider):
            try:
                provider.shutdown()
            except Exception as error:  # noqa: BLE001 - the others are to be closed as well
                logger.debug("a provider could not be shut down: %s", type(error).__name__)


def configure(
    *,
    service_name: str | None = None,
    endpoint: str | None = None,
    span_exporter: SpanExporter | None = None,
    log_exporter: LogRecordExporter | None = None,
    metric_reader: MetricReader | None = None,
    exit_timeout: float = 10.0,
) -> TelemetrySetup:
    """Set up tracing, events and metrics for the process, exporting by OTLP over HTTP.

    The usual `OTEL_*` variables apply; arguments win over them. At exit what is waiting is
    exported, for at most `exit_timeout` seconds.

    Args:
        service_name: Resource attribute `service.name`; by default from `OTEL_SERVICE_NAME`.
        endpoint: Base address of the OTLP receiver, such as `http://localhost:4318`.
        span_exporter: An exporter to use instead of OTLP.
        log_exporter: An exporter to use instead of OTLP.
        metric_reader: A reader to use instead of one that exports by OTLP.
        exit_timeout: Seconds the process may take at exit to export what is waiting.

    Raises:
        ConfigurationError: The process has a tracer, logger or meter provider already, or the
            OTLP exporter is not installed.
    """
    # None can be replaced: setting up the others only would split what belongs together.
    for kind, provider in (
        ("tracer", trace.get_tracer_provider()),
        ("logger", _logs.get_logger_provider()),
        ("meter", metrics.get_meter_provider()),
    ):
        if _is_set(provider):
            raise ConfigurationError(
                f"this process has an OpenTelemetry {kind} provider already; ragaliq uses what is "
                "set up as it is, do not call configure()"
            )
    name = service_name or os.environ.get("OTEL_SERVICE_NAME")
    setup = TelemetrySetup(
        _resource(name),
        span_exporter=span_exporter or _otlp_spans(endpoint),
        log_exporter=log_exporter or _otlp_logs(endpoint),
        metric_reader=metric_reader or PeriodicExportingMetricReader(_otlp_metrics(endpoint)),
        exit_timeout=exit_timeout,
    )
    metrics.set_meter_provider(setup.meter_provider)
    trace.set_tracer_provider(setup.tracer_provider)
    _logs.set_logger_provider(setup.logger_provider)
    return setup


def _resource(service_name: str | None) -> Resource:
    resource = Resource.create({"service.name": service_name} if service_name else {})
    # Processes of one service whose metrics have nothing to tell them apart overwrite each other's
    # in a collector. Newer SDKs see to it themselves.
    own = Resource({"service.instance.id": str(uuid.uuid4())})
    return own.merge(resource)


def _is_set(provider: object) -> bool:
    # Until somebody sets a provider the API gives a proxy; those of logs and metrics are
    # private.
    return not type(provider).__name__.lstrip("_").startswith("Proxy")


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
        self._reset()
        if hasattr(os, "register_at_fork"):
            again = weakref.WeakMethod(self._reset)
            os.register_at_fork(after_in_child=lambda: (start := again()) and start())

    def _reset(self) -> None:
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
    """Counts the spans that end; add it before the processor that exports them."""

    def on_end(self, span: ReadableSpan) -> None:
        """Count a span, if it is sampled: others are never exported."""
        if span.context is not None and span.context.trace_flags.sampled:
            self.emitted()

    def force_flush(self, timeout_millis: int = 30000) -> bool:  # noqa: ARG002
        """Nothing to wait for."""
        # SDK 1.39 inherits None here, takes it for a failure and flushes no processor after it.
        return True


class CountedEvents(_Ledger, LogRecordProcessor):
    """Counts log records; add it before the processor that exports them."""

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


class Closing:
    """Calls `close` on a thread of its own, once, and waits for it only as long as asked.

    An exporter in the middle of a request cannot be interrupted: a receiver that accepts and does
    not answer would hold the process for as long as the SDK likes. The thread exists beforehand,
    since none can be started when the interpreter ends.

    Args:
        close: Exports what is waiting and stops.
        exit_timeout: Seconds it may take at exit.
    """

    def __init__(self, close: Callable[[], None], *, exit_timeout: float) -> None:
        self._close = close
        self._exit_timeout = exit_timeout
        self._start()
        atexit.register(self._at_exit)
        if hasattr(os, "register_at_fork"):
            again = weakref.WeakMethod(self._start)
            os.register_at_fork(after_in_child=lambda: (start := again()) and start())

    def within(self, timeout: float) -> bool:
        """Close; False if `timeout` seconds were not enough; it continues then."""
        self._asked.set()
        return self._closed.wait(timeout)

    def _at_exit(self) -> None:
        # Who asked before has waited as long as they wanted to.
        if not self._asked.is_set():
            self.within(self._exit_timeout)

    def _start(self) -> None:
        self._asked, self._closed = threading.Event(), threading.Event()
        threading.Thread(target=self._run, name="ragaliq-closing", daemon=True).start()

    def _run(self) -> None:
        self._asked.wait()
        try:
            self._close()
        finally:
            self._closed.set()


def _otlp_spans(endpoint: str | None) -> SpanExporter:
    """Exports spans to `endpoint`, or to where the environment says."""
    with _required():
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    return OTLPSpanExporter(endpoint=_address(endpoint, "traces"))


def _otlp_logs(endpoint: str | None) -> LogRecordExporter:
    """Exports log records to `endpoint`, or to where the environment says."""
    with _required():
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    return OTLPLogExporter(endpoint=_address(endpoint, "logs"))


def _otlp_metrics(endpoint: str | None) -> MetricExporter:
    """Exports metrics to `endpoint`, or to where the environment says."""
    with _required():
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    return OTLPMetricExporter(endpoint=_address(endpoint, "metrics"))


def _address(endpoint: str | None, signal: str) -> str | None:
    # The SDK appends the signal's path only to an address that comes from the environment.
    return f"{endpoint.rstrip('/')}/v1/{signal}" if endpoint else None


@contextmanager
def _required() -> Iterator[None]:
    try:
        yield
    except ImportError:
        raise ConfigurationError(
            "the OTLP exporter is not installed: pip install 'ragaliq[otlp]'"
        ) from None
