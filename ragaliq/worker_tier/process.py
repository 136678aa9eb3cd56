"""The worker as a process: Celery's worker, its pool, its end."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ragaliq.worker_tier.application import BrokerOptions, Hands, worker_app
from ragaliq.worker_tier.leaving import Leaving
from ragaliq.worker_tier.settings import WorkerSettings

if TYPE_CHECKING:
    from celery import Celery

logger = logging.getLogger(__name__)

__all__ = ["Pool", "PoolOptions", "run_worker", "suitable_pool"]

Pool = Literal["threads", "prefork"]

_THREADS = 16


@dataclass(frozen=True, kw_only=True)
class PoolOptions:
    """How many jobs are worked on at once, and how the worker ends.

    Attributes:
        pool: `threads` for judges that wait for a server: many jobs on one event loop; `prefork`
            for those that compute: a process for each.
        concurrency: Jobs at once; None for 16 threads, or a process for each processor.
        grace: Seconds for finishing jobs after SIGTERM; what is left then goes back.
        name: The worker's name; with a part of its own for every machine.
        log_level: Of Celery's log and ours.
    """

    pool: Pool
    concurrency: int | None = None
    grace: float = 25.0
    name: str | None = None
    log_level: str = "INFO"


def suitable_pool(settings: WorkerSettings) -> Pool:
    """Processes for the embedded judge, threads for all others."""
    from ragaliq.judges.calibration import CalibratedJudge
    from ragaliq.judges.local import LocalJudge
    from ragaliq.scoring.settings import chosen_judge, read_settings

    judge = chosen_judge(read_settings(), settings.judge, settings.calibration)
    screen = judge.judge if isinstance(judge, CalibratedJudge) else judge
    return "prefork" if isinstance(screen, LocalJudge) else "threads"


def run_worker(settings: WorkerSettings, broker: BrokerOptions, options: PoolOptions) -> int:
    """Work until a signal ends it; returns the exit code.

    Raises:
        ConfigurationError: The settings cannot be used.
    """
    app, hands = worker_app(settings, broker)  # says so where Celery is missing
    from celery.utils.nodenames import host_format

    if options.pool == "threads":
        _set_up_telemetry()
    if not settings.sinks and not _exports():
        logger.warning(
            "the worker has no sink, and no OTEL_EXPORTER_OTLP_ENDPOINT to export to: results go "
            "nowhere unless the module with its settings sets up OpenTelemetry; add --sink "
            "sqlite:///evaluations.db to keep them"
        )
    if broker.visibility_timeout <= settings.time_limit:
        logger.warning(
            "the visibility timeout (%g s) is no longer than time_limit (%g s): jobs that take "
            "long are given to a second worker meanwhile",
            broker.visibility_timeout,
            settings.time_limit,
        )
    hands.deliveries()  # what is wrong with the settings is said now, and not with the first job
    _keep_texts_out_of_logs()
    _connect(app, hands, broker, options)
    worker = app.Worker(
        hostname=host_format(options.name or "ragaliq@%h"),
        pool=options.pool,
        concurrency=options.concurrency or (_THREADS if options.pool == "threads" else None),
        loglevel=options.log_level,
        quiet=True,
        # What workers tell each other about themselves is of no use here.
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    worker.start()
    return int(worker.exitcode or 0)


def _connect(app: Celery, hands: Hands, broker: BrokerOptions, options: PoolOptions) -> None:
    from celery import signals

    def ready(sender: Any, **_: Any) -> None:
        Leaving(sender, hands, options.pool, queue=broker.queue, grace=options.grace).heed_signals()

    def child_began(**_: Any) -> None:
        _set_up_telemetry()
        hands.deliveries()

    def process_ends(**_: Any) -> None:
        hands.close(5.0)
        _send_telemetry()

    # Kept alive by the application: signals hold their receivers weakly.
    app.ragaliq_receivers = (ready, child_began, process_ends)
    signals.worker_ready.connect(ready)
    signals.worker_process_init.connect(child_began)
    signals.worker_process_shutdown.connect(process_ends)
    signals.worker_shutdown.connect(process_ends)


def _keep_texts_out_of_logs() -> None:
    # At DEBUG they write the arguments of each task, which are questions and answers.
    for name in ("celery", "kombu", "amqp", "redis"):
        logging.getLogger(name).setLevel(logging.INFO)
    for name in ("celery.pool", "celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _set_up_telemetry() -> None:
    """Export by OTLP where the environment says where to, and nothing is set up yet."""
    from opentelemetry import trace

    from ragaliq.telemetry import configure

    if _exports() and type(trace.get_tracer_provider()).__name__ == "ProxyTracerProvider":
        configure(service_name=os.environ.get("OTEL_SERVICE_NAME") or "ragaliq-worker")


def _exports() -> bool:
    return any(
        os.environ.get(f"OTEL_EXPORTER_OTLP{part}ENDPOINT")
        for part in ("_", "_TRACES_", "_METRICS_", "_LOGS_")
    )


def _send_telemetry() -> None:
    from ragaliq.live.capture import flush_providers

    flush_providers(5.0)
