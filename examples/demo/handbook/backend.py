"""Where the demo's telemetry goes: to a collector over OTLP, or into memory to be shown.

An application sets up OpenTelemetry once, at its start; the demo is such an application. ragaliq
finds the providers by itself.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from typing import Protocol
from urllib.parse import urlsplit

from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from rich.console import RenderableType
from rich.text import Text

from handbook.emitted import Collected, emitted_view
from handbook.errors import DemoError
from handbook.safety import clean, safe_text
from ragaliq import telemetry

__all__ = ["Backend", "InMemoryBackend", "OtlpBackend", "choose_backend"]

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
SERVICE = "ragaliq-demo"
FLUSH_TIMEOUT = 15.0
"""Seconds; more than the OTLP exporter's own 10, so that its error is seen."""


class Backend(Protocol):
    """Receives the telemetry and says what became of it."""

    def report(self, private: Iterable[str]) -> RenderableType:
        """What was emitted; `private` are texts that should not occur in it."""


class InMemoryBackend:
    """Keeps what is emitted and shows it."""

    def __init__(self) -> None:
        self._spans = InMemorySpanExporter()
        self._events = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
        self._setup = telemetry.configure(
            service_name=SERVICE,
            span_exporter=self._spans,
            log_exporter=self._events,
            metric_reader=InMemoryMetricReader(),
        )

    def report(self, private: Iterable[str]) -> RenderableType:
        """Names, counts and an example; without the application's own spans.

        Raises:
            DemoError: Nothing was emitted.
        """
        self._setup.flush(FLUSH_TIMEOUT)
        spans, events = self._spans.get_finished_spans(), self._events.get_finished_logs()
        collected = Collected(
            spans=[span for span in spans if _is_ours(span.instrumentation_scope)],
            events=[event.log_record for event in events if _is_ours(event.instrumentation_scope)],
        )
        return emitted_view(collected, private)


class OtlpBackend:
    """Sends what is emitted to a collector."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._errors = _ErrorLog()
        logging.getLogger("opentelemetry").addHandler(self._errors)
        # The exporter itself reads the address from the environment.
        self._setup = telemetry.configure(service_name=SERVICE)

    def report(self, private: Iterable[str]) -> RenderableType:  # noqa: ARG002 - sent, not kept
        """Where it went.

        Raises:
            DemoError: The collector did not take it.
        """
        flushed = self._setup.flush(FLUSH_TIMEOUT)
        if self._errors.first or not flushed:
            reason = self._errors.first or f"no answer within {FLUSH_TIMEOUT:.0f} s"
            raise DemoError(f"the export to {_shown(self._endpoint)} failed: {clean(reason)}")
        return Text.assemble(
            "Spans, events and metrics were sent to ", safe_text(_shown(self._endpoint))
        )


def choose_backend() -> Backend:
    """OTLP where the environment names an endpoint, else memory."""
    endpoint = os.environ.get(ENDPOINT)
    return OtlpBackend(endpoint) if endpoint else InMemoryBackend()


class _ErrorLog(logging.Handler):
    """Keeps the first error the exporters log: they raise none."""

    def __init__(self) -> None:
        super().__init__(level=logging.ERROR)
        self.first = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.first = self.first or record.getMessage()


def _is_ours(scope: InstrumentationScope | None) -> bool:
    return scope is not None and scope.name == "ragaliq"


def _shown(endpoint: str) -> str:
    # An address may hold a user name and password.
    return urlsplit(endpoint)._replace(netloc=urlsplit(endpoint).netloc.rpartition("@")[2]).geturl()
