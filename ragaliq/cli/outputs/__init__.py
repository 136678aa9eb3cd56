"""Forms in which results are handed on, made from the results file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ragaliq.cli.outputs.csv_table import write_csv
from ragaliq.cli.outputs.junit import write_junit
from ragaliq.cli.outputs.page import write_page
from ragaliq.cli.outputs.results import Results
from ragaliq.errors import ConfigurationError

__all__ = ["Results", "Writer", "writer_for"]

Writer = Callable[[Results, Path], None]

_WRITERS: dict[str, Writer] = {".csv": write_csv, ".html": write_page, ".xml": write_junit}


def writer_for(path: Path) -> Writer:
    """What writes a file of this name.

    Raises:
        ConfigurationError: Nothing does.
    """
    writer = _WRITERS.get(path.suffix.lower())
    if writer is None:
        known = ", ".join([".jsonl", *_WRITERS])
        raise ConfigurationError(f"--out {path}: end the name in one of {known}")
    return writer
