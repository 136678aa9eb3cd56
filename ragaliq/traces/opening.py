"""Door of `ragaliq.datasets.read_cases`, which imports this module by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ragaliq.core.passages import TextFetcher
from ragaliq.datasets.cases import OnError
from ragaliq.errors import ConfigurationError
from ragaliq.traces.backends import BackendReader
from ragaliq.traces.files import holds_traces
from ragaliq.traces.mapping import SpanRule, read_mapping
from ragaliq.traces.reader import TraceReader

__all__ = ["read_mapping", "reader_of_traces"]


def reader_of_traces(
    source: str | Path,
    *,
    is_product: bool,
    is_traces: bool | None,
    fields: Mapping[str, str],
    on_error: OnError,
    rules: Sequence[SpanRule],
    resolve: TextFetcher | None,
) -> TraceReader | None:
    """Reader of a file of traces or of a product's project; None for a file of other rows.

    Args:
        source: The file, or the address of the project.
        is_product: Whether it is an address.
        is_traces: Whether the file holds traces; None to look into it.
        fields: See `read_cases`, as are the others.
        on_error: For files.
        rules: Mapping of the application's own spans, see `read_mapping`.
        resolve: Gives texts by their ids.

    Raises:
        ConfigurationError: An argument is wrong, or is for traces and the file holds none.
    """
    if is_product:
        return BackendReader(str(source), fields=fields, mapping=rules, resolve=resolve)
    path = Path(source)
    if holds_traces(path) if is_traces is None else is_traces:
        return TraceReader(path, fields=fields, on_error=on_error, mapping=rules, resolve=resolve)
    if rules or resolve is not None:
        option = "a mapping" if rules else "resolve"
        raise ConfigurationError(f"{source}: {option} is for traces; there are no spans in it")
    return None
