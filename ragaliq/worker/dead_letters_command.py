"""`ragaliq worker dead-letters`: jobs that failed for good."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Annotated

import typer

from ragaliq.cli.console import Command, ExitCode, errors, escape_for_terminal, output

dead_letters = typer.Typer(
    name="dead-letters", help="Jobs that no worker could do.", no_args_is_help=True
)

Broker = Annotated[
    str | None,
    typer.Option(
        help="Address: redis://, amqp:// or nats://. A password is safer in RAGALIQ_BROKER_URL.",
        metavar="URL",
    ),
]
Queue = Annotated[str, typer.Option(help="Name of the queue that they came from.")]
JobId = Annotated[str | None, typer.Option("--job", help="Only the job with this id.")]


@dead_letters.command("list", cls=Command)
def show(*, broker: Broker = None, queue: Queue = "ragaliq") -> int:
    """List them: id, reason, deliveries, time. No text of any question or answer."""
    from ragaliq.worker.dead_letters import letters

    found = asyncio.run(letters(broker, queue))
    for letter in found:
        when = datetime.fromtimestamp(letter.at, UTC).isoformat(timespec="seconds")
        line = f"{letter.job_id or '-':32}  {letter.reason:18}  {letter.deliveries}  {when}"
        output.print(escape_for_terminal(f"{line}  {letter.detail}", limit=200))
    errors.print(f"{len(found)} dead letters")
    return ExitCode.OK


@dead_letters.command(cls=Command)
def retry(*, broker: Broker = None, queue: Queue = "ragaliq", job: JobId = None) -> int:
    """Return them to the queue, once the cause is removed."""
    from ragaliq.worker import dead_letters

    done, unreadable = asyncio.run(dead_letters.retry(broker, queue, job))
    errors.print(f"{done} jobs are on the queue again; {unreadable} messages hold no job and stay")
    return ExitCode.OK


@dead_letters.command(cls=Command)
def drop(
    *,
    broker: Broker = None,
    queue: Queue = "ragaliq",
    job: JobId = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
) -> int:
    """Delete them for good: one with --job, or all with --all."""
    from ragaliq.errors import ConfigurationError
    from ragaliq.worker import dead_letters

    if (job is None) != everything:
        raise ConfigurationError("dead-letters drop: name one job with --job, or add --all")
    dropped = asyncio.run(dead_letters.drop(broker, queue, job))
    errors.print(f"{dropped} dead letters are deleted")
    return ExitCode.OK
