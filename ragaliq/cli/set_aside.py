"""`ragaliq worker set-aside`: jobs that no worker could do."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from ragaliq.cli.console import ExitCode, errors, output, plain

__all__ = ["set_aside"]

set_aside = typer.Typer(
    name="set-aside", help="Jobs that no worker could do.", no_args_is_help=True
)

Broker = Annotated[
    str | None, typer.Option(help="redis://... or amqp://...; better as RAGALIQ_BROKER_URL.")
]
Queue = Annotated[str, typer.Option(help="The queue they came from.")]
JobId = Annotated[str | None, typer.Option("--job", help="Only the job with this id.")]


@set_aside.command("list")
def show(*, broker: Broker = None, queue: Queue = "ragaliq") -> int:
    """List them: id, reason, deliveries, time. No text of any question or answer."""
    from ragaliq.worker_tier.set_aside import SetAside

    jobs = SetAside(broker, queue=queue).jobs()
    for job in jobs:
        when = datetime.fromtimestamp(job.set_aside_at, UTC).isoformat(timespec="seconds")
        line = f"{job.job_id or '-':32}  {job.reason:18}  {job.deliveries}  {when}  {job.detail}"
        output.print(plain(line, limit=200))
    errors.print(f"{len(jobs)} jobs are set aside")
    return ExitCode.OK


@set_aside.command()
def retry(*, broker: Broker = None, queue: Queue = "ragaliq", job: JobId = None) -> int:
    """Have them done after all, once what was wrong is put right."""
    from ragaliq.worker_tier.set_aside import SetAside

    done, unreadable = SetAside(broker, queue=queue).retry(job_id=job)
    errors.print(f"{done} jobs were put back; {unreadable} messages hold no job and stay")
    return ExitCode.OK


@set_aside.command()
def drop(
    *,
    broker: Broker = None,
    queue: Queue = "ragaliq",
    job: JobId = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
) -> int:
    """Forget them for good: name one with --job, or say --all."""
    from ragaliq.errors import ConfigurationError
    from ragaliq.worker_tier.set_aside import SetAside

    if (job is None) != everything:
        raise ConfigurationError("set-aside drop: name one job with --job, or say --all")
    errors.print(f"{SetAside(broker, queue=queue).drop(job_id=job)} jobs were dropped")
    return ExitCode.OK
