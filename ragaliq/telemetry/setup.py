"""Setup of the OpenTelemetry SDK for an application without one, with a time limit at exit."""

from __future__ import annotations

import logging
import os
import threading
import uuid
from typing import Any, cast

from opentelemetry import _logs, metrics, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    MetricExporter,
    MetricReader,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from ragaliq._private import is_unset
from ragaliq.core.process import close_last, watch_forks
from ragaliq.errors import ConfigurationError
from ragaliq.telemetry.providers import force_flush

logger = logging.getLogger(__name__)


class TelemetrySetup:
    """Providers created by `configure`.

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
        # The providers' own exit hooks would wait for a receiver without a limit.
        self.meter_provider = MeterProvider(
            [metric_reader], resource=resource, shutdown_on_exit=False
        )
        self.tracer_provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self.logger_provider = LoggerProvider(resource=resource, shutdown_on_exit=False)
        self._exporters = [_Exporter(span_exporter), _Exporter(log_exporter)]
        spans, events = self._exporters
        self.tracer_provider.add_span_processor(BatchSpanProcessor(cast("SpanExporter", spans)))
        self.logger_provider.add_log_record_processor(
            BatchLogRecordProcessor(cast("LogRecordExporter", events))
        )
        if isinstance(metric_reader, _Metrics):
            self._exporters.append(metric_reader.exporter)
        self._exit_timeout = exit_timeout
        self.restart_after_fork()
        watch_forks(self)
        close_last(self._at_exit)

    def flush(self, timeout: float = 10.0) -> bool:
        """Export what is queued.

        Returns:
            False if an export failed since the last flush, or the SDK ran out of time.
        """
        providers = (self.tracer_provider, self.logger_provider, self.meter_provider)
        flushed = [force_flush(provider, timeout) for provider in providers]
        # The SDK reports success when an exporter has given up.
        failed = [exporter.has_failed_again() for exporter in self._exporters]
        return all(flushed) and not any(failed)

    def shutdown(self, timeout: float = 10.0) -> bool:
        """Export what is queued and stop; False if `timeout` seconds were not enough."""
        self._asked.set()
        return self._closed.wait(timeout)

    # An exporter in the middle of a request cannot be interrupted: a receiver that accepts and does
    # not answer would hold the process for as long as the SDK waits. So another thread closes; it
    # is started beforehand, since none can be started when the interpreter ends.

    def restart_after_fork(self) -> None:
        """Start the thread that closes, which a forked child lacks."""
        self._asked, self._closed = threading.Event(), threading.Event()
        threading.Thread(target=self._close, name="ragaliq-closing", daemon=True).start()

    def _close(self) -> None:
        self._asked.wait()
        for provider in (self.tracer_provider, self.logger_provider, self.meter_provider):
            try:
                provider.shutdown()
            except Exception as error:  # noqa: BLE001 - the others are to be closed as well
                logger.debug("a provider could not be shut down: %s", type(error).__name__)
        self._closed.set()

    def _at_exit(self) -> None:
        if not self._asked.is_set():  # else the application has waited as long as it wanted to
            self.shutdown(self._exit_timeout)


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

    The usual `OTEL_*` variables apply; arguments take precedence. At exit, what is queued is
    exported for at most `exit_timeout` seconds.

    Args:
        service_name: Resource attribute `service.name`; by default from `OTEL_SERVICE_NAME`.
        endpoint: Base address of the OTLP receiver, such as `http://localhost:4318`.
        span_exporter: An exporter to use instead of OTLP.
        log_exporter: An exporter to use instead of OTLP.
        metric_reader: A reader to use instead of one that exports by OTLP.
        exit_timeout: Most seconds for the export at exit.

    Raises:
        ConfigurationError: The process has a tracer, logger or meter provider already, the OTLP
            exporter is not installed, or the endpoint has no scheme.
    """
    if endpoint and not endpoint.startswith(("http://", "https://")):
        raise ConfigurationError("telemetry.configure: begin endpoint with http:// or https://")
    for kind, provider in (
        ("tracer", trace.get_tracer_provider()),
        ("logger", _logs.get_logger_provider()),
        ("meter", metrics.get_meter_provider()),
    ):
        # A set provider cannot be replaced, and setting up only the others would split the signals.
        if not is_unset(provider):
            raise ConfigurationError(
                f"this process has an OpenTelemetry {kind} provider already; ragaliq uses what is "
                "set up as it is, do not call configure()"
            )
    name = service_name or os.environ.get("OTEL_SERVICE_NAME")
    # Without an instance id, processes of one service overwrite each other's metrics in a
    # collector. Newer SDKs set one themselves.
    instance = Resource({"service.instance.id": str(uuid.uuid4())})
    if span_exporter is None or log_exporter is None or metric_reader is None:
        try:
            from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        except ImportError:
            raise ConfigurationError(
                "the OTLP exporter is not installed: pip install 'ragaliq[otlp]'"
            ) from None
        # The SDK appends the signal's path only to an address that comes from the environment.
        at = {
            signal: f"{endpoint.rstrip('/')}/v1/{signal}" if endpoint else None
            for signal in ("traces", "logs", "metrics")
        }
        span_exporter = span_exporter or OTLPSpanExporter(endpoint=at["traces"])
        log_exporter = log_exporter or OTLPLogExporter(endpoint=at["logs"])
        metric_reader = metric_reader or _Metrics(OTLPMetricExporter(endpoint=at["metrics"]))
    setup = TelemetrySetup(
        instance.merge(Resource.create({"service.name": name} if name else {})),
        span_exporter=span_exporter,
        log_exporter=log_exporter,
        metric_reader=metric_reader,
        exit_timeout=exit_timeout,
    )
    metrics.set_meter_provider(setup.meter_provider)
    trace.set_tracer_provider(setup.tracer_provider)
    _logs.set_logger_provider(setup.logger_provider)
    return setup


class _Exporter:
    """Exporter of any signal that notes a failed export, which the SDK hides."""

    def __init__(self, exporter: Any) -> None:
        self._exporter, self._has_failed = exporter, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._exporter, name)

    def export(self, *batch: Any, **options: Any) -> Any:
        try:
            result = self._exporter.export(*batch, **options)
            self._has_failed |= result.name != "SUCCESS"
        except Exception as error:  # noqa: BLE001 - OTLP 1.39 raises when nothing listens
            logger.warning("telemetry could not be exported: %s", type(error).__name__)
            self._has_failed, result = True, None
        return result

    def has_failed_again(self) -> bool:
        """True if an export failed since the last call."""
        failed, self._has_failed = self._has_failed, False
        return failed


class _Metrics(PeriodicExportingMetricReader):
    def __init__(self, exporter: MetricExporter) -> None:
        self.exporter = _Exporter(exporter)
        super().__init__(cast("MetricExporter", self.exporter))
