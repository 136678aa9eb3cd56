"""`ragaliq report`: an HTML page of stored results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragaliq.cli.console import ExitCode, output
from ragaliq.cli.options import Pipeline, Since, Until
from ragaliq.cli.outputs import require_writable
from ragaliq.core.annexes import annex
from ragaliq.errors import ConfigurationError
from ragaliq.records.reading import is_store
from ragaliq.records.sqlite_file import companion_file, parse_location
from ragaliq.reports.wording import number_of


def report(
    source: Annotated[
        str,
        typer.Argument(
            help="A store (sqlite:///PATH or its file), or a results .jsonl file.", metavar="SOURCE"
        ),
    ],
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The page to write; replaces an earlier one.")
    ],
    title: Annotated[str, typer.Option(help="The page's heading.")] = "RAG answer quality",
    since: Since = None,
    until: Until = None,
    pipeline: Pipeline = None,
    worst: Annotated[int, typer.Option(min=0, help="How many answers to show in full.")] = 300,
    trace_url: Annotated[
        str | None,
        typer.Option(
            help="Link each answer to its trace: an address in your backend with {trace_id} in it.",
            metavar="URL",
        ),
    ] = None,
) -> int:
    """Write an HTML page of stored results. It shows the worst answers claim by claim."""
    from ragaliq.reports import write_report

    read = parse_location(source) if source.startswith("sqlite:") else Path(source)
    require_writable([("--out", out)], read=[("the results", read)])
    if out.suffix.lower() not in (".html", ".htm"):
        raise ConfigurationError(f"--out {out}: the page goes to an .html file")
    quality: list[object] = []
    if is_store(source) and companion_file(source, "labels").exists():
        quality = annex("lab.quality").stored_quality(
            source, since=since, until=until, pipeline=pipeline
        )
    written = write_report(
        source,
        out,
        title=title,
        since=since,
        until=until,
        pipeline=pipeline,
        worst=worst,
        trace_url=trace_url,
        quality=quality,
    )
    answers = number_of(written.answers, "answer")
    if written.evaluations > written.answers:
        answers += f" evaluated {written.evaluations:,} times"
    size = written.bytes / 1_000_000
    output.print(f"{written.path}: {answers}, {written.in_full:,} of them in full, {size:.1f} MB")
    return ExitCode.OK
