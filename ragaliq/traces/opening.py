"""Door of `ragaliq.datasets.read_cases`, which imports this module by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ragaliq.core.passages import TextFetcher
from ragaliq.datasets.cases import OnError
from ragaliq.datasets.opening import is_backend
from ragaliq.traces.backends import BackendReader
from ragaliq.traces.mapping import read_mapping
from ragaliq.traces.reader import TraceReader


def reader_of_traces(
    source: str | Path,
    *,
    fields: Mapping[str, str],
    on_error: OnError,
    mapping: str | Path | None,
    resolve: TextFetcher | None,
) -> TraceReader:
    """Reader of a file of traces, or of a product's project.

    Args:
        source: The file, or the address of the project.
        fields: See `read_cases`, as are the others.
        on_error: For files.
        mapping: Mapping of the application's own spans, see `read_mapping`.
        resolve: Gives texts by their ids.

    Raises:
        ConfigurationError: An argument is wrong.
    """
    rules = () if mapping is None else read_mapping(Path(mapping))
    if is_backend(source):
        return BackendReader(str(source), fields=fields, mapping=rules, resolve=resolve)
    return TraceReader(
        Path(source), fields=fields, on_error=on_error, mapping=rules, resolve=resolve
    )
