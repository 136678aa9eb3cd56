"""Reader of records from a store or a results file."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from pathlib import Path

from ragaliq.core.files import file_errors
from ragaliq.records.record import EvaluationRecord
from ragaliq.records.results_file import read_results_file
from ragaliq.records.store import Moment, read_records, seconds_of

Source = str | os.PathLike[str] | Iterable[EvaluationRecord]
"""`sqlite:///path`, the path of a store or of a results file, or the records themselves."""

_SQLITE_START = b"SQLite format 3\x00"


def records_of(
    source: Source,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    pipeline: str | None = None,
) -> Generator[EvaluationRecord, None, None]:
    """Read the records of a source lazily; those of a store in the order of time.

    Args:
        source: See `Source`.
        since: Only records evaluated then or later.
        until: Only records evaluated before then.
        pipeline: Only records of this pipeline; the empty string for runs without a name.
    """
    first, end = seconds_of(since), seconds_of(until)
    if isinstance(source, (str, os.PathLike)):
        if is_store(source):
            yield from read_records(source, since=first, until=end, pipeline=pipeline)
            return
        source = read_results_file(os.fspath(source))
    for record in source:
        if pipeline is not None and record.run.pipeline != pipeline:
            continue
        if first is not None and record.created_at < first:
            continue
        if end is None or record.created_at < end:
            yield record


def is_store(source: str | os.PathLike[str]) -> bool:
    """True for a store's address or file, False for a results file."""
    if os.fspath(source).startswith("sqlite:"):
        return True
    path = Path(source)
    with file_errors(path), path.open("rb") as file:
        return file.read(len(_SQLITE_START)) == _SQLITE_START
