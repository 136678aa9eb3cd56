"""Spans in a Parquet table, as Phoenix's data frames are written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.traces.files.flat import flat_span
from ragaliq.traces.files.values import BadSpanError
from ragaliq.traces.span import TraceSpan

__all__ = ["parquet_spans"]

_TRACE, _SPAN = "context.trace_id", "context.span_id"
_BATCH_ROWS = 256


def parquet_spans(
    path: Path, *, look_only: bool = False
) -> Iterator[tuple[str, TraceSpan | BadSpanError]]:
    """The spans of a table, each with its place.

    Args:
        path: The table.
        look_only: Say only whether it is a table of spans, by one that stands for all; then
            nothing is raised.

    Raises:
        ConfigurationError: pyarrow is not installed.
        DatasetError: It is no Parquet file, or a value of it cannot be read.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        if look_only:
            return
        raise ConfigurationError(
            "reading Parquet needs pyarrow: pip install 'ragaliq[parquet]'"
        ) from None
    try:
        with parquet.ParquetFile(path) as table:
            names = set(table.schema_arrow.names)
            if look_only:
                if {_TRACE, _SPAN} <= names:
                    yield "", BadSpanError("not looked at")
                return
            number = 0
            for batch in table.iter_batches(batch_size=_BATCH_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    yield f"row {number}", flat_span(row)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        if look_only:
            return
        raise DatasetError(f"it cannot be read as Parquet ({type(error).__name__})") from None
