"""Flush OpenTelemetry's providers, and read the release from their resource."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from urllib.parse import unquote

from opentelemetry import _logs, metrics, trace

from ragaliq.telemetry.emit import TelemetryOptions

logger = logging.getLogger(__name__)


def providers_in_use(own: TelemetryOptions) -> list[object]:
    """Providers of the monitor and of the process, each once."""
    found = (
        own.tracer_provider,
        own.logger_provider,
        own.meter_provider,
        trace.get_tracer_provider(),
        _logs.get_logger_provider(),
        metrics.get_meter_provider(),
    )
    return list({id(provider): provider for provider in found if provider is not None}.values())


def service_version(own: TelemetryOptions) -> str:
    """Release (`service.version`) from a provider's resource, else from the environment.

    Never raises; empty if not known.
    """
    for provider in providers_in_use(own):
        attributes = getattr(getattr(provider, "resource", None), "attributes", None)
        version = attributes.get("service.version") if isinstance(attributes, Mapping) else None
        if isinstance(version, str) and version:
            return version
    for pair in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","):
        name, _, value = pair.partition("=")
        if name.strip() == "service.version":
            return unquote(value.strip())
    return ""


def flush_providers(timeout: float) -> None:
    """Make the process's providers export what is queued, each within `timeout` seconds."""
    for provider in providers_in_use(TelemetryOptions()):
        force_flush(provider, timeout)


def force_flush(provider: object, seconds: float) -> bool:
    """Make a provider export what is queued; False if `seconds` were not enough. Never raises."""
    # Only the SDK's providers have it; the API's own send nothing.
    flush = getattr(provider, "force_flush", None)
    try:
        return flush is None or flush(timeout_millis=round(seconds * 1000)) is not False
    except Exception as error:  # noqa: BLE001 - the application's request must not notice
        logger.debug("telemetry could not be flushed: %s", type(error).__name__)
        return False
