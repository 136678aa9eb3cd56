"""Open files of cases of every kind."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ragaliq.core.annexes import annex
from ragaliq.core.passages import TextFetcher, require_text_fetcher
from ragaliq.core.test_case import RAGTestCase
from ragaliq.datasets.cases import CaseReader, OnError, SkippedRow, require_known, require_new
from ragaliq.datasets.rows import is_place, reader_of
from ragaliq.datasets.trace_files import holds_traces
from ragaliq.errors import ConfigurationError, DatasetError, RowError


def is_backend(source: object) -> bool:
    """True for the address of a product's project, False for a file."""
    scheme, separator, _ = source.partition("://") if isinstance(source, str) else ("", "", "")
    return bool(separator) and scheme.partition("+")[0] in ("phoenix", "mlflow", "langfuse")


def read_cases(
    path: str | Path,
    *more: str | Path,
    fields: Mapping[str, str] | None = None,
    on_error: OnError = "raise",
    encoding: str | None = None,
    split_context: str | None = None,
    mapping: str | Path | None = None,
    resolve: TextFetcher | None = None,
) -> CaseReader:
    """Read cases from a JSON, JSONL, CSV, TSV or Parquet file, or from traces.

    Files may be gzipped. Traces (OTLP as JSON or protobuf, Phoenix's exports) are recognised by
    their content (`ragaliq.traces.TraceReader`). The address of a product's project (`phoenix://PROJECT`,
    `mlflow://EXPERIMENT`, `langfuse://`) gives its runs without a score of ragaliq's
    (`ProductRuns`).

    Fields are recognised by their names in RAGAS, DeepEval, LangSmith and ragaliq (`FIELDS`); other
    columns go into the case's metadata.

    Args:
        path: The file, or the address.
        *more: Further files, read after it. The ids of cases without their own then contain the
            name of the file.
        fields: Names in this file by a case's field, such as `{"query": "frage"}`; nested values
            with a dot, `inputs.frage`. In traces, an attribute of a run's first span.
        on_error: `raise` stops at the first bad row; `skip` skips and counts it.
        encoding: Encoding of a text file; by default UTF-8.
        split_context: Separator of the chunks in a plain-text cell, such as `|`; lists as JSON need
            none.
        mapping: A TOML file that describes your application's spans; for traces only.
        resolve: Returns a dictionary of the texts of documents that spans identify by id only; for
            traces only.

    Returns:
        An iterable of cases. JSONL, CSV and Parquet are read as they are iterated, in bounded
        memory, and so are traces, a request a line or in protobuf; other JSON as a whole.

    Raises:
        ConfigurationError: `fields`, `on_error`, `mapping` or `resolve` is wrong.
        DatasetError: The file is missing or of no known format; while iterating also for a bad
            row, with file, place and field, never its text, and at the end for a name in `fields`
            that no row has.
    """
    fields = fields or {}
    require_known(fields)
    if on_error not in ("raise", "skip"):
        raise ConfigurationError(f"on_error must be 'raise' or 'skip', got {on_error!r}")
    require_text_fetcher(resolve, "read_cases")
    if split_context == "":
        raise ConfigurationError("split_context (--split-context) must not be empty")
    backends = [each for each in (path, *more) if is_backend(each)]
    if backends and more:
        raise ConfigurationError(f"{backends[0]}: name it alone, without further sources")
    reader_of_traces = partial(
        _reader_of_traces, fields=fields, on_error=on_error, mapping=mapping, resolve=resolve
    )
    if backends:
        return reader_of_traces(path)
    for each in (path, *more):
        is_store = str(each).startswith("sqlite:")
        if is_store or Path(each).suffix == ".db":
            raise DatasetError(
                f"{each} is a store, not a file of cases: `ragaliq cases` makes cases of stored "
                "results, `ragaliq evaluate --pending` judges stored runs"
            )
    readers: list[CaseReader] = []
    paths = [Path(each) for each in (path, *more)]
    for place, each in enumerate(paths):
        if each in paths[:place]:
            raise DatasetError(f"{each} is named twice")
        if holds_traces(each):
            readers.append(reader_of_traces(each))
            continue
        reader_of(each)  # a file that cannot be read is refused at once
        if mapping is not None or resolve is not None:
            option = "a mapping" if mapping is not None else "resolve"
            raise ConfigurationError(f"{each}: {option} is for traces; there are no spans in it")
        readers.append(
            CaseReader(
                each,
                fields=fields,
                on_error=on_error,
                encoding=encoding,
                split_context=split_context,
            )
        )
    return _Several(readers) if more else readers[0]


def _reader_of_traces(source: str | Path, **options: Any) -> CaseReader:
    reader: CaseReader = annex("traces.opening").reader_of_traces(source, **options)
    return reader


class _Several(CaseReader):
    """Reader of the cases of several files, one after the other."""

    def __init__(self, readers: Sequence[CaseReader]) -> None:
        super().__init__(readers[0].path, fields={}, on_error="raise")
        self._readers = readers
        self.has_spans = all(reader.has_spans for reader in readers)

    def remarks(self) -> Iterator[str]:
        """Those of each file."""
        for reader in self._readers:
            yield from reader.remarks()

    def __iter__(self) -> Iterator[RAGTestCase]:
        self.skipped, self.skipped_rows, self.columns = 0, [], {}
        seen: dict[bytes, str] = {}
        names = Counter(reader.path.name for reader in self._readers)
        number = 0
        for reader in self._readers:
            file = reader.path.name if names[reader.path.name] == 1 else reader.path
            for case in reader:
                number += 1
                self.row = number
                name = f"{file} {case.id}" if is_place(case.id) else case.id
                try:
                    require_new(name, f"{reader.path}, row {reader.row}", seen)
                except RowError as error:
                    raise DatasetError(str(error)) from None
                yield case.model_copy(update={"id": name})
            self.skipped += reader.skipped
            self.skipped_rows += [
                SkippedRow(f"{file}, {row.where}", row.problem) for row in reader.skipped_rows
            ]
            self.columns |= reader.columns


def read_questions(
    path: str | Path, *, fields: Mapping[str, str] | None = None, encoding: str | None = None
) -> CaseReader:
    """Read questions, which are cases without answers, from a file as in `read_cases`.

    Args:
        path: The file.
        fields: See `read_cases`.
        encoding: See `read_cases`.

    Raises:
        ConfigurationError: `fields` is wrong.
        DatasetError: The file is missing or of no known format; while iterating also for a bad row.
    """
    require_known(fields or {})
    file = Path(path)
    reader_of(file)
    return CaseReader(
        file,
        fields=fields or {},
        on_error="raise",
        encoding=encoding,
        needed=("query",),
    )


def standard_input(folder: str) -> Path:
    """Save standard input to a file, since cases are read twice: counted, then evaluated.

    Its name gives the format: a list or an object is JSON, objects a line JSON Lines, and anything
    else a table.
    """
    with tempfile.NamedTemporaryFile(dir=folder, prefix="stdin-", delete=False) as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    path = Path(file.name)
    with path.open("rb") as kept:
        first = kept.readline(1 << 20).lstrip(b"\xef\xbb\xbf").strip()
        is_alone = not kept.read(1 << 16).strip()
    is_object = (
        first.startswith(b"{") and first.endswith(b"}") and not (is_alone and b"[{" in first)
    )
    ending = "jsonl" if is_object else "json" if first.startswith((b"{", b"[")) else "csv"
    return path.rename(path.with_name(f"stdin.{ending}"))
