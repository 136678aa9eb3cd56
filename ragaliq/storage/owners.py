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

__all__ = ["Owner", "try_lock"]

_LIVING: weakref.WeakSet[Owner] = weakref.WeakSet()


class Owner:
    """One holder of work in a store, under a name that is never used twice.

    Args:
        store: The store's file; the locks are in a folder beside it.
    """

    def __init__(self, store: Path) -> None:
        self._folder = lock_folder(store)
        self._lock: weakref.finalize[[int], Owner] | None = None
        self._name = ""
        _LIVING.add(self)

    @property
    def name(self) -> str:
        """Its name in this process; a forked child gets one of its own.

        Raises:
            OSError: The file cannot be made.
        """
        if self._lock is None:
            self._name = uuid4().hex
            descriptor = try_lock(self._folder / self._name)
            if descriptor is None:
                raise OSError(f"{self._folder}: a new file is locked")
            # Without an owner the lock is given back, as it is when the process ends.
            self._lock = weakref.finalize(self, os.close, descriptor)
            self._lock.atexit = False
        return self._name

    def gone(self, names: Iterable[str]) -> list[str]:
        """Those of other owners whose process has ended, or who were closed."""
        return [name for name in names if name != self._name and _is_gone(self._folder / name)]

    def close(self) -> None:
        """Be gone; the next use of the name makes a new one."""
        if self._lock is not None:
            with suppress(OSError):
                (self._folder / self._name).unlink()
            self.forget()

    def forget(self) -> None:
        """In a forked child: the lock and the name stay the parent's."""
        lock, self._lock, self._name = self._lock, None, ""
        if lock is not None:
            lock()


def lock_folder(store: Path) -> Path:
    """Where the locks of a store are."""
    return store.with_name(f"{store.name}.locks")


def try_lock(path: Path) -> int | None:
    """A descriptor of the file, which is held until that is closed or the process ends.

    Returns:
        None if somebody else holds it.

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
    return descriptor


def _is_gone(path: Path) -> bool:
    if not path.exists():
        return True
    try:
        descriptor = try_lock(path)
    except OSError:
        return False
    if descriptor is None:
        return False
    with suppress(OSError):
        path.unlink()
    os.close(descriptor)
    return True


def _after_fork_in_child() -> None:
    for owner in list(_LIVING):
        owner.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
