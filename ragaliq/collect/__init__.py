"""Receiver of OTLP that scores answers of applications in any language.

`ragaliq collect` starts it; `collector_app` is the ASGI application. Needs the extra `[collect]`.
"""

from ragaliq.collect.assembly import Assembly
from ragaliq.collect.server import collector_app

__all__ = ["Assembly", "collector_app"]
