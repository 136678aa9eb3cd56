"""Instruments, made from their description in the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from opentelemetry import metrics

from ragaliq._version import __version__
from ragaliq.telemetry import names
from ragaliq.telemetry.catalogue import METRICS

__all__ = ["counter", "gauge", "histogram", "meter", "observe_count", "observe_size"]

Readings = Callable[[metrics.CallbackOptions], Iterable[metrics.Observation]]

_METRICS = {metric.name: metric for metric in METRICS}


def meter(provider: metrics.MeterProvider | None) -> metrics.Meter:
    """Ragaliq's meter of a provider, or of the process's own."""
    return metrics.get_meter(names.SCOPE, __version__, provider)


def counter(meter: metrics.Meter, name: str) -> metrics.Counter:
    """The counter with this name."""
    metric = _METRICS[name]
    return meter.create_counter(name, unit=metric.unit, description=metric.description)


def gauge(meter: metrics.Meter, name: str) -> metrics._Gauge:
    """The gauge with this name."""
    metric = _METRICS[name]
    return meter.create_gauge(name, unit=metric.unit, description=metric.description)


def histogram(meter: metrics.Meter, name: str) -> metrics.Histogram:
    """The histogram with this name, its boundaries advised; a view of the application's wins."""
    metric = _METRICS[name]
    return meter.create_histogram(
        name,
        unit=metric.unit,
        description=metric.description,
        explicit_bucket_boundaries_advisory=metric.boundaries,
    )


def observe_count(meter: metrics.Meter, name: str, readings: Readings) -> None:
    """Have a growing count read whenever metrics are collected."""
    metric = _METRICS[name]
    meter.create_observable_counter(
        name, [readings], unit=metric.unit, description=metric.description
    )


def observe_size(meter: metrics.Meter, name: str, readings: Readings) -> None:
    """Have a size read whenever metrics are collected."""
    metric = _METRICS[name]
    meter.create_observable_up_down_counter(
        name, [readings], unit=metric.unit, description=metric.description
    )
