"""Files and folders that only their owner may read: they hold questions, answers and documents."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ragaliq.errors import DatasetError


@contextmanager
def file_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Inside, what the system says of a file is raised as a `DatasetError` that names it."""
    try:
        yield
    except OSError as error:
        raise DatasetError(f"{path}: {error.strerror or error}") from None


def make_folder(path: Path) -> None:
    """Make a folder and the ones above it, where they are missing.

    Raises:
        OSError: One cannot be made.
    """
    # `parents=True` would give those above the usual permissions.
    for folder in (*reversed(path.parents), path):
        folder.mkdir(mode=0o700, exist_ok=True)


def owner_only(path: str | os.PathLike[str], flags: int) -> int:
    """An `opener` for `open`: a new file gets mode 0600, one that is there keeps its own."""
    return os.open(path, flags, 0o600)
