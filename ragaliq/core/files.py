"""Files and folders that only their owner may read: they hold questions, answers and documents."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ragaliq.errors import DatasetError


@contextmanager
def file_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Inside, what the system says of a file is raised as a `DatasetError` that names it."""
    try:
        yield
    except OSError as error:
        raise DatasetError(f"{path}: {error.strerror or error}") from None


def lock(file: IO[bytes], error: Exception) -> None:
    """Hold an open file until it is closed, where the system knows locks.

    Raises:
        Exception: The one given: another process holds it.
    """
    with suppress(ImportError, OSError):
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise error from None


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
