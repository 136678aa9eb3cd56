"""`ragaliq worker`: takes jobs from a broker, evaluates, stores and acknowledges them."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from ragaliq.core.checks import require_positive
from ragaliq.core.log_once import LogOnce
from ragaliq.core.policy import ScoringPolicy
from ragaliq.errors import (
    BrokerUnavailableError,
    BudgetExceeded,
    CircuitOpenError,
    ConfigurationError,
    MessageRefusedError,
    RagaliqError,
    StoreError,
)
from ragaliq.evaluators.registry import EvaluatorSpec
from ragaliq.judges.resolve import CalibrationSpec, JudgeSpec
from ragaliq.records.sinks import SinkSpec
from ragaliq.scoring.limits.breaker import CircuitBreaker
from ragaliq.scoring.limits.protection import Limits
from ragaliq.scoring.scorer import Scorer
from ragaliq.scoring.settings import chosen_judge, read_settings
from ragaliq.telemetry import configure_from_environment, names
from ragaliq.telemetry.content import ContentPolicy, Redactor
from ragaliq.telemetry.emit import TelemetryOptions
from ragaliq.telemetry.providers import flush_providers
from ragaliq.worker.brokers import Broker
from ragaliq.worker.dead_letters import DeadLetter
from ragaliq.worker.message import JobMessage, read_message

logger = logging.getLogger(__name__)

_HEARTBEAT_EVERY = 5.0


@dataclass(frozen=True, kw_only=True)
class WorkerSettings(Limits):
    """Settings of `ragaliq worker --app module:name`, like the arguments of `Monitor`.

    Attributes:
        judge: As in `Monitor`.
        calibration: As in `Monitor`.
        metrics: The metrics that jobs may ask for; by default faithfulness, and relevance where
            the judge is a language model.
        policy: As in `Monitor`.
        deadline: Seconds for each metric of a job.
        budget: Limits on cost; for each process, unless they share a storage.
        judge_limits: Limits on the judge's calls; likewise.
        breaker: Circuit breaker for a failing judge; jobs wait for half of `time_limit`, and then
            go to the end of the queue.
        sinks: As in `Monitor`.
        capture_content: As in `Monitor`.
        redact: As in `Monitor`.
        redact_for_judge: As in `Monitor`.
        telemetry: As in `Monitor`.
        attempts: Attempts at a job whose judge failed altogether; the last failure counts.
        backoff: Seconds before the second attempt, doubled for each further one.
        max_deliveries: Deliveries of a job to workers that die; after them it becomes a dead
            letter.
        time_limit: Seconds for a job with all attempts; after them it becomes a dead letter. A dead
            worker's job goes to another one a little later.

    Raises:
        ConfigurationError: A limit is not positive, or something is of the wrong kind.
    """

    judge: JudgeSpec | str | None = None
    calibration: CalibrationSpec | None = None
    metrics: Iterable[EvaluatorSpec] | None = None
    policy: ScoringPolicy = ScoringPolicy.LIVE
    deadline: float = 60.0
    breaker: CircuitBreaker | None = CircuitBreaker()
    sinks: Iterable[SinkSpec] = ()
    capture_content: bool | None = None
    redact: Redactor | None = None
    redact_for_judge: Redactor | None = None
    telemetry: TelemetryOptions | None = None
    attempts: int = 3
    backoff: float = 2.0
    max_deliveries: int = 5
    time_limit: float = 300.0

    def __post_init__(self) -> None:
        require_positive(
            "WorkerSettings",
            deadline=self.deadline,
            attempts=self.attempts,
            backoff=self.backoff,
            max_deliveries=self.max_deliveries,
            time_limit=self.time_limit,
        )
        if self.time_limit <= self.deadline:
            raise ConfigurationError(
                f"WorkerSettings: time_limit ({self.time_limit:g} s) must be longer than deadline "
                f"({self.deadline:g} s): a job has several attempts"
            )

    @property
    def hold(self) -> float:
        """Seconds after which a job of a silent worker goes to another one."""
        return self.time_limit + min(30.0, max(1.0, self.time_limit / 10))


class Worker:
    """Handles a broker's messages; belongs to one event loop."""

    def __init__(self, settings: WorkerSettings, broker: Broker) -> None:
        self._settings, self._broker = settings, broker
        self._scorer = Scorer(
            chosen_judge(read_settings(), settings.judge, settings.calibration),
            settings.metrics,
            policy=settings.policy,
            deadline=settings.deadline,
            limits=settings,
            executor=None,
            redact_for_judge=settings.redact_for_judge,
            telemetry=settings.telemetry,
            content=ContentPolicy.resolve(
                capture_content=settings.capture_content, redact=settings.redact
            ),
            sinks=settings.sinks,
            attempts=settings.attempts,
            backoff=settings.backoff,
            # A job keeps its slot while it waits: while the judge is down, the other jobs stay with
            # the broker instead of being loaded one after the other.
            waits_for_judge=settings.time_limit / 2,
            waits_for_sinks=True,
        )
        self._metrics = {each.name for each in self._scorer.metrics}
        # A lock disappears when no task holds it or waits for it.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._at_hand: set[asyncio.Timeout] = set()
        self.is_ready = self._is_leaving = False
        self._log_once = LogOnce(logger)

    async def fresh(self, message: Any) -> None:
        """Handle a new message, or a redelivered one on a broker with a retry queue."""
        with self._broker_contained():
            if self._broker.returns_to_queue and await self._broker.deliveries(message) > 1:
                # Its worker died, perhaps because of it. In the retry queue it is evaluated alone,
                # so that only a job that kills its worker is counted again.
                await self._broker.publish(self._broker.body(message), self._broker.retry)
                await self._broker.done(message)
                self._count("redelivered")
            else:
                await self._take(message, deliveries=1)

    async def again(self, message: Any) -> None:
        """Handle a redelivered message; these come one at a time."""
        with self._broker_contained():
            await self._take(message, deliveries=await self._broker.deliveries(message))

    @contextmanager
    def _broker_contained(self) -> Iterator[None]:
        # On a broker's error the message is not acknowledged and is delivered again. The error's
        # message may contain the broker's address.
        try:
            yield
        except Exception as error:  # noqa: BLE001 - client libraries have errors of every class
            kind = type(error).__name__
            self._log_once.message(kind, f"the broker did not take what became of a job: {kind}")

    async def _take(self, message: Any, *, deliveries: int) -> None:
        body = self._broker.body(message)
        try:
            job = read_message(body)
            waited = max(0.0, time.time() - job.published_at)
            outcome = await self._outcome_of(job, deliveries)
            if outcome == "requeued":
                await self._broker.publish(body, self._broker.queue)
            self._count(outcome, waited=None if outcome == "requeued" else waited)
        except MessageRefusedError as error:
            letter = DeadLetter(
                reason=error.reason,
                detail=error.detail,
                at=time.time(),
                deliveries=deliveries,
                body=body.decode(errors="surrogateescape"),
            )
            await self._broker.publish(json.dumps(letter.model_dump()).encode(), self._broker.dead)
            self._count("dead_letter", error.reason)
            self._log_once.message(
                error.reason,
                f"a message became a dead letter: {error}; further ones of this reason are "
                "counted, not logged; see `ragaliq worker dead-letters list`",
            )
        await self._broker.done(message)

    async def _outcome_of(self, job: JobMessage, deliveries: int) -> str:
        """Evaluate a job and return its outcome.

        Raises:
            MessageRefusedError: It failed, and an immediate retry would not help.
        """
        if self._is_leaving:
            return "requeued"
        try:
            async with asyncio.timeout(self._settings.time_limit) as limit:
                self._at_hand.add(limit)
                return await self._judged(job, deliveries)
        except MessageRefusedError:
            raise
        except BudgetExceeded:
            self._log_once.message(
                "over_budget", "jobs are not judged: the budget is used up; counted only"
            )
            return "over_budget"
        except CircuitOpenError:
            return "requeued"
        except StoreError:
            raise MessageRefusedError("unrecorded") from None
        except Exception as error:  # noqa: BLE001 - no message may end the worker, or come for ever
            if limit.expired():
                if self._is_leaving:
                    return "requeued"
                raise MessageRefusedError("too_slow") from None
            self._log_once.message(
                "internal_error", f"a job could not be evaluated: {type(error).__name__}"
            )
            raise MessageRefusedError("internal_error") from None
        finally:
            self._at_hand.discard(limit)

    async def _judged(self, job: JobMessage, deliveries: int) -> str:
        case, metrics = job.evaluated_case(), set(job.metrics)
        if unknown := metrics - self._metrics:
            raise MessageRefusedError("unknown_metric", f"{len(unknown)} of its metrics")
        # If one job is delivered twice at once, the second delivery waits for the record.
        record_id = self._scorer.record_id(case, metrics)
        async with self._turns.setdefault(record_id, asyncio.Lock()):
            if await self._scorer.is_recorded(case, metrics):
                return "already_recorded"
            if deliveries > self._settings.max_deliveries:
                raise MessageRefusedError(
                    "crashed", f"given to workers {deliveries - 1} times, none of which finished it"
                )
            lag = max(0.0, time.time() - case.evaluated_run.ended_at)
            await self._scorer.score(case, metrics=metrics, lag=lag)
            return "evaluated"

    def _count(self, outcome: str, reason: str = "", waited: float | None = None) -> None:
        metrics, ended = self._scorer.emitter.metrics, {names.JOB_OUTCOME: outcome}
        metrics.record(names.METRIC_JOBS, 1, ended | {names.JOB_REASON: reason})
        if waited is not None:
            metrics.record(names.METRIC_JOB_WAIT, waited, {})

    async def ready(self) -> None:
        """Mark the worker ready: jobs come from now on."""
        self.is_ready = True
        logger.info("waiting for jobs")

    async def leave(self, grace: float) -> None:
        """Accept no further job; current ones have `grace` seconds, then return to the queue."""
        logger.info("ending: %g s for %d jobs at hand", grace, len(self._at_hand))
        self._is_leaving = True
        end = asyncio.get_running_loop().time() + grace
        for limit in self._at_hand:
            if not limit.expired():
                limit.reschedule(min(end, limit.when() or end))

    async def aclose(self) -> None:
        """Flush the sinks and release judge, sinks and limits."""
        await asyncio.to_thread(self._scorer.sinks.close, 5.0)
        await self._scorer.aclose()


async def run_worker(
    settings: WorkerSettings, broker: Broker, *, grace: float, heartbeat: Path | None = None
) -> None:
    """Work until SIGTERM or Ctrl-C, then give current jobs `grace` seconds.

    The file `heartbeat` is touched every few seconds while the loop runs and the broker answers.

    Raises:
        ConfigurationError: The settings cannot be used.
        BrokerUnavailableError: The broker failed at the start.
    """
    from faststream import FastStream

    if not configure_from_environment("ragaliq-worker") and not settings.sinks:
        logger.warning(
            "the worker has no sink, and no OTEL_EXPORTER_OTLP_ENDPOINT to export to: results go "
            "nowhere; add --sink sqlite:///evaluations.db to keep them"
        )
    worker = Worker(settings, broker)
    broker.subscribe(worker.fresh, worker.again)
    app = FastStream(
        broker.native,
        logger=None,
        after_startup=[worker.ready],
        on_shutdown=[partial(worker.leave, grace)],
    )
    beating = asyncio.create_task(_beat(broker, heartbeat)) if heartbeat else None
    try:
        await broker.open()
        await app.run()
    except Exception as error:
        if worker.is_ready or isinstance(error, RagaliqError):
            raise
        # RabbitMQ closes the connection of one of two that make the same queue at the same time.
        raise BrokerUnavailableError(
            f"the broker refused a worker that was starting ({type(error).__name__}): start the "
            "worker again, and if that does not help look for the reason in the broker's log"
        ) from None
    finally:
        if beating:
            beating.cancel()
        await worker.aclose()
        await asyncio.to_thread(flush_providers, 5.0)


async def _beat(broker: Broker, file: Path) -> None:
    while True:
        try:
            if await broker.native.ping(timeout=_HEARTBEAT_EVERY):
                await asyncio.to_thread(file.touch)
        except Exception as error:  # noqa: BLE001 - the file grows old, which says it
            logger.debug("no heartbeat: %s", type(error).__name__)
        await asyncio.sleep(_HEARTBEAT_EVERY)
