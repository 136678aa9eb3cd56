"""Where a report's records come from: a store, a results file, or records at hand."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.sinks.record import EvaluationRecord
from ragaliq.sinks.record_file import read_record_file
from ragaliq.sinks.sqlite import read_records

__all__ = ["Moment", "Source", "name_of", "records_of"]

Source = str | os.PathLike[str] | Iterable[EvaluationRecord]
"""`sqlite:///path`, the path of a store or of a results file, or the records themselves."""

Moment = float | datetime
"""Unix time in seconds, or a datetime with a time zone."""

_SQLITE_START = b"SQLite format 3\x00"


def name_of(source: Source) -> str:
    """What the page calls its source: the file's name, never the folders it lies in."""
    if not isinstance(source, (str, os.PathLike)):
        return "records"
    address = os.fspath(source)
    if address.startswith("sqlite:"):
        address = address.partition("?")[0]
    return Path(address).name


def records_of(
    source: Source,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    pipeline: str | None = None,
) -> Iterator[EvaluationRecord]:
    """The records in question, read as they are asked for.

    Args:
        source: See `Source`.
        since: Evaluated then or later.
        until: Evaluated before then.
        pipeline: Of this pipeline; the empty string is that of runs without a name.

    Raises:
        ConfigurationError: A time has no time zone.
        DatasetError: There is no such file, or it is neither a store nor a results file.
    """
    first, end = _seconds(since), _seconds(until)
    if isinstance(source, (str, os.PathLike)):
        if _is_store(source):
            yield from read_records(source, since=first, until=end, pipeline=pipeline)
            return
        source = read_record_file(os.fspath(source))
    for record in source:
        if pipeline is not None and record.run.pipeline != pipeline:
            continue
        if first is not None and record.created_at < first:
            continue
        if end is None or record.created_at < end:
            yield record


def _is_store(source: str | os.PathLike[str]) -> bool:
    if os.fspath(source).startswith("sqlite:"):
        return True
    path = Path(source)
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE_START)) == _SQLITE_START
    except OSError as error:
        raise DatasetError(f"{path}: {error.strerror or error}") from None


def _seconds(moment: Moment | None) -> float | None:
    if not isinstance(moment, datetime):
        return moment
    if moment.tzinfo is None:
        raise ConfigurationError("a time without a time zone is ambiguous; give one with its zone")
    return moment.timestamp()
