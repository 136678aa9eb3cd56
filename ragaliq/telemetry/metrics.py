"""Metrics: instruments made from the catalogue, what is recorded, what is read when collected."""

from __future__ import annotations

import os
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Protocol

from opentelemetry import metrics
from opentelemetry.context import Context

from ragaliq._version import __version__
from ragaliq.core.results import ClaimDetail, EvaluationResult
from ragaliq.core.run import RunInfo
from ragaliq.telemetry import names
from ragaliq.telemetry.attributes import UNVERIFIED, Attributes, score
from ragaliq.telemetry.catalogue import METRICS
from ragaliq.telemetry.content import identifier

Readings = Callable[[metrics.CallbackOptions], Iterable[metrics.Observation]]


def instruments(
    provider: metrics.MeterProvider | None, readings: Mapping[str, Readings] | None = None
) -> dict[str, Any]:
    """A provider's instruments, by name.

    Args:
        provider: The meter provider; the process's own when None.
        readings: Make those that are read when metrics are collected, from these; else the others.
    """
    meter = metrics.get_meter(names.SCOPE, __version__, provider, names.SCHEMA_URL)
    made = {}
    for metric in METRICS:
        options: dict[str, Any] = {"unit": metric.unit, "description": metric.description}
        if metric.boundaries:  # advised: a view of the application's wins
            options["explicit_bucket_boundaries_advisory"] = metric.boundaries
        is_read = metric.instrument.startswith("observable")
        if is_read and readings is not None:
            options["callbacks"] = [readings[metric.name]]
        if is_read is (readings is not None):
            kind = metric.instrument.replace(" ", "_").replace("-", "_")
            made[metric.name] = getattr(meter, f"create_{kind}")(metric.name, **options)
    return made


_VERBS = {"counter": "add", "histogram": "record", "gauge": "set"}


class MetricsRecorder:
    """Records evaluations; safe on any thread, but not on the request path.

    An attribute's values beyond the first 100 count as `_OTHER`. No lock guards that, which a fork
    could leave held for good: threads may together let a value too many through.
    """

    def __init__(self, provider: metrics.MeterProvider | None = None) -> None:
        made = instruments(provider)
        self._writers: dict[str, Callable[..., None]] = {
            metric.name: getattr(made[metric.name], _VERBS[metric.instrument])
            for metric in METRICS
            if metric.name in made
        }
        self._seen: dict[str, set[str]] = {}

    def evaluated(
        self,
        pipeline: str,
        results: Mapping[str, EvaluationResult],
        *,
        target: Context,
        lag: float = 0.0,
    ) -> None:
        """Record what was measured.

        Args:
            pipeline: The application's name for the chain of the evaluated run.
            results: Its results.
            target: The context of the evaluated span; an empty one where there is none.
            lag: Seconds between the end of the run and the start of its evaluation; 0 offline.
        """
        where = {names.PIPELINE_NAME: pipeline}
        if lag:
            self._write(names.METRIC_LAG, lag, where, target)
        counted: list[tuple[ClaimDetail, ...]] = []
        for result in results.values():
            what = {
                names.EVALUATION_NAME: result.evaluator_name,
                names.EVALUATOR_ID: result.judge,
                **where,
            }
            epoch = {names.EVALUATOR_FINGERPRINT: result.fingerprint}
            how = epoch | {names.STATUS: result.status.value}
            measured = score(result)
            if measured is not None:
                how[names.EVALUATION_LABEL] = "pass" if result.passed else "fail"
            self._write(names.METRIC_EVALUATIONS, 1, what | how, target)
            # What a policy says about an answer without claims is not a measurement.
            if measured is not None and result.is_measured:
                self._write(names.METRIC_SCORE, measured, what | epoch, target)
            if result.duration is not None:
                self._write(names.METRIC_DURATION, result.duration, what, target)
            if result.claims in counted:
                continue  # metrics that share a claim check hold the same claims
            counted.append(result.claims)
            for claim in result.claims:
                decided = {
                    names.CLAIM_VERDICT: claim.verdict or UNVERIFIED,
                    names.CLAIM_DECIDED_BY: claim.decided_by,
                }
                self._write(names.METRIC_CLAIMS, 1, decided | where, target)

    def spent(self, run: RunInfo, results: Mapping[str, EvaluationResult]) -> None:
        """Record what the judge was paid, failed evaluations included."""
        for result in results.values():
            judge = {
                names.EVALUATOR_ID: result.judge,
                names.JUDGE_MODEL: result.model or "",
                names.PIPELINE_NAME: run.pipeline,
            }
            usage = result.usage
            tokens = {
                "input": usage.input_tokens,
                "output": usage.output_tokens,
                "cache_read": usage.cache_read_tokens,
                "cache_write": usage.cache_write_tokens,
                "unsplit": usage.unsplit_tokens,
            }
            for kind, number in tokens.items():
                if number:
                    self._write(names.METRIC_TOKENS, number, {names.TOKEN_TYPE: kind, **judge})
            if usage.cost_usd:
                self._write(names.METRIC_COST, usage.cost_usd, judge)

    # What follows never raises: another library's provider may do anything, and each of these is
    # counted or logged where it happens as well.

    def agreed(self, first: str, second: str, *, route: str, share: float) -> None:
        """Record how often two judges of a cascade agree.

        Args:
            first: Name of the judge that screens.
            second: Name of the judge that decides the rest.
            route: `accepted` for verdicts of the first that were audited, or `escalated`.
            share: Of the last claims, 0 to 1.
        """
        judges = {names.JUDGE_FIRST: first, names.JUDGE_SECOND: second, names.CLAIM_ROUTE: route}
        with suppress(Exception):
            self._write(names.METRIC_AGREEMENT, share, judges)

    def budget_left(self, shares: Mapping[str, float]) -> None:
        """Record which share, 0 to 1, of each limit (`usd_per_day`) may still be spent."""
        with suppress(Exception):
            for limit, share in shares.items():
                self._write(names.METRIC_BUDGET_LEFT, share, {names.BUDGET_LIMIT: limit})

    def limits_storage_failed(self, error_type: str) -> None:
        """Count a failed attempt to reach the storage of shared limits."""
        with suppress(Exception):
            self._write(names.METRIC_LIMITS_ERRORS, 1, {names.ERROR_TYPE: error_type})

    def sink_failed(self, sink: str, error_type: str) -> None:
        """Count a failed attempt of a sink, such as `phoenix`, to store results."""
        attributes = {names.SINK_NAME: sink, names.ERROR_TYPE: error_type}
        with suppress(Exception):
            self._write(names.METRIC_SINK_ERRORS, 1, attributes)

    def publish_failed(self, error_type: str) -> None:
        """Count a failed attempt to enqueue a run for workers elsewhere."""
        with suppress(Exception):
            self._write(names.METRIC_PUBLISH_ERRORS, 1, {names.ERROR_TYPE: error_type})

    def quality(self, name: str, value: float, of: Mapping[str, str]) -> None:
        """Record a figure about all answers of a pipeline; `name` is the metric's."""
        with suppress(Exception):
            self._write(name, value, of)

    def job(self, outcome: str, *, reason: str = "", waited: float | None = None) -> None:
        """Count what a worker did with a job.

        Args:
            outcome: Such as `evaluated` or `dead_letter`.
            reason: Why, where it became a dead letter.
            waited: Seconds from its publication until a worker took it up.
        """
        attributes = {names.JOB_OUTCOME: outcome, names.JOB_REASON: reason}
        with suppress(Exception):
            self._write(names.METRIC_JOBS, 1, attributes)
            if waited is not None:
                self._write(names.METRIC_JOB_WAIT, waited, {})

    def _write(
        self,
        name: str,
        value: float,
        attributes: Mapping[str, str],
        target: Context | None = None,
    ) -> None:
        bounded: Attributes = {}
        for attribute, text in attributes.items():
            if not text:
                continue
            known, seen = identifier(text), self._seen.setdefault(attribute, set())
            if known not in seen and len(seen) >= names.MAX_METRIC_VALUES:
                known = names.OTHER
            else:
                seen.add(known)
            bounded[attribute] = known
        self._writers[name](value, bounded, context=target)


class _Snapshot(Protocol):
    @property
    def pending(self) -> int: ...
    @property
    def outcomes(self) -> Mapping[str, int]: ...


class Counts(Protocol):
    """Counts of runs by outcome, which only grow."""

    def snapshot(self) -> _Snapshot:
        """The counts now."""
        ...

    def skipped(self) -> Mapping[tuple[str, str, str], int]:
        """Runs that gave no case, by outcome, reason and pipeline."""
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
    """

    def __init__(self, provider: metrics.MeterProvider | None) -> None:
        self._reset()
        instruments(
            provider,
            {
                names.METRIC_RUNS: self._outcomes,
                names.METRIC_SKIPPED_RUNS: self._skipped_runs,
                names.METRIC_QUEUE_SIZE: self._sizes,
            },
        )

    def watch(self, queue: Queue, counts: Counts, *, owner: object) -> None:
        """Report a queue for as long as it lives, and the counts of its owner, a monitor, for good.

        Monitors that share a queue come and go with requests.
        """
        if self._pid != os.getpid():
            self._reset()
        with self._lock:
            self._keep_ended()  # here too, for applications that never collect metrics
            self._counts[id(counts)] = counts
            self._queues.add(queue)
        # The collector runs the callback at any moment, on any thread: an append needs no lock.
        weakref.finalize(owner, self._ended.append, id(counts)).atexit = False

    def _reset(self) -> None:
        # In a forked child the counts are the parent's, which may have held the lock at the fork.
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._counts: dict[int, Counts] = {}
        self._queues: weakref.WeakSet[Queue] = weakref.WeakSet()
        self._ended: deque[int] = deque()
        self._kept: Counter[str] = Counter()
        self._kept_skipped: Counter[tuple[str, str, str]] = Counter()

    def _outcomes(self, _: metrics.CallbackOptions) -> Iterator[metrics.Observation]:
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

    def _skipped_runs(self, _: metrics.CallbackOptions) -> Iterator[metrics.Observation]:
        if self._pid != os.getpid():
            self._reset()
        with self._lock:
            self._keep_ended()
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

    def _keep_ended(self) -> None:
        # A count must not shrink because its monitor is gone. One whose last runs are still being
        # judged is asked again the next time.
        for _ in range(len(self._ended)):
            gone = self._ended.popleft()
            now, skipped = self._counts[gone].snapshot(), self._counts[gone].skipped()
            if now.pending:
                self._ended.append(gone)
            else:
                del self._counts[gone]
                self._kept.update(now.outcomes)
                self._kept_skipped.update(skipped)

    def _sizes(self, _: metrics.CallbackOptions) -> Iterator[metrics.Observation]:
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
        if provider not in _OF_PROVIDER:
            _OF_PROVIDER[provider] = RunReadings(provider)
        return _OF_PROVIDER[provider]
