"""Receiver of OTLP that scores answers of applications in any language.

`ragaliq collect` starts it; `collector_app` is the ASGI application. Needs the extra `[collect]`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragaliq.collect.assembly import Assembly
    from ragaliq.collect.server import collector_app

__all__ = ["Assembly", "collector_app"]

_HOMES = {"Assembly": "ragaliq.collect.assembly", "collector_app": "ragaliq.collect.server"}


def __getattr__(name: str) -> Any:
    # On first use: `ragaliq --help` describes the command also where the extra is missing.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
