"""What ragaliq emits: spans and events by the OpenTelemetry conventions, content off by default.

Emitting needs only the OpenTelemetry API. `configure` sets up the SDK for applications that have
none; nothing here does so behind the application's back.
"""

from typing import TYPE_CHECKING, Any

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
]


def __getattr__(name: str) -> Any:
    # The SDK is loaded only for those who ask to have it set up.
    if name in ("TelemetrySetup", "configure"):
        from ragaliq.telemetry import setup

        return getattr(setup, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
