"""Where telemetry goes: the providers, and the door through which evaluations are emitted.

Nothing here ever raises into the caller.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import _logs, metrics, trace
from opentelemetry.context import attach, detach

from ragaliq._version import __version__
from ragaliq.core.results import EvaluationResult
from ragaliq.core.run import RunInfo
from ragaliq.telemetry import names
from ragaliq.telemetry.content import ContentPolicy
from ragaliq.telemetry.emission import Emission
from ragaliq.telemetry.following import following_links
from ragaliq.telemetry.options import TelemetryOptions
from ragaliq.telemetry.recorder import MetricsRecorder
from ragaliq.telemetry.run_readings import Counts, Queue, RunReadings, run_readings

__all__ = ["Emitter"]

logger = logging.getLogger(__name__)


class Emitter:
    """Emits evaluations through the options' providers, or the process's own.

    Args:
        content: Whether text may be emitted.
        options: The shape of what is emitted.

    Attributes:
        content: Whether text may be emitted.
        options: The shape of what is emitted.
        metrics: Records metrics.
    """

    def __init__(
        self, content: ContentPolicy | None = None, options: TelemetryOptions | None = None
    ) -> None:
        self.content = content or ContentPolicy()
        self.options = options or TelemetryOptions()
        self._tracer: tuple[trace.TracerProvider, trace.Tracer] | None = None
        self._readings: RunReadings | None = None
        self._complained = False
        try:
            self.metrics = MetricsRecorder(self.options.meter_provider)
        except Exception as error:  # noqa: BLE001 - another library's provider may do anything
            self.complain("making instruments", error)
            self.metrics = MetricsRecorder(metrics.NoOpMeterProvider())

    def watch(self, queue: Queue, counts: Counts) -> None:
        """Report a monitor's queue and counts whenever metrics are collected."""
        try:
            # Looked up once: a forked child must not wait for a lock its parent held.
            self._readings = self._readings or run_readings(self.options.meter_provider)
            self._readings.watch(queue, counts)
        except Exception as error:  # noqa: BLE001 - another library's provider may do anything
            self.complain("making instruments", error)

    def unjudged(self, pipeline: str, results: Mapping[str, EvaluationResult]) -> None:
        """Count the results of a run that was kept from the judge; it makes no spans or events."""
        try:
            self.metrics.unjudged(pipeline, results)
        except Exception as error:  # noqa: BLE001 - telemetry must not stop the worker
            self.complain("recording metrics", error)

    @contextmanager
    def evaluation(self, run: RunInfo, *, lag: float = 0.0) -> Iterator[Emission]:
        """Open the root span of an evaluation and make it current, so that a judge's spans nest.

        The span is ended in every case, cancellation included.

        Args:
            run: The evaluated run.
            lag: Seconds between the end of the run and now.
        """
        emission = Emission(self, run, lag)
        token = None
        try:
            token = attach(emission.open())
        except Exception as error:  # noqa: BLE001 - telemetry must not stop the evaluation
            self.complain("opening an evaluation span", error)
        try:
            yield emission
        except BaseException:
            emission.failed()
            raise
        finally:
            if token is not None:
                detach(token)
            emission.close()

    @property
    def tracer(self) -> trace.Tracer:
        """The tracer; a new one when the application has set its provider meanwhile."""
        provider = self.options.tracer_provider or trace.get_tracer_provider()
        if self._tracer is None or self._tracer[0] is not provider:
            tracer = following_links(
                provider.get_tracer(names.SCOPE, __version__),
                all_targets=self.options.on_unsampled == "all",
            )
            self._tracer = provider, tracer
        return self._tracer[1]

    def event_logger(self) -> _logs.Logger | None:
        """Where events go, or None where the application has set up no logger provider."""
        provider = self.options.logger_provider or _logs.get_logger_provider()
        # The API's own providers (proxy, no-op) swallow everything.
        if type(provider).__module__.startswith("opentelemetry._logs"):
            return None
        return provider.get_logger(names.SCOPE, __version__)

    def complain(self, what: str, error: Exception) -> None:
        """Log a telemetry failure, the first time only, without any content."""
        if not self._complained:
            self._complained = True
            logger.warning(
                "telemetry failed while %s (%s); further failures are not logged",
                what,
                type(error).__name__,
            )
