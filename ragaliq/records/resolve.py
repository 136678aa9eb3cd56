"""Sinks from what the user wrote: `sqlite:///path`, or an object with a `write` method."""

from __future__ import annotations

from collections.abc import Iterable

from ragaliq.errors import ConfigurationError
from ragaliq.records.base import Sink

__all__ = ["SinkSpec", "resolve_sinks"]

SinkSpec = str | Sink
"""What may be given as a sink."""


def resolve_sinks(specs: Iterable[SinkSpec]) -> tuple[Sink, ...]:
    """The sinks in order; one address stands for itself alone.

    Raises:
        ConfigurationError: A spec names no sink, or the same object is given twice.
    """
    if isinstance(specs, str):
        specs = [specs]
    sinks: list[Sink] = []
    for spec in specs:
        sink = _resolve(spec)
        if any(sink is other for other in sinks):
            raise ConfigurationError(f"sinks: the sink {sink.name} is given twice")
        sinks.append(sink)
    return tuple(sinks)


def _resolve(spec: object) -> Sink:
    if isinstance(spec, str) and not spec.startswith("sqlite:"):
        raise ConfigurationError(
            "sinks: a sink that is named by a string has the form 'sqlite:///path'"
        )
    if isinstance(spec, str):
        # Loaded for those who use it: sqlite3 is not needed by `import ragaliq`.
        from ragaliq.records.sqlite.store import SQLiteStore

        return SQLiteStore(spec)
    if isinstance(spec, type) or not isinstance(spec, Sink):
        what = spec.__name__ if isinstance(spec, type) else type(spec).__name__
        raise ConfigurationError(
            f"sinks: {what} is not a sink; give 'sqlite:///path', or an object with name, "
            "write(records) and aclose()"
        )
    return spec
