"""`ragaliq worker`: judge what applications hand over."""

from __future__ import annotations

import importlib
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ragaliq.cli.console import ExitCode, errors, plain
from ragaliq.cli.options import BaseUrl, CalibrationFile, Judge, Metrics, Model, choose_judge
from ragaliq.cli.set_aside import set_aside
from ragaliq.errors import ConfigurationError

if TYPE_CHECKING:
    from ragaliq.judges.base import LLMJudge
    from ragaliq.worker_tier.process import Pool
    from ragaliq.worker_tier.settings import WorkerSettings

__all__ = ["worker"]

worker = typer.Typer(
    name="worker",
    help="Judge what applications hand over through a broker (CeleryExecutor).",
    invoke_without_command=True,
    no_args_is_help=False,
    rich_markup_mode=None,
)
worker.add_typer(set_aside, name="set-aside")


class PoolName(StrEnum):
    """What a worker judges in."""

    AUTO = "auto"
    THREADS = "threads"
    PREFORK = "prefork"


class LogLevel(StrEnum):
    """How much a worker logs."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


Broker = Annotated[
    str | None, typer.Option(help="redis://... or amqp://...; better as RAGALIQ_BROKER_URL.")
]
Queue = Annotated[str, typer.Option(help="Where the jobs are.")]


@worker.callback()
def run(
    context: typer.Context,
    *,
    broker: Broker = None,
    queue: Queue = "ragaliq",
    app: Annotated[
        str | None,
        typer.Option(help="module:name of a WorkerSettings, or of a function that makes one."),
    ] = None,
    judge: Judge = None,
    model: Model = None,
    base_url: BaseUrl = None,
    calibration: CalibrationFile = None,
    metrics: Metrics = "faithfulness,relevance",
    sink: Annotated[
        list[str] | None, typer.Option(help="Where results go, sqlite:///path; repeatable.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Jobs at once; 16 threads, or a process a core.")
    ] = None,
    pool: Annotated[
        PoolName,
        typer.Option(help="threads for judges behind a server, prefork for those that compute."),
    ] = PoolName.AUTO,
    grace: Annotated[
        float, typer.Option(min=0.0, help="Seconds for jobs at hand after SIGTERM.")
    ] = 25.0,
    visibility_timeout: Annotated[
        float, typer.Option(min=1.0, help="Redis: seconds until a dead worker's jobs are given on.")
    ] = 900.0,
    name: Annotated[
        str | None, typer.Option(help="The worker's name; %h is the machine's.")
    ] = None,
    log_level: Annotated[LogLevel, typer.Option(help="How much is logged.")] = LogLevel.INFO,
) -> int:
    """Judge jobs until SIGTERM; then finish what is at hand, or give it back."""
    if context.invoked_subcommand is not None:
        return ExitCode.OK
    from ragaliq.worker_tier.application import BrokerOptions
    from ragaliq.worker_tier.broker import broker_url
    from ragaliq.worker_tier.process import PoolOptions, run_worker, suitable_pool
    from ragaliq.worker_tier.settings import WorkerSettings

    url = broker_url(broker)
    if app is not None:
        settings = _settings_of(app)
    else:
        settings = WorkerSettings(
            judge=_judge(judge, model, base_url, calibration),
            evaluators=[each.strip() for each in metrics.split(",") if each.strip()],
            sinks=sink or (),
        )
    options = PoolOptions(
        pool=suitable_pool(settings) if pool is PoolName.AUTO else cast("Pool", pool.value),
        concurrency=concurrency,
        grace=grace,
        name=name,
        log_level=log_level.upper(),
    )
    at_broker = BrokerOptions(url=url, queue=queue, visibility_timeout=visibility_timeout)
    return run_worker(settings, at_broker, options)


@worker.command()
def health(
    *,
    broker: Broker = None,
    queue: Queue = "ragaliq",
    name: Annotated[
        str | None,
        typer.Option(help="The worker that must answer, ragaliq@%h for this machine's; else any."),
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait.")] = 5.0,
) -> int:
    """End with code 0 when a worker answers, with 1 when none does."""
    from ragaliq.worker_tier.broker import BrokerAwayError
    from ragaliq.worker_tier.health import answering

    try:
        names = answering(broker, name=name, timeout=timeout, queue=queue)
    except BrokerAwayError as error:
        errors.print(plain(f"no worker answers: {error}"))
        return ExitCode.BELOW_THRESHOLD
    errors.print(plain(f"{names[0]} answers" if names else "no worker answers"))
    return ExitCode.OK if names else ExitCode.BELOW_THRESHOLD


def _judge(
    name: str | None, model: str | None, base_url: str | None, calibration: Path | None
) -> LLMJudge | None:
    if not (name or model or base_url or calibration):
        return None  # the environment says which, in each process
    return choose_judge(name, model=model, base_url=base_url, calibration=calibration).judge


def _settings_of(spec: str) -> WorkerSettings:
    from ragaliq.worker_tier.settings import WorkerSettings

    module, colon, name = spec.partition(":")
    if not (module and colon and name):
        raise ConfigurationError(f"--app {spec!r}: write it as module:name")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(f"--app {spec}: {error}") from error
    settings = found() if callable(found) and not isinstance(found, WorkerSettings) else found
    if not isinstance(settings, WorkerSettings):
        raise ConfigurationError(f"--app {spec}: it is no WorkerSettings and makes none")
    return settings
