"""Metrics: instruments made from the catalogue, what is recorded, what is read when collected."""

from __future__ import annotations

import os
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Protocol

from opentelemetry import metrics
from opentelemetry.context import Context

from ragaliq._version import __version__
from ragaliq.core.results import EvaluationResult
from ragaliq.core.run import RunInfo
from ragaliq.telemetry import names
from ragaliq.telemetry.attributes import UNVERIFIED, Attributes, distinct_claims, score
from ragaliq.telemetry.catalogue import METRICS
from ragaliq.telemetry.content import identifier

__all__ = [
    "BoundedValues",
    "Counts",
    "MetricsRecorder",
    "Queue",
    "RunReadings",
    "counter",
    "histogram",
    "meter",
    "observe_count",
    "observe_size",
    "run_readings",
]

Readings = Callable[[metrics.CallbackOptions], Iterable[metrics.Observation]]

_METRICS = {metric.name: metric for metric in METRICS}


def meter(provider: metrics.MeterProvider | None) -> metrics.Meter:
    """Ragaliq's meter of a provider, or of the process's own."""
    return metrics.get_meter(names.SCOPE, __version__, provider, names.SCHEMA_URL)


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


class BoundedValues:
    """Lets the first values of each attribute through and says `_OTHER` for the rest.

    Without a lock, which a fork could leave held for good: threads that meet here may together let
    a value too many through.

    Args:
        limit: Values each attribute may take.
    """

    def __init__(self, limit: int = names.MAX_METRIC_VALUES) -> None:
        self._limit = limit
        self._seen: dict[str, set[str]] = {}

    def __call__(self, attributes: Mapping[str, str]) -> Attributes:
        """The attributes that have a value, each with it or with what stands for it."""
        bounded: Attributes = {}
        for attribute, text in attributes.items():
            if not text:
                continue
            value, seen = identifier(text), self._seen.setdefault(attribute, set())
            if value not in seen and len(seen) >= self._limit:
                value = names.OTHER
            else:
                seen.add(value)
            bounded[attribute] = value
        return bounded


class MetricsRecorder:
    """Records evaluations; safe on any thread, but not on the request path.

    Args:
        provider: The meter provider; the process's own when None.
    """

    def __init__(self, provider: metrics.MeterProvider | None = None) -> None:
        own = meter(provider)
        self._score = histogram(own, names.METRIC_SCORE)
        self._evaluations = counter(own, names.METRIC_EVALUATIONS)
        self._duration = histogram(own, names.METRIC_DURATION)
        self._lag = histogram(own, names.METRIC_LAG)
        self._claims = counter(own, names.METRIC_CLAIMS)
        self._tokens = counter(own, names.METRIC_TOKENS)
        self._cost = counter(own, names.METRIC_COST)
        self._limits_errors = counter(own, names.METRIC_LIMITS_ERRORS)
        self._budget_left = gauge(own, names.METRIC_BUDGET_LEFT)
        self._agreement = gauge(own, names.METRIC_AGREEMENT)
        self._sink_errors = counter(own, names.METRIC_SINK_ERRORS)
        self._publish_errors = counter(own, names.METRIC_PUBLISH_ERRORS)
        self._jobs = counter(own, names.METRIC_JOBS)
        self._job_wait = histogram(own, names.METRIC_JOB_WAIT)
        self._bounded = BoundedValues()

    def evaluated(
        self,
        run: RunInfo,
        results: Mapping[str, EvaluationResult],
        *,
        lag: float,
        target: Context,
    ) -> None:
        """Record what was measured.

        Args:
            run: The evaluated run.
            results: Its results.
            lag: Seconds between the end of the run and the start of its evaluation; 0 offline.
            target: The context of the evaluated span.
        """
        pipeline = self._bounded({names.PIPELINE_NAME: run.pipeline})
        if lag:
            self._lag.record(lag, pipeline, context=target)
        for result in results.values():
            self._record_result(result, pipeline, target)
        for claim in distinct_claims(results):
            attributes = {
                names.CLAIM_VERDICT: claim.verdict or UNVERIFIED,
                **self._bounded({names.CLAIM_DECIDED_BY: claim.decided_by}),
            }
            self._claims.add(1, attributes | pipeline, context=target)

    def spent(self, run: RunInfo, results: Mapping[str, EvaluationResult]) -> None:
        """Record what the judge was paid, failed evaluations included."""
        for result in results.values():
            attributes = self._bounded(
                {
                    names.EVALUATOR_ID: result.judge,
                    names.JUDGE_MODEL: result.model or "",
                    names.PIPELINE_NAME: run.pipeline,
                }
            )
            usage = result.usage
            spent = {
                "input": usage.input_tokens,
                "output": usage.output_tokens,
                "cache_read": usage.cache_read_tokens,
                "cache_write": usage.cache_write_tokens,
                "unsplit": usage.unsplit_tokens,
            }
            for kind, tokens in spent.items():
                if tokens:
                    self._tokens.add(tokens, {names.TOKEN_TYPE: kind, **attributes})
            if usage.cost_usd:
                self._cost.add(usage.cost_usd, attributes)

    def agreed(self, first: str, second: str, *, route: str, share: float) -> None:
        """Record how often two judges of a cascade agree; never raises.

        Args:
            first: Name of the judge that screens.
            second: Name of the judge that decides the rest.
            route: `accepted` for verdicts of the first that were audited, or `escalated`.
            share: Of the last claims, 0 to 1.
        """
        attributes = {
            names.JUDGE_FIRST: first,
            names.JUDGE_SECOND: second,
            names.CLAIM_ROUTE: route,
        }
        with suppress(Exception):  # another library's provider may do anything
            self._agreement.set(share, self._bounded(attributes))

    def budget_left(self, shares: Mapping[str, float]) -> None:
        """Record how much of a budget may still be spent; never raises.

        Args:
            shares: By the name of a limit, such as `usd_per_day`, from 0 to 1.
        """
        with suppress(Exception):  # another library's provider may do anything
            for limit, share in shares.items():
                self._budget_left.set(share, {names.BUDGET_LIMIT: limit})

    def limits_storage_failed(self, error_type: str) -> None:
        """Count a failed attempt to reach the storage of shared limits; never raises."""
        with suppress(Exception):  # it is logged where it happens
            self._limits_errors.add(1, self._bounded({names.ERROR_TYPE: error_type}))

    def sink_failed(self, sink: str, error_type: str) -> None:
        """Count a failed attempt of a sink to store results; never raises.

        Args:
            sink: The sink's name, such as `phoenix`.
            error_type: The class of the error.
        """
        attributes = {names.SINK_NAME: sink, names.ERROR_TYPE: error_type}
        with suppress(Exception):  # the sink counts and logs its failures itself
            self._sink_errors.add(1, self._bounded(attributes))

    def publish_failed(self, error_type: str) -> None:
        """Count a failed attempt to enqueue a run for workers elsewhere; never raises.

        Args:
            error_type: The class of the error.
        """
        with suppress(Exception):  # the run is held, and the monitor counts the attempt itself
            self._publish_errors.add(1, self._bounded({names.ERROR_TYPE: error_type}))

    def job(self, outcome: str, *, reason: str = "", waited: float | None = None) -> None:
        """Count what a worker did with a job; never raises.

        Args:
            outcome: Such as `evaluated` or `dead_letter`.
            reason: Why, where it became a dead letter.
            waited: Seconds from its publication until a worker took it up.
        """
        with suppress(Exception):  # another library's provider may do anything
            attributes = {names.JOB_OUTCOME: outcome, names.JOB_REASON: reason}
            self._jobs.add(1, self._bounded(attributes))
            if waited is not None:
                self._job_wait.record(waited)

    def unjudged(self, pipeline: str, results: Mapping[str, EvaluationResult]) -> None:
        """Count the results of a run that was kept from the judge.

        Args:
            pipeline: The application's name for the chain.
            results: What stands in the place of its results.
        """
        for result in results.values():
            self._record_result(result, self._bounded({names.PIPELINE_NAME: pipeline}), Context())

    def _record_result(
        self, result: EvaluationResult, pipeline: Attributes, target: Context
    ) -> None:
        what = pipeline | self._bounded(
            {names.EVALUATION_NAME: result.evaluator_name, names.EVALUATOR_ID: result.judge}
        )
        how: Attributes = {names.STATUS: result.status.value}
        measured = score(result)
        if measured is not None:
            how[names.EVALUATION_LABEL] = "pass" if result.passed else "fail"
        self._evaluations.add(1, what | how, context=target)
        # What a policy says about an answer without claims is not a measurement.
        if measured is not None and result.is_measured:
            self._score.record(measured, what, context=target)
        if result.duration is not None:
            self._duration.record(result.duration, what, context=target)


class _Snapshot(Protocol):
    @property
    def outcomes(self) -> Mapping[str, int]: ...


class Counts(Protocol):
    """Counts of runs by outcome, which only grow."""

    def snapshot(self) -> _Snapshot:
        """The counts now."""
        ...


class Queue(Protocol):
    """Where runs wait."""

    @property
    def size(self) -> int:
        """Runs waiting."""
        ...


class RunReadings:
    """The sums over all monitors that report to one meter provider.

    An instrument is made once a provider: the SDK ignores the callbacks of a second one.

    Args:
        provider: The meter provider; the process's own when None.
    """

    def __init__(self, provider: metrics.MeterProvider | None) -> None:
        self._reset()
        own = meter(provider)
        observe_count(own, names.METRIC_RUNS, self._read_outcomes)
        observe_size(own, names.METRIC_QUEUE_SIZE, self._read_sizes)

    def watch(self, queue: Queue, counts: Counts) -> None:
        """Report a monitor's queue for as long as it lives, and its counts for good."""
        if self._pid != os.getpid():
            self._reset()
        with self._lock:
            self._keep_ended()  # here too, for applications that never collect metrics
            self._counts[id(counts)] = counts
            self._queues.add(queue)
        # The collector runs the callback at any moment, on any thread: an append needs no lock.
        weakref.finalize(queue, self._ended.append, id(counts)).atexit = False

    def _reset(self) -> None:
        # In a forked child the counts are the parent's, which may have held the lock at the fork.
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._counts: dict[int, Counts] = {}
        self._queues: weakref.WeakSet[Queue] = weakref.WeakSet()
        self._ended: deque[int] = deque()
        self._kept: Counter[str] = Counter()

    def _read_outcomes(self, _: metrics.CallbackOptions) -> Iterator[metrics.Observation]:
        if self._pid != os.getpid():
            self._reset()
        with self._lock:
            self._keep_ended()
            # From zero on: a count that begins with its first event shows no increase by it, and
            # an alert on the first dropped runs would never fire.
            total = Counter(dict.fromkeys(names.RUN_OUTCOMES, 0))
            total.update(self._kept)
            for counts in list(self._counts.values()):
                total.update(counts.snapshot().outcomes)
        for outcome, runs in total.items():
            yield metrics.Observation(runs, {names.RUN_OUTCOME: outcome})

    def _keep_ended(self) -> None:
        # A count must not shrink because its monitor is gone.
        while self._ended:
            self._kept.update(self._counts.pop(self._ended.popleft()).snapshot().outcomes)

    def _read_sizes(self, _: metrics.CallbackOptions) -> Iterator[metrics.Observation]:
        if self._pid != os.getpid():
            self._reset()
        with self._lock:
            queues = list(self._queues)
        yield metrics.Observation(sum(queue.size for queue in queues))


_LOCK = threading.Lock()
_OF_PROCESS: list[RunReadings] = []
_OF_PROVIDER: weakref.WeakKeyDictionary[metrics.MeterProvider, RunReadings] = (
    weakref.WeakKeyDictionary()
)


def run_readings(provider: metrics.MeterProvider | None) -> RunReadings:
    """The readings of a meter provider, one for all its monitors."""
    with _LOCK:
        # The process's own provider may be set later; until then the API gives a stand-in.
        if provider is None or provider is metrics.get_meter_provider():
            if not _OF_PROCESS:
                _OF_PROCESS.append(RunReadings(None))
            return _OF_PROCESS[0]
        readings = _OF_PROVIDER.get(provider)
        if readings is None:
            readings = _OF_PROVIDER[provider] = RunReadings(provider)
        return readings
