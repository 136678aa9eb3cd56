"""Setting up the OpenTelemetry SDK for an application that has none."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Mapping

from opentelemetry import _logs, metrics, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from ragaliq.errors import ConfigurationError
from ragaliq.telemetry import otlp
from ragaliq.telemetry.closing import Closing
from ragaliq.telemetry.export_counts import (
    CountedEvents,
    CountedSpans,
    EventExport,
    ExportCounts,
    SpanExport,
)

__all__ = ["TelemetrySetup", "configure"]

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
        span_exporter: An exporter of your own instead of OTLP.
        log_exporter: An exporter of your own instead of OTLP.
        metric_reader: A reader of your own instead of one that exports by OTLP.
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
        span_exporter=span_exporter or otlp.spans(endpoint),
        log_exporter=log_exporter or otlp.logs(endpoint),
        metric_reader=metric_reader or PeriodicExportingMetricReader(otlp.metrics(endpoint)),
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
    # Until somebody sets a provider the API hands out a proxy; those of logs and metrics are
    # private.
    return not type(provider).__name__.lstrip("_").startswith("Proxy")
