"""A receiver of OTLP that scores the answers of applications in any language.

`ragaliq collect` starts it; `collector_app` is it as an ASGI application. Needs the extra
`[collect]`.
"""

from ragaliq.collect.assembly import Assembly
from ragaliq.collect.server import collector_app

__all__ = ["Assembly", "collector_app"]
