"""One writer at a time for a file, until it is closed or its process has ended, however it ends."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from ragaliq.errors import DatasetError

__all__ = ["lock"]


def lock(file: BinaryIO, path: Path) -> None:
    """Hold the file as long as it is open.

    Where the system or the file system knows no locks, nothing is held.

    Args:
        file: Open for writing.
        path: Its name, for the error.

    Raises:
        DatasetError: Another process holds it.
    """
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DatasetError(
            f"{path}: another run is writing to it; wait for its end, or write to another file"
        ) from None
    except OSError:
        return
