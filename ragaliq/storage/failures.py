"""What can be wrong with a store's file, in words for people and kinds for counting."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ragaliq.errors import DatasetError, StoreError

__all__ = ["store_error", "words_for"]


class _Failure(NamedTuple):
    kind: str
    words: str


_FAILURES = {
    "SQLITE_FULL": _Failure("disk_full", "the disk is full"),
    "SQLITE_BUSY": _Failure("locked", "another process holds the file"),
    "SQLITE_LOCKED": _Failure("locked", "another process holds the file"),
    "SQLITE_READONLY": _Failure("read_only", "the file may not be written"),
    "SQLITE_PERM": _Failure("read_only", "the file may not be written"),
    "SQLITE_CANTOPEN": _Failure("cannot_open", "the file cannot be opened"),
    "SQLITE_CORRUPT": _Failure("corrupt", "the file is damaged; move it away"),
    "SQLITE_NOTADB": _Failure("corrupt", "the file is no database; name another one"),
    "SQLITE_IOERR": _Failure("io_error", "the file could not be read or written"),
}


_PERMANENT = {"corrupt", "not_a_store", "read_only"}


def store_error(error: Exception, path: Path) -> StoreError:
    """The failure in words; names the file and nothing that is in it."""
    if isinstance(error, StoreError):
        return error
    kind, words = _failure(error)
    return StoreError(f"{path}: {words}", kind=kind, permanent=kind in _PERMANENT)


def words_for(error: Exception) -> str:
    """What is wrong, in words."""
    return _failure(error).words


def _failure(error: Exception) -> _Failure:
    if isinstance(error, DatasetError):
        return _Failure("not_a_store", str(error))
    if isinstance(error, OSError):
        why = error.strerror or type(error).__name__
        return _Failure("cannot_open", f"the file cannot be made: {why}")
    name = str(getattr(error, "sqlite_errorname", ""))
    # Extended codes add a part to the name, such as SQLITE_READONLY_DIRECTORY.
    known = _FAILURES.get("_".join(name.split("_")[:2]))
    return known or _Failure("sqlite_error", f"SQLite failed ({name or type(error).__name__})")
