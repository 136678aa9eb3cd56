"""Telemetry by the OpenTelemetry conventions: spans and events, content off by default.

Emitting needs only the OpenTelemetry API. `configure` sets up the SDK for applications that have
none; nothing else does.
"""

import os
from typing import TYPE_CHECKING, Any

from ragaliq._private import is_unset
from ragaliq.telemetry.content import ContentPolicy
from ragaliq.telemetry.emit import Emission, Emitter, TelemetryOptions

if TYPE_CHECKING:
    from ragaliq.telemetry.setup import TelemetrySetup, configure

__all__ = [
    "ContentPolicy",
    "Emission",
    "Emitter",
    "TelemetryOptions",
    "TelemetrySetup",
    "configure",
    "configure_from_environment",
]


def __getattr__(name: str) -> Any:
    # The SDK is loaded only if the application asks to set it up.
    if name in ("TelemetrySetup", "configure"):
        from ragaliq.telemetry import setup

        return getattr(setup, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def configure_from_environment(service_name: str) -> bool:
    """Call `configure` if the environment names a receiver and no provider is set up yet.

    Args:
        service_name: Resource attribute `service.name`; `OTEL_SERVICE_NAME` takes precedence.

    Returns:
        Whether telemetry is exported now.

    Raises:
        ConfigurationError: The OTLP exporter is not installed.
    """
    from opentelemetry import trace

    if not is_unset(trace.get_tracer_provider()):
        return True
    kinds = ("", "TRACES_", "METRICS_", "LOGS_")
    if not any(os.environ.get(f"OTEL_EXPORTER_OTLP_{kind}ENDPOINT") for kind in kinds):
        return False
    from ragaliq.telemetry.setup import configure

    configure(service_name=os.environ.get("OTEL_SERVICE_NAME") or service_name)
    return True
