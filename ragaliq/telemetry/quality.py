"""What is emitted about the quality of a pipeline as a whole, in place of single answers."""

from __future__ import annotations

import logging
from typing import NamedTuple

from opentelemetry import _logs
from opentelemetry.context import Context

from ragaliq._version import __version__
from ragaliq.statistics import Estimate, Shift
from ragaliq.telemetry import names
from ragaliq.telemetry.attributes import Attributes
from ragaliq.telemetry.content import identifier
from ragaliq.telemetry.emit import TelemetryOptions
from ragaliq.telemetry.metrics import MetricsRecorder

logger = logging.getLogger(__name__)


class QualityOf(NamedTuple):
    """What a figure is about."""

    pipeline: str
    metric: str
    fingerprint: str = ""
    higher_is_better: bool = True

    @property
    def attributes(self) -> dict[str, str]:
        """As attributes of metrics and events."""
        return {
            names.PIPELINE_NAME: self.pipeline,
            names.EVALUATION_NAME: self.metric,
            names.EVALUATOR_FINGERPRINT: self.fingerprint,
        }


class QualityEmitter:
    """Emits figures about all answers of a pipeline; never raises."""

    def __init__(self, options: TelemetryOptions | None = None) -> None:
        self._options = options or TelemetryOptions()
        self._metrics = MetricsRecorder(self._options.meter_provider)

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
            self._metrics.quality(name, value, QualityOf(of.pipeline, of.metric).attributes)

    def difference(self, of: QualityOf, value: float) -> None:
        """Record by how much a metric has moved; 0 where it has not."""
        direction = str(of.higher_is_better).lower()  # metrics' attributes are texts
        self._metrics.quality(
            names.METRIC_QUALITY_CHANGED,
            value,
            {**of.attributes, names.HIGHER_IS_BETTER: direction},
        )

    def changed(
        self, of: QualityOf, shift: Shift, *, time: float, reference: str, release: str
    ) -> None:
        """Emit the event of a metric that moved; WARN where it became worse, else INFO."""
        attributes: Attributes = {
            name: identifier(value) for name, value in of.attributes.items() if value
        }
        attributes |= {
            names.HIGHER_IS_BETTER: of.higher_is_better,
            names.QUALITY_DIRECTION: shift.direction,
            names.QUALITY_DIFFERENCE: shift.difference.value,
            names.QUALITY_DIFFERENCE_LOW: shift.difference.low,
            names.QUALITY_DIFFERENCE_HIGH: shift.difference.high,
            names.QUALITY_NOW: shift.now.value,
            names.QUALITY_SCORES: shift.now.n,
            names.QUALITY_REFERENCE: identifier(reference),
        }
        if release:
            attributes[names.SERVICE_VERSION] = identifier(release)
        is_worse = (shift.direction == "fell") == of.higher_is_better
        try:
            provider = self._options.logger_provider or _logs.get_logger_provider()
            provider.get_logger(names.SCOPE, __version__, names.SCHEMA_URL).emit(
                _logs.LogRecord(
                    timestamp=int(time * 1e9),
                    context=Context(),
                    severity_number=_logs.SeverityNumber.WARN
                    if is_worse
                    else _logs.SeverityNumber.INFO,
                    severity_text="WARN" if is_worse else "INFO",
                    attributes=attributes,
                    event_name=names.EVENT_QUALITY_CHANGED,
                )
            )
        except Exception as error:  # noqa: BLE001 - another library's provider may do anything
            logger.debug("an event could not be emitted: %s", type(error).__name__)
