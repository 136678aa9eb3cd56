"""From a source to a page on disk."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.reports.contents import contents_of
from ragaliq.reports.gathering import Gathering
from ragaliq.reports.page import render
from ragaliq.reports.source import Moment, Source, name_of, records_of

__all__ = ["ReportSummary", "write_report"]

_MOST_ROWS = 20_000


@dataclass(frozen=True, kw_only=True)
class ReportSummary:
    """What a report holds.

    Attributes:
        path: Where it is.
        answers: Answers that its figures rest on.
        judgings: Results of them: as many, unless an answer was judged several times.
        listed: Results that it lists, the worst first.
        in_full: Results that it shows with their texts and claims.
        bytes: Its size.
    """

    path: Path
    answers: int
    judgings: int
    listed: int
    in_full: int
    bytes: int


def write_report(
    source: Source,
    path: str | os.PathLike[str],
    *,
    title: str = "RAG answer quality",
    since: Moment | None = None,
    until: Moment | None = None,
    pipeline: str | None = None,
    worst: int = 300,
    source_name: str | None = None,
) -> ReportSummary:
    """Write one HTML page that holds everything it shows and loads nothing.

    Figures and charts are about all answers. The `worst` answers by each metric in turn are shown
    in full; up to 20,000 are listed by their scores. The page says what it leaves out.

    Args:
        source: `sqlite:///path`, the path of a store or of a results file, or records. They are
            read once and not kept.
        path: The page; replaced when it is there.
        title: Its heading.
        since: Answers evaluated then or later: Unix time, or a datetime with a zone.
        until: Answers evaluated before then.
        pipeline: Answers of this pipeline only.
        worst: How many answers are shown in full, at most; their size is limited too.
        source_name: What the page calls the source; by default the file's name.

    Raises:
        ConfigurationError: A setting is out of range, or jinja2 is not installed.
        DatasetError: The source cannot be read or holds no such answers, or the page cannot be
            written.
    """
    if worst < 0:
        raise ConfigurationError(f"worst must not be negative, got {worst}")
    target = Path(path)
    if not target.name:  # such as "." or "/"
        raise ConfigurationError(f"{str(target)!r} is a folder; name the file of the page")
    name = name_of(source) if source_name is None else source_name
    gathered = Gathering(in_full=worst, in_rows=_MOST_ROWS)
    gathered.read(records_of(source, since=since, until=until, pipeline=pipeline))
    if not gathered.records:
        raise DatasetError(f"{name} holds no results within the time and pipeline asked")
    contents = contents_of(gathered)
    page = render(gathered, contents, title=title, source=name)
    # Lone surrogates cannot be written; everything else can.
    encoded = page.encode("utf-8", "replace")
    _replace(target, encoded)
    return ReportSummary(
        path=target,
        answers=gathered.answers_judged,
        judgings=gathered.records,
        listed=contents.in_rows,
        in_full=contents.in_full,
        bytes=len(encoded),
    )


def _replace(target: Path, content: bytes) -> None:
    """Write beside the target and move it there: a reader never sees half a page."""
    part = target.with_name(f".{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_bytes(content)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise DatasetError(f"{target}: {error.strerror or error}") from None
