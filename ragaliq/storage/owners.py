"""Who of several processes is still there: each holds the lock of a small file beside the store.

The system gives a lock back however its holder ends, so that a killed process is known to be gone
at once, and not only when some time has passed. Where the system knows no such locks (Windows),
every other holder counts as gone: one process at a time should use a store there.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

__all__ = ["Lock", "Owner", "lock_folder", "try_lock"]


class Lock:
    """A locked file; given back by `release`, with the last reference, or with the process.

    A forked child has none of its parent's: kept there, it would outlive the parent.

    Args:
        descriptor: Of the file.
    """

    def __init__(self, descriptor: int) -> None:
        self._close = weakref.finalize(self, os.close, descriptor)
        self._close.atexit = False
        _LIVING.add(self)

    @property
    def is_held(self) -> bool:
        """Whether it is still there."""
        return self._close.alive

    def release(self) -> None:
        """Give it back."""
        self._close()


_LIVING: weakref.WeakSet[Lock] = weakref.WeakSet()


class Owner:
    """One holder of work in a store, under a name that is never used twice.

    Args:
        store: The store's file; the locks are in a folder beside it.
    """

    def __init__(self, store: Path) -> None:
        self._folder = lock_folder(store)
        self._lock: Lock | None = None
        self._name = ""

    @property
    def name(self) -> str:
        """Its name in this process; a forked child gets one of its own.

        Raises:
            OSError: The file cannot be made.
        """
        if self._lock is None or not self._lock.is_held:
            self._name = uuid4().hex
            self._lock = try_lock(self._folder / self._name)
        return self._name

    def gone(self, names: Iterable[str]) -> list[str]:
        """Those of other owners whose process has ended, or who were closed."""
        return [name for name in names if name != self.name and _is_gone(self._folder / name)]

    def close(self) -> None:
        """Be gone; the next use of the name makes a new one."""
        lock, self._lock = self._lock, None
        if lock is not None and lock.is_held:
            with suppress(OSError):
                (self._folder / self._name).unlink()
            lock.release()


def lock_folder(store: Path) -> Path:
    """Where the locks of a store are."""
    return store.with_name(f"{store.name}.locks")


def try_lock(path: Path) -> Lock | None:
    """Hold a file; None if somebody else does.

    Raises:
        OSError: It cannot be made.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except (ImportError, OSError):
        pass  # nothing is held where there are no locks
    return Lock(descriptor)


def _is_gone(path: Path) -> bool:
    if not path.exists():
        return True
    try:
        lock = try_lock(path)
    except OSError:
        return False
    if lock is None:
        return False
    with suppress(OSError):
        path.unlink()
    lock.release()
    return True


def _after_fork_in_child() -> None:
    for lock in list(_LIVING):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
