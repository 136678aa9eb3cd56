"""OTLP exporters, where they are installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.sdk._logs.export import LogRecordExporter
from opentelemetry.sdk.metrics.export import MetricExporter
from opentelemetry.sdk.trace.export import SpanExporter

from ragaliq.errors import ConfigurationError

__all__ = ["logs", "metrics", "spans"]


def spans(endpoint: str | None) -> SpanExporter:
    """Exports spans to `endpoint`, or to where the environment says."""
    with _required():
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    return OTLPSpanExporter(endpoint=_address(endpoint, "traces"))


def logs(endpoint: str | None) -> LogRecordExporter:
    """Exports log records to `endpoint`, or to where the environment says."""
    with _required():
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    return OTLPLogExporter(endpoint=_address(endpoint, "logs"))


def metrics(endpoint: str | None) -> MetricExporter:
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
