"""Setting up the OpenTelemetry SDK for an application that has none."""

from __future__ import annotations

import os
from dataclasses import dataclass

from opentelemetry import _logs, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from ragaliq.errors import ConfigurationError

__all__ = ["TelemetrySetup", "configure"]


@dataclass(frozen=True, kw_only=True)
class TelemetrySetup:
    """The providers `configure` made.

    Attributes:
        tracer_provider: For spans.
        logger_provider: For events.
    """

    tracer_provider: TracerProvider
    logger_provider: LoggerProvider

    def flush(self, timeout: float = 10.0) -> bool:
        """Export what is waiting; False if `timeout` seconds were not enough."""
        millis = int(timeout * 1000)
        spans = self.tracer_provider.force_flush(millis)
        return self.logger_provider.force_flush(millis) and spans

    def shutdown(self) -> None:
        """Export what is waiting and stop."""
        self.tracer_provider.shutdown()
        self.logger_provider.shutdown()


def configure(
    *,
    service_name: str | None = None,
    endpoint: str | None = None,
    span_exporter: SpanExporter | None = None,
    log_exporter: LogRecordExporter | None = None,
) -> TelemetrySetup:
    """Set up tracing and events for the process, exporting by OTLP over HTTP.

    The usual `OTEL_*` variables apply; arguments win over them.

    Args:
        service_name: Resource attribute `service.name`; by default from `OTEL_SERVICE_NAME`.
        endpoint: Base address of the OTLP receiver, such as `http://localhost:4318`.
        span_exporter: An exporter of your own instead of OTLP.
        log_exporter: An exporter of your own instead of OTLP.

    Raises:
        ConfigurationError: The process has a tracer or a logger provider already, or the OTLP
            exporter is not installed.
    """
    # Neither can be replaced: setting up the other one only would split what belongs together.
    for kind, provider in (
        ("tracer", trace.get_tracer_provider()),
        ("logger", _logs.get_logger_provider()),
    ):
        if _is_set(provider):
            raise ConfigurationError(
                f"this process has an OpenTelemetry {kind} provider already; ragaliq uses what is "
                "set up as it is, do not call configure()"
            )
    if span_exporter is None:
        span_exporter = _otlp_spans(endpoint)
    if log_exporter is None:
        log_exporter = _otlp_logs(endpoint)
    name = service_name or os.environ.get("OTEL_SERVICE_NAME")
    resource = Resource.create({"service.name": name} if name else {})
    tracer_provider = TracerProvider(resource=resource)
    tracer_provider.add_span_processor(BatchSpanProcessor(span_exporter))
    logger_provider = LoggerProvider(resource=resource)
    logger_provider.add_log_record_processor(BatchLogRecordProcessor(log_exporter))
    trace.set_tracer_provider(tracer_provider)
    _logs.set_logger_provider(logger_provider)
    return TelemetrySetup(tracer_provider=tracer_provider, logger_provider=logger_provider)


def _is_set(provider: object) -> bool:
    # Until somebody sets a provider the API hands out a proxy; that of the logs is private.
    return not type(provider).__name__.startswith("Proxy")


def _otlp_spans(endpoint: str | None) -> SpanExporter:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
            OTLPSpanExporter,
        )
    except ImportError:
        raise _otlp_is_missing() from None
    return OTLPSpanExporter(endpoint=_address(endpoint, "traces"))


def _otlp_logs(endpoint: str | None) -> LogRecordExporter:
    try:
        from opentelemetry.exporter.otlp.proto.http._log_exporter import (
            OTLPLogExporter,
        )
    except ImportError:
        raise _otlp_is_missing() from None
    return OTLPLogExporter(endpoint=_address(endpoint, "logs"))


def _address(endpoint: str | None, signal: str) -> str | None:
    # The SDK appends the signal's path only to an address that comes from the environment.
    return f"{endpoint.rstrip('/')}/v1/{signal}" if endpoint else None


def _otlp_is_missing() -> ConfigurationError:
    return ConfigurationError("the OTLP exporter is not installed: pip install 'ragaliq[otlp]'")
