"""Files and folders that only their owner may read: they hold questions, answers and documents."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ragaliq.errors import DatasetError


@contextmanager
def file_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise an `OSError` of the block as a `DatasetError` that names the file."""
    try:
        yield
    except OSError as error:
        raise DatasetError(f"{path}: {error.strerror or error}") from None


def lock(file: IO[bytes], error: Exception) -> None:
    """Lock an open file until it is closed, on systems with file locks.

    Raises:
        Exception: `error`, if another process holds the lock.
    """
    with suppress(ImportError, OSError):
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise error from None


def make_folder(path: Path) -> None:
    """Create a folder and its missing parents, readable by their owner only.

    Raises:
        OSError: A folder cannot be created.
    """
    # `parents=True` would give the parents the default permissions.
    for folder in (*reversed(path.parents), path):
        folder.mkdir(mode=0o700, exist_ok=True)


def replace_file(path: str | os.PathLike[str], content: str) -> int:
    """Write a temporary file and move it to its place: a reader never sees half of it.

    A new file gets mode 0600; an existing one keeps its own, and a link its target's place.
    Half surrogate pairs, which cannot be written, are replaced.

    Returns:
        Number of bytes.

    Raises:
        DatasetError: The file cannot be written.
    """
    target, encoded = Path(os.path.realpath(path)), content.encode("utf-8", "replace")
    part = target.with_name(f".{target.name}.part")
    with file_errors(target):
        make_folder(target.parent)
        try:
            with open(part, "wb", opener=owner_only) as file:
                file.write(encoded)
            with suppress(FileNotFoundError):
                part.chmod(stat.S_IMODE(target.stat().st_mode))
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    return len(encoded)


def owner_only(path: str | os.PathLike[str], flags: int) -> int:
    """`opener` for `open`: a new file gets mode 0600, an existing one keeps its own."""
    return os.open(path, flags, 0o600)
