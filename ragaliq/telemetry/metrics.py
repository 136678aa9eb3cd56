"""Metrics: the instruments, recorded values, and values read at collection."""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, Protocol

from opentelemetry import metrics
from opentelemetry.context import Context

from ragaliq._version import __version__
from ragaliq.core.log_once import LogOnce
from ragaliq.core.results import ClaimDetail, EvaluationResult
from ragaliq.telemetry import names
from ragaliq.telemetry.attributes import UNVERIFIED, Attributes, score
from ragaliq.telemetry.content import identifier

logger = logging.getLogger(__name__)


class Metric(NamedTuple):
    """Definition of a metric; its unit is in UCUM, a histogram's boundaries are advisory."""

    name: str
    instrument: Literal["histogram", "counter", "gauge"]
    unit: str
    description: str
    boundaries: tuple[float, ...] = ()


_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
_LONG = (*_SECONDS, 300.0, 900.0, 3600.0)

METRICS = (
    Metric(
        names.METRIC_SCORE,
        "histogram",
        "1",
        "Scores of evaluations that were measured.",
        tuple(step / 20 for step in range(21)),
    ),
    Metric(names.METRIC_EVALUATIONS, "counter", "{evaluation}", "Evaluations by status and label."),
    Metric(names.METRIC_DURATION, "histogram", "s", "Time an evaluation took.", _SECONDS),
    Metric(
        names.METRIC_LAG,
        "histogram",
        "s",
        "Time from the end of a run to the start of its evaluation.",
        _LONG,
    ),
    Metric(
        names.METRIC_CLAIMS,
        "counter",
        "{claim}",
        "Claims by verdict; claims that metrics share count once.",
    ),
    Metric(names.METRIC_TOKENS, "counter", "{token}", "Tokens the judge used."),
    Metric(
        names.METRIC_COST, "counter", "{USD}", "What the judge cost at list price, where known."
    ),
    Metric(
        names.METRIC_LIMITS_ERRORS,
        "counter",
        "{error}",
        "Failed attempts to reach the storage of limits that processes share.",
    ),
    Metric(
        names.METRIC_BUDGET_LEFT,
        "gauge",
        "{share}",
        "Share of each limit of the budget that may still be spent, as of the last run.",
    ),
    # Not "1": for Prometheus a collector would add `_ratio` to the name, an exporter would not.
    Metric(
        names.METRIC_AGREEMENT,
        "gauge",
        "{share}",
        "Share of a cascade's last claims on which two judges agree: of `accepted` ones that were "
        "audited, or of `escalated` ones.",
    ),
    Metric(
        names.METRIC_SINK_ERRORS, "counter", "{error}", "Failed attempts of sinks to store results."
    ),
    Metric(
        names.METRIC_PUBLISH_ERRORS,
        "counter",
        "{error}",
        "Failed attempts to enqueue runs for workers.",
    ),
    Metric(
        names.METRIC_JOBS,
        "counter",
        "{job}",
        "Outcomes of workers' jobs; `retried` in addition to the final one.",
    ),
    Metric(
        names.METRIC_JOB_WAIT,
        "histogram",
        "s",
        "Time jobs waited at the broker for a worker.",
        _LONG,
    ),
    Metric(
        names.METRIC_QUALITY_MEAN,
        "gauge",
        "{score}",
        "Quality of the latest week as people would judge it.",
    ),
    Metric(names.METRIC_QUALITY_LOW, "gauge", "{score}", "Lower end of its 95 % interval."),
    Metric(names.METRIC_QUALITY_HIGH, "gauge", "{score}", "Upper end of its 95 % interval."),
    Metric(names.METRIC_QUALITY_LABELS, "gauge", "{label}", "Labels that it rests on."),
    Metric(
        names.METRIC_QUALITY_CHANGED,
        "gauge",
        "{score}",
        "By how much scores have moved, while an alarm is fresh; else 0.",
    ),
)

_VERBS = {"counter": "add", "histogram": "record", "gauge": "set"}


class MetricsRecorder:
    """Records evaluations; never raises; thread-safe, but not for the request path.

    An attribute's values beyond the first 100 count as `_OTHER`. No lock guards that limit, since a
    fork could leave it held for good: concurrent threads may exceed the limit slightly.
    """

    def __init__(self, provider: metrics.MeterProvider | None = None) -> None:
        meter = metrics.get_meter(names.SCOPE, __version__, provider, names.SCHEMA_URL)
        self._writers: dict[str, Callable[..., None]] = {}
        for metric in METRICS:
            options: dict[str, Any] = {"unit": metric.unit, "description": metric.description}
            if metric.boundaries:  # advised: a view of the application's wins
                options["explicit_bucket_boundaries_advisory"] = metric.boundaries
            made = getattr(meter, f"create_{metric.instrument}")(metric.name, **options)
            self._writers[metric.name] = getattr(made, _VERBS[metric.instrument])
        # For each attribute, the value to record by the value observed.
        self._seen: dict[str, dict[str, str]] = {}
        self._log_once = LogOnce(logger)

    def record(
        self,
        name: str,
        value: float,
        attributes: Mapping[str, str],
        target: Context | None = None,
    ) -> None:
        """Record a value.

        Args:
            name: Name of the metric.
            value: The value in its unit.
            attributes: Empty ones are omitted.
            target: The context of the evaluated span; by default the current one.
        """
        bounded: Attributes = {}
        try:
            for attribute, text in attributes.items():
                if text:
                    seen = self._seen.setdefault(attribute, {})
                    if text not in seen and len(seen) < names.MAX_METRIC_VALUES:
                        seen[text] = identifier(text)
                    bounded[attribute] = seen.get(text, names.OTHER)
            self._writers[name](value, bounded, context=target)
        except Exception as error:  # noqa: BLE001 - another library's provider may do anything
            kind = type(error).__name__
            self._log_once.message(
                kind, f"a metric could not be recorded ({kind}); further ones are not logged"
            )

    def evaluated(
        self,
        pipeline: str,
        results: Mapping[str, EvaluationResult],
        *,
        target: Context | None = None,
        lag: float = 0.0,
    ) -> None:
        """Record the results of one evaluation.

        Args:
            pipeline: The application's name for the chain of the evaluated run.
            results: Its results.
            target: As in `record`.
            lag: Seconds between the end of the run and the start of its evaluation; 0 offline.
        """
        where = {names.PIPELINE_NAME: pipeline}
        if lag:
            self.record(names.METRIC_LAG, lag, where, target)
        counted: list[tuple[ClaimDetail, ...]] = []
        for result in results.values():
            what = {
                names.EVALUATION_NAME: result.evaluator_name,
                names.EVALUATOR_ID: result.judge,
                **where,
            }
            epoch = what | {names.EVALUATOR_FINGERPRINT: result.fingerprint}
            ended = epoch | {names.STATUS: result.status.value}
            if score(result) is not None:
                ended[names.EVALUATION_LABEL] = "pass" if result.passed else "fail"
            self.record(names.METRIC_EVALUATIONS, 1, ended, target)
            # A policy's score for an answer without claims is not a measurement.
            if result.score is not None and result.is_measured:
                self.record(names.METRIC_SCORE, result.score, epoch, target)
            if result.duration is not None:
                self.record(names.METRIC_DURATION, result.duration, what, target)
            if result.claims in counted:
                continue  # metrics that share a claim check hold the same claims
            counted.append(result.claims)
            decided = Counter(
                (each.verdict or UNVERIFIED, each.decided_by) for each in result.claims
            )
            for (verdict, judge), claims in decided.items():
                how = {names.CLAIM_VERDICT: verdict, names.CLAIM_DECIDED_BY: judge, **where}
                self.record(names.METRIC_CLAIMS, claims, how, target)

    def spent(self, pipeline: str, results: Mapping[str, EvaluationResult]) -> None:
        """Record the judge's usage, failed evaluations included."""
        for result in results.values():
            usage = result.usage
            judge = {
                names.EVALUATOR_ID: result.judge,
                names.JUDGE_MODEL: result.model or "",
                names.PIPELINE_NAME: pipeline,
            }
            tokens = {
                "input": usage.input_tokens,
                "output": usage.output_tokens,
                "cache_read": usage.cache_read_tokens,
                "cache_write": usage.cache_write_tokens,
                "unsplit": usage.unsplit_tokens,
            }
            for kind, number in tokens.items():
                if number:
                    self.record(names.METRIC_TOKENS, number, {names.TOKEN_TYPE: kind, **judge})
            if usage.cost_usd:
                self.record(names.METRIC_COST, usage.cost_usd, judge)


class _Snapshot(Protocol):
    @property
    def pending(self) -> int: ...
    @property
    def outcomes(self) -> Mapping[str, int]: ...


class Counts(Protocol):
    """Counts of runs by outcome; they only grow."""

    def snapshot(self) -> _Snapshot:
        """Current counts."""
        ...

    def skipped(self) -> Mapping[tuple[str, str, str], int]:
        """Number of runs without a case, by outcome, reason and pipeline."""
        ...


class Queue(Protocol):
    """Queue of waiting runs."""

    @property
    def size(self) -> int:
        """Number of waiting runs."""
        ...


class RunReadings:
    """Sums over all monitors that report to one meter provider.

    Instruments are created once per provider: the SDK ignores callbacks of a second one.
    """

    def __init__(self, provider: metrics.MeterProvider | None) -> None:
        self._reset()
        meter = metrics.get_meter(names.SCOPE, __version__, provider, names.SCHEMA_URL)
        meter.create_observable_counter(
            names.METRIC_RUNS,
            [self._outcomes],
            unit="{run}",
            description="Runs by how they ended, as in `Monitor.stats()`.",
        )
        meter.create_observable_counter(
            names.METRIC_SKIPPED_RUNS,
            [self._skipped_runs],
            unit="{run}",
            description="Of these the ones that gave no case, `incomplete_run` and `not_rag`, by "
            "reason.",
        )
        meter.create_observable_up_down_counter(
            names.METRIC_QUEUE_SIZE,
            [self._sizes],
            unit="{run}",
            description="Runs waiting to be evaluated.",
        )

    def watch(self, queue: Queue, counts: Counts, *, owner: object) -> None:
        """Report a queue while it lives, and the counts of its monitor (`owner`) for good.

        Monitors that share a queue come and go with requests.
        """
        with self._current():
            self._counts[id(counts)] = counts
            self._queues.add(queue)
        # The garbage collector runs the callback on any thread at any time: append needs no lock.
        weakref.finalize(owner, self._ended.append, id(counts)).atexit = False

    def _reset(self) -> None:
        # A forked child has a copy of the parent's counts and lock, which may have been held.
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._counts: dict[int, Counts] = {}
        self._queues: weakref.WeakSet[Queue] = weakref.WeakSet()
        self._ended: deque[int] = deque()
        self._kept: Counter[str] = Counter()
        self._kept_skipped: Counter[tuple[str, str, str]] = Counter()

    @contextmanager
    def _current(self) -> Iterator[None]:
        """Lock the counts of this process for the block."""
        if self._pid != os.getpid():
            self._reset()
        with self._lock:
            # A count must not shrink because its monitor is gone. A monitor whose last runs are
            # still being evaluated is read again at the next collection.
            for _ in range(len(self._ended)):
                gone = self._ended.popleft()
                now, skipped = self._counts[gone].snapshot(), self._counts[gone].skipped()
                if now.pending:
                    self._ended.append(gone)
                else:
                    del self._counts[gone]
                    self._kept.update(now.outcomes)
                    self._kept_skipped.update(skipped)
            yield

    def _outcomes(self, _: metrics.CallbackOptions) -> Iterator[metrics.Observation]:
        with self._current():
            # Start at zero: a counter that first appears with its first event shows no increase,
            # and an alert on the first dropped runs would never fire.
            total = Counter(dict.fromkeys(names.RUN_OUTCOMES, 0))
            total.update(self._kept)
            for counts in list(self._counts.values()):
                total.update(counts.snapshot().outcomes)
        for outcome, runs in total.items():
            yield metrics.Observation(runs, {names.RUN_OUTCOME: outcome})

    def _skipped_runs(self, _: metrics.CallbackOptions) -> Iterator[metrics.Observation]:
        with self._current():
            total = Counter(self._kept_skipped)
            for counts in list(self._counts.values()):
                total.update(counts.skipped())
        pipelines = list(dict.fromkeys(pipeline for *_, pipeline in total))
        bounded: Counter[tuple[str, str, str]] = Counter()
        for (outcome, reason, pipeline), runs in total.items():
            is_known = pipeline in pipelines[: names.MAX_METRIC_VALUES]
            bounded[outcome, reason, pipeline if is_known else names.OTHER] += runs
        for values, runs in bounded.items():
            attributes = (names.RUN_OUTCOME, names.RUN_REASON, names.PIPELINE_NAME)
            named = zip(attributes, values, strict=True)
            yield metrics.Observation(runs, {k: identifier(text) for k, text in named if text})

    def _sizes(self, _: metrics.CallbackOptions) -> Iterator[metrics.Observation]:
        with self._current():
            queues = list(self._queues)
        yield metrics.Observation(sum(queue.size for queue in queues))


_RECORDERS: weakref.WeakKeyDictionary[metrics.MeterProvider, MetricsRecorder] = (
    weakref.WeakKeyDictionary()
)


def metrics_recorder(provider: metrics.MeterProvider | None) -> MetricsRecorder:
    """Recorder of a meter provider, shared by its monitors; by default the process's own."""
    provider = provider or metrics.get_meter_provider()
    recorder = _RECORDERS.get(provider)
    if recorder is None:  # two threads may each make one: the same instruments
        recorder = _RECORDERS[provider] = MetricsRecorder(provider)
    return recorder


_LOCK = threading.Lock()
_OF_PROCESS: list[RunReadings] = []
_OF_PROVIDER: weakref.WeakKeyDictionary[metrics.MeterProvider, RunReadings] = (
    weakref.WeakKeyDictionary()
)


def run_readings(provider: metrics.MeterProvider | None) -> RunReadings:
    """Readings of a meter provider, shared by its monitors."""
    with _LOCK:
        # The process's provider may be set later; until then the API returns a placeholder.
        if provider is None or provider is metrics.get_meter_provider():
            if not _OF_PROCESS:
                _OF_PROCESS.append(RunReadings(None))
            return _OF_PROCESS[0]
        if provider not in _OF_PROVIDER:
            _OF_PROVIDER[provider] = RunReadings(provider)
        return _OF_PROVIDER[provider]
