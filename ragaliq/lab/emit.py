"""Telemetry about the quality of a whole pipeline, instead of single answers."""

from __future__ import annotations

from typing import NamedTuple

from opentelemetry.context import Context

from ragaliq.lab.sequential import Shift
from ragaliq.statistics import Estimate
from ragaliq.telemetry import names
from ragaliq.telemetry.attributes import known
from ragaliq.telemetry.content import identifier
from ragaliq.telemetry.emit import Emitter, TelemetryOptions


class QualityOf(NamedTuple):
    """Subject of a figure: pipeline, metric and judge."""

    pipeline: str
    metric: str
    fingerprint: str = ""
    higher_is_better: bool = True

    @property
    def attributes(self) -> dict[str, str]:
        """Attributes for metrics and events."""
        return {
            names.PIPELINE_NAME: self.pipeline,
            names.EVALUATION_NAME: self.metric,
            names.EVALUATOR_FINGERPRINT: self.fingerprint,
        }


class QualityEmitter:
    """Emits figures about all answers of a pipeline; never raises."""

    def __init__(self, options: TelemetryOptions | None = None) -> None:
        self._emitter = Emitter(options=options)

    def anchored(self, of: QualityOf, estimate: Estimate, *, labels: int) -> None:
        """Record quality as people would judge it, and the number of labels behind it."""
        figures = {
            names.METRIC_QUALITY_MEAN: estimate.value,
            names.METRIC_QUALITY_LOW: estimate.low,
            names.METRIC_QUALITY_HIGH: estimate.high,
            names.METRIC_QUALITY_LABELS: float(labels),
        }
        for name, value in figures.items():
            # Without the epoch: it is about what people say, whichever judge helps.
            about = QualityOf(of.pipeline, of.metric).attributes
            self._emitter.metrics.record(name, value, about)

    def difference(self, of: QualityOf, value: float) -> None:
        """Record the size of a metric's move; 0 if it has not moved."""
        direction = str(of.higher_is_better).lower()  # metrics' attributes are texts
        about = {**of.attributes, names.HIGHER_IS_BETTER: direction}
        self._emitter.metrics.record(names.METRIC_QUALITY_CHANGED, value, about)

    def changed(
        self, of: QualityOf, shift: Shift, *, time: float, reference: str, release: str
    ) -> None:
        """Emit the event of a metric that moved; WARN where it became worse, else INFO."""
        attributes = known(of.attributes | {names.SERVICE_VERSION: release}) | {
            names.HIGHER_IS_BETTER: of.higher_is_better,
            names.QUALITY_DIRECTION: shift.direction,
            names.QUALITY_DIFFERENCE: shift.difference.value,
            names.QUALITY_DIFFERENCE_LOW: shift.difference.low,
            names.QUALITY_DIFFERENCE_HIGH: shift.difference.high,
            names.QUALITY_NOW: shift.now.value,
            names.QUALITY_SCORES: shift.now.n,
            names.QUALITY_REFERENCE: identifier(reference),
        }
        with self._emitter.contained("emitting an event"):
            self._emitter.event(
                names.EVENT_QUALITY_CHANGED,
                attributes,
                is_warning=(shift.direction == "fell") == of.higher_is_better,
                context=Context(),
                time_ns=int(time * 1e9),
            )
