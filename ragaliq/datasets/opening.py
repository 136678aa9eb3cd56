"""Opening a file of cases, whatever it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from ragaliq.datasets.cases import CaseReader, OnError, require_known
from ragaliq.datasets.rows import Format, format_of
from ragaliq.datasets.trace_reader import TraceReader
from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.traces.files import holds_traces

__all__ = ["CaseFormat", "read_cases"]

CaseFormat = Format | Literal["traces"]


def read_cases(
    path: str | Path,
    *,
    file_format: CaseFormat | None = None,
    fields: Mapping[str, str] | None = None,
    on_error: OnError = "raise",
    encoding: str | None = None,
) -> CaseReader:
    """Read cases from a JSON, JSONL, CSV, TSV, YAML or Parquet file, or from a file of traces.

    Any of them may be gzipped. Traces (OTLP as JSON or protobuf, Phoenix's exports) are recognised
    by what is in the file, whatever it is called; `TraceReader` says what becomes of them.

    Fields are recognised by the names RAGAS, DeepEval, LangSmith and ragaliq give them (`FIELDS`);
    columns that are none of them travel in the case's metadata.

    Args:
        path: The file.
        file_format: How it is written; by default `traces` for a file that holds spans, else
            from its name.
        fields: A case's field to the name it has in this file, such as `{"query": "frage"}`; for
            nested values with a dot, `inputs.frage`. In traces, the attribute of a run's first
            span that holds it.
        on_error: `raise` stops at the first bad row; `skip` skips and counts it.
        encoding: Of a file that is text; by default UTF-8, or what a byte order mark says.

    Returns:
        An iterable of cases. JSONL, CSV and Parquet are read as they are iterated, in bounded
        memory, and so are traces, a request a line or in protobuf; other JSON, and YAML, as a
        whole.

    Raises:
        ConfigurationError: `fields` or `on_error` is wrong.
        DatasetError: The file is missing or of no known format; while iterating also for a bad
            row, with file, place and field, never its text, and at the end for a name in `fields`
            that no row has.
    """
    path = Path(path)
    require_known(fields or {})
    if on_error not in ("raise", "skip"):
        raise ConfigurationError(f"on_error must be 'raise' or 'skip', got {on_error!r}")
    if not path.exists():
        raise DatasetError(f"{path}: there is no such file")
    if path.is_dir():
        raise DatasetError(f"{path} is a folder; name a file in it")
    if file_format == "traces" or (file_format is None and holds_traces(path)):
        return TraceReader(path, fields=fields or {}, on_error=on_error)
    return CaseReader(
        path,
        file_format=file_format or format_of(path),
        fields=fields or {},
        on_error=on_error,
        encoding=encoding,
    )
