"""Parquet tables, read batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from ragaliq.datasets.row import Row, RowError
from ragaliq.errors import ConfigurationError, DatasetError

__all__ = ["parquet_rows"]

_BATCH_ROWS = 1024


def parquet_rows(path: Path) -> Iterator[Row | RowError]:
    """The rows of a table.

    Raises:
        ConfigurationError: pyarrow is not installed.
        DatasetError: It is no Parquet file, or a value of it cannot be read.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise ConfigurationError(
            "reading Parquet needs pyarrow: pip install 'ragaliq[parquet]'"
        ) from None
    number = 0
    try:
        with parquet.ParquetFile(path) as table:
            _require_distinct(table.schema_arrow.names)
            for batch in table.iter_batches(batch_size=_BATCH_ROWS):
                for data in batch.to_pylist():
                    number += 1
                    yield Row(f"row {number}", data)
    except pa.ArrowException as error:
        raise DatasetError(
            f"it is no Parquet file that can be read ({type(error).__name__})"
        ) from None
    except (ValueError, OverflowError) as error:
        # A text that is not UTF-8, or a date beyond Python's.
        raise DatasetError(
            f"after row {number}: a value cannot be read ({type(error).__name__})"
        ) from None


def _require_distinct(names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise DatasetError(f"two columns are called {name[:40]!r}; rename one")
