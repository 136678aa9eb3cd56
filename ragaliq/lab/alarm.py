"""Alarms about scores that moved: valid at every moment, and never for a replaced judge."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import httpx2

from ragaliq.core.checks import require_positive
from ragaliq.core.concurrency import pause_before_retry
from ragaliq.core.proxies import proxy_errors
from ragaliq.errors import ConfigurationError
from ragaliq.lab.emit import QualityEmitter, QualityOf
from ragaliq.lab.sequential import Shift, ShiftTest
from ragaliq.records import EvaluationRecord
from ragaliq.records.http import endpoint_of
from ragaliq.records.store import StoredScore, scores_of
from ragaliq.statistics.sampling import WeightedSums
from ragaliq.telemetry.emit import TelemetryOptions

logger = logging.getLogger(__name__)

_ATTEMPTS = 3
_TIMEOUT = 10.0
_DAY = 86_400.0
_DAYS = 28
_FEWEST = 100  # scores of a release that the next one may be compared with


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityChange:
    """A metric that moved in a pipeline.

    Attributes:
        pipeline: The application's name for the chain.
        metric: The metric.
        fingerprint: The judge epoch, the same before and after.
        time: Unix time of the score by which it was seen.
        shift: Direction and size, with intervals.
        reference: What it is compared with: `release 1.4`, or `first 1,000 scores`.
        release: The application's release that it was seen in, where that is known.
    """

    pipeline: str
    metric: str
    fingerprint: str
    time: float
    shift: Shift
    reference: str
    release: str = ""

    @property
    def text(self) -> str:
        """The change as a sentence."""
        shift, of = self.shift, f" of {self.pipeline}" if self.pipeline else ""
        by = shift.difference
        return (
            f"{self.metric}{of} {shift.direction} to {shift.now.value:.2f}: {by.value:+.2f} "
            f"({by.low:+.2f} to {by.high:+.2f}) against {self.reference}"
        )


class Watch:
    """Compares the scores of one metric in one pipeline with a reference.

    The reference is the previous release (`service.version`) if it has 100 scores, else the first
    scores. A new fingerprint of the judge starts a new reference, since the application did not
    change. After an alarm the following scores become the reference.

    Args:
        pipeline: The application's name for the chain.
        metric: The metric.
        reference: Scores that make a reference.
        alpha: The chance of a false alarm within 28 days.
        tolerance: A move of less is none.

    Attributes:
        fingerprint: The judge epoch of the last score.
        change: The last change, until there is a new reference.
    """

    def __init__(
        self,
        pipeline: str,
        metric: str,
        *,
        reference: int = 1000,
        alpha: float = 0.05,
        tolerance: float = 0.02,
    ) -> None:
        self.pipeline, self.metric = pipeline, metric
        self._wanted, self._alpha, self._tolerance = reference, alpha, tolerance
        self.fingerprint = ""
        self._release = ""
        self.change: QualityChange | None = None
        self._begin()

    def _begin(self) -> None:
        self._sums, self._heaviest = WeightedSums(), 1.0
        self._test: ShiftTest | None = None
        self._reference = ""
        self._day = 0.0

    def add(self, score: StoredScore) -> QualityChange | None:
        """Add a score; return the change that it reveals, if any."""
        if not score.weight:
            return None
        if score.fingerprint != self.fingerprint:
            self._begin()
            self.change = None
        elif score.release != self._release and self._sums.n >= _FEWEST:
            self._compare(f"release {self._release}" if self._release else "the release before")
            self._sums, self._heaviest = WeightedSums(), 1.0
        elif self._test is None and self._sums.n >= self._wanted:
            self._compare(f"first {self._sums.n:,} scores")
        self.fingerprint, self._release = score.fingerprint, score.release
        self._sums.add(score.score, 1.0 / score.weight)
        self._heaviest = max(self._heaviest, score.weight)
        if self._test is None:
            return None
        day = score.time // _DAY
        if day > self._day:
            self._day = day
            if self._test.started == _DAYS:
                self._test.renew()
            self._test.start()
        self._test.add(score.score, score.weight)
        shift = self._test.shift()
        if shift is None:
            return None
        self.change = QualityChange(
            pipeline=self.pipeline,
            metric=self.metric,
            fingerprint=score.fingerprint,
            time=score.time,
            shift=shift,
            reference=self._reference,
            release=score.release,
        )
        self._begin()
        return self.change

    def _compare(self, reference: str) -> None:
        """Start comparing with the collected scores."""
        self._reference, self._day, self.change = reference, 0.0, None
        self._test = ShiftTest(
            self._sums,
            heaviest=self._heaviest,
            alpha=self._alpha,
            tolerance=self._tolerance,
            starts=_DAYS,
        )


class Webhook:
    """Posts changes to an address; a failure is logged, without the address.

    Args:
        address: Where to; it may hold a key.
    """

    def __init__(self, address: str) -> None:
        self._address = address

    async def __call__(self, change: QualityChange) -> None:
        """Post a change, with two retries."""
        shift = change.shift
        body = {
            "text": change.text,
            "pipeline": change.pipeline,
            "metric": change.metric,
            "direction": shift.direction,
            "now": shift.now.value,
            "difference": shift.difference.value,
            "interval": [shift.difference.low, shift.difference.high],
            "reference": change.reference,
            "release": change.release,
            "time": change.time,
        }
        try:
            client = await asyncio.to_thread(_client)  # reads certificates
        except ConfigurationError as error:
            logger.warning("an alarm was not delivered: %s", error)
            return
        async with client:
            for attempt in range(1, _ATTEMPTS + 1):
                problem = ""
                try:
                    response = await client.post(self._address, json=body)
                    if response.is_success:
                        return
                    problem = f"answered {response.status_code}"
                except httpx2.HTTPError as error:
                    problem = f"cannot be reached ({type(error).__name__})"
                if attempt < _ATTEMPTS:
                    await asyncio.sleep(pause_before_retry(attempt, first=1.0, longest=10.0))
        logger.warning("an alarm was not delivered: the webhook %s", problem)


def _client() -> httpx2.AsyncClient:
    with proxy_errors():
        return httpx2.AsyncClient(timeout=_TIMEOUT)


class QualityAlarm:
    """Sink that reports when a metric of a pipeline has moved, with an interval.

    Emits the log event `ragaliq.quality.changed` and keeps the gauge of that name: the difference
    while a change is fresh, else 0. Give it to a `Monitor` or `evaluate` with `sinks=`, one for
    each process; with several processes, `ragaliq quality` over their store sees all of them.

    Args:
        reference: Scores that make a reference.
        alpha: The chance of a false alarm within 28 days, for each metric of each pipeline.
        tolerance: A move of less is none.
        on_alarm: A function that is called with each change, or the address of a webhook to which
            it is posted as JSON: `text`, a sentence that chat tools show, and the figures.
        telemetry: The providers; the process's own by default.

    Raises:
        ConfigurationError: A setting is out of range.
    """

    name: Final = "quality_alarm"

    def __init__(
        self,
        *,
        reference: int = 1000,
        alpha: float = 0.05,
        tolerance: float = 0.02,
        on_alarm: Callable[[QualityChange], object] | str | None = None,
        telemetry: TelemetryOptions | None = None,
    ) -> None:
        require_positive("QualityAlarm", reference=reference)
        # Refuse wrong settings here and not at the first full reference.
        sums = WeightedSums()
        sums.add(1.0, 1.0)
        ShiftTest(sums, alpha=alpha, tolerance=tolerance)
        self._watch = partial(Watch, reference=reference, alpha=alpha, tolerance=tolerance)
        if isinstance(on_alarm, str):
            on_alarm = Webhook(endpoint_of("QualityAlarm: on_alarm", on_alarm, {}))
        elif on_alarm is not None and not callable(on_alarm):
            raise ConfigurationError(
                f"QualityAlarm: on_alarm must be a function or an address, got {on_alarm!r}"
            )
        self._on_alarm = on_alarm
        self._emitter = QualityEmitter(telemetry)
        self._watches: dict[tuple[str, str], Watch] = {}
        self._reporting: set[asyncio.Task[None]] = set()

    async def write(self, records: Sequence[EvaluationRecord]) -> None:
        """Add records, in the order of time; their changes are reported in the background.

        A slow webhook would exceed the time of a write: its records would be added again.
        """
        for record in records:
            for score in scores_of(record):
                if (change := self._add(score)) is not None and self._on_alarm is not None:
                    self._reporting.add(task := asyncio.create_task(self._report(change)))
                    task.add_done_callback(self._reporting.discard)

    async def _report(self, change: QualityChange) -> None:
        assert self._on_alarm is not None  # noqa: S101 - for mypy
        try:
            reported = self._on_alarm(change)
            if inspect.isawaitable(reported):
                await reported
        except Exception as error:  # noqa: BLE001 - what an application's function raises
            logger.warning("on_alarm raised %s", type(error).__name__)
        except asyncio.CancelledError:
            logger.warning("an alarm was not delivered: the process ended")
            raise

    async def settle(self) -> None:
        """Wait until every change is reported."""
        await asyncio.gather(*self._reporting)

    async def aclose(self) -> None:
        """Wait until every change is reported; there is no connection."""
        await self.settle()

    def _add(self, score: StoredScore) -> QualityChange | None:
        key = score.pipeline, score.metric
        if key not in self._watches:
            self._watches[key] = self._watch(*key)
        watch = self._watches[key]
        change = watch.add(score)
        of = QualityOf(*key, score.fingerprint, score.higher_is_better)
        emit_change(self._emitter, watch.change, change, of=of)
        return change


def emit_change(
    emitter: QualityEmitter,
    fresh: QualityChange | None,
    new: QualityChange | None,
    *,
    of: QualityOf,
) -> None:
    """Set the gauge to the recent change, and emit the event of a new one."""
    emitter.difference(of, fresh.shift.difference.value if fresh else 0.0)
    if new is not None:
        emitter.changed(of, new.shift, time=new.time, reference=new.reference, release=new.release)
