"""`ragaliq report`: one HTML page of stored results."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from ragaliq.cli.console import output, plain
from ragaliq.cli.exit_codes import ExitCode

__all__ = ["report"]

_FORMATS = ["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]


def report(
    source: Annotated[
        str, typer.Argument(help="A store (sqlite:///PATH or its file), or a results .jsonl file.")
    ],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page.")] = Path("report.html"),
    title: Annotated[str, typer.Option(help="Its heading.")] = "RAG answer quality",
    since: Annotated[
        datetime | None,
        typer.Option(formats=_FORMATS, help="Answers evaluated then or later (UTC)."),
    ] = None,
    until: Annotated[
        datetime | None, typer.Option(formats=_FORMATS, help="Answers evaluated before then (UTC).")
    ] = None,
    pipeline: Annotated[str | None, typer.Option(help="Answers of this pipeline only.")] = None,
    worst: Annotated[int, typer.Option(min=0, help="Answers shown in full, at most.")] = 300,
) -> int:
    """Write one HTML page of stored results: scores, charts, and the worst answers by claim."""
    from ragaliq.reports import write_report

    written = write_report(
        source,
        out,
        title=title,
        since=_in_utc(since),
        until=_in_utc(until),
        pipeline=pipeline,
        worst=worst,
    )
    answers = f"{written.answers:,} answers"
    if written.judgings > written.answers:
        answers += f" judged {written.judgings:,} times"
    size = written.bytes / 1_000_000
    output.print(
        plain(f"{written.path}: {answers}, {written.in_full:,} of them in full, {size:.1f} MB")
    )
    return ExitCode.OK


def _in_utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.replace(tzinfo=UTC)
