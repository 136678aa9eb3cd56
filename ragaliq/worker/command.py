"""`ragaliq worker`: evaluate the jobs of a broker."""

from __future__ import annotations

import asyncio
import logging
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragaliq.cli.console import Command, ExitCode, Group, errors
from ragaliq.cli.options import (
    BaseUrl,
    CalibrationFile,
    Judge,
    Metrics,
    Model,
    choose_judge,
    given_options,
    imported,
    named_metrics,
)
from ragaliq.errors import ConfigurationError
from ragaliq.scoring.settings import ENV_HEARTBEAT
from ragaliq.worker.dead_letters_command import dead_letters

if TYPE_CHECKING:
    from ragaliq.judges.base import LLMJudge
    from ragaliq.worker.worker import WorkerSettings

worker = typer.Typer(
    name="worker",
    cls=Group,
    help="Evaluate the jobs that Monitor(executor=URL) puts on a broker.",
    invoke_without_command=True,
    no_args_is_help=False,
    add_completion=False,
    rich_markup_mode=None,
)
worker.add_typer(dead_letters, name="dead-letters")


class LogLevel(StrEnum):
    """Log level of a worker."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


Heartbeat = Annotated[
    Path | None,
    typer.Option(
        envvar=ENV_HEARTBEAT, help="A file that the worker touches every 5 seconds while it works."
    ),
]


@worker.callback()
def run(
    context: typer.Context,
    *,
    broker: Annotated[
        str | None,
        typer.Option(
            help="Address: redis://, amqp://, nats:// or kafka://. A password is safer in "
            "RAGALIQ_BROKER_URL.",
            metavar="URL",
        ),
    ] = None,
    queue: Annotated[str, typer.Option(help="Name of the queue.")] = "ragaliq",
    app: Annotated[
        str | None,
        typer.Option(help="module:name of a WorkerSettings, or of a function that makes one."),
    ] = None,
    judge: Judge = None,
    model: Model = None,
    base_url: BaseUrl = None,
    calibration: CalibrationFile = None,
    metrics: Metrics = None,
    sink: Annotated[
        list[str] | None,
        typer.Option(help="Where to store results, such as sqlite:///path; repeatable."),
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, help="Jobs to evaluate at the same time.")
    ] = 16,
    grace: Annotated[
        float, typer.Option(min=0.0, help="Seconds for current jobs after SIGTERM.")
    ] = 25.0,
    heartbeat: Heartbeat = None,
    log_level: Annotated[LogLevel, typer.Option(help="How much is logged.")] = LogLevel.INFO,
) -> int:
    """Evaluate jobs until SIGTERM; then finish current ones, or return them to the queue."""
    if (command := context.invoked_subcommand) is not None:
        for option in given_options(context).values():
            raise ConfigurationError(
                f"{option} has no effect before {command}; write it after that"
            )
        return ExitCode.OK
    from ragaliq.worker.brokers import broker_at
    from ragaliq.worker.worker import WorkerSettings, run_worker

    if app is not None:
        settings = _settings_of(app)
    else:
        settings = WorkerSettings(
            judge=_judge(judge, model, base_url, calibration),
            metrics=None if metrics is None else named_metrics(metrics),
            sinks=sink or (),
        )
    logging.basicConfig(level=log_level.upper(), format="%(asctime)s %(levelname)s %(message)s")
    at = broker_at(broker, queue=queue, concurrency=concurrency, hold=settings.hold, grace=grace)
    asyncio.run(run_worker(settings, at, grace=grace, heartbeat=heartbeat))
    return ExitCode.OK


@worker.command(cls=Command)
def health(
    *,
    heartbeat: Heartbeat = None,
    max_age: Annotated[
        float, typer.Option(min=1.0, help="Most seconds since the file was touched.")
    ] = 30.0,
) -> int:
    """Exit with code 0 if the worker with this heartbeat file works, else with 1."""
    if heartbeat is None:
        raise ConfigurationError(
            "health: name the worker's file with --heartbeat, or set RAGALIQ_WORKER_HEARTBEAT"
        )
    try:
        age = time.time() - heartbeat.stat().st_mtime
    except OSError:
        errors.print("there is no heartbeat")
        return ExitCode.BELOW_THRESHOLD
    errors.print(f"the last heartbeat was {age:.0f} s ago")
    return ExitCode.OK if age <= max_age else ExitCode.BELOW_THRESHOLD


def _judge(
    name: str | None, model: str | None, base_url: str | None, calibration: Path | None
) -> LLMJudge | None:
    if not (name or model or base_url or calibration):
        return None  # the environment says which, in each process
    return choose_judge(name, model=model, base_url=base_url, calibration=calibration).judge


def _settings_of(spec: str) -> WorkerSettings:
    from ragaliq.worker.worker import WorkerSettings

    found = imported("--app", spec)
    settings = found() if callable(found) and not isinstance(found, WorkerSettings) else found
    if not isinstance(settings, WorkerSettings):
        raise ConfigurationError(f"--app {spec}: it is not a WorkerSettings and makes none")
    return settings
