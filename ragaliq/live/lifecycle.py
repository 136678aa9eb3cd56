"""Ends of a process: a last flush at exit, a fresh start after a fork."""

from __future__ import annotations

import atexit
import os
import threading
import weakref

# Registered exit hooks run in reverse order. The executors that connecting needs (getaddrinfo runs
# in one) close in a hook of their own, made on this import: importing it first lets ours run
# before theirs.
import concurrent.futures.thread  # noqa: F401  # isort: skip
from typing import Protocol

__all__ = ["watch_process"]


class _Living(Protocol):
    def close_at_exit(self) -> None: ...

    def restart_after_fork(self) -> None: ...


_WATCHED: weakref.WeakSet[_Living] = weakref.WeakSet()


def watch_process(living: _Living) -> None:
    """Call `living`'s hooks at exit and in forked children, for as long as it lives."""
    _WATCHED.add(living)


def _at_exit() -> None:
    for living in list(_WATCHED):
        living.close_at_exit()


def _after_fork() -> None:
    for living in list(_WATCHED):
        living.restart_after_fork()


# atexit runs after the executors are closed, too late for an asynchronous judge client; the hook
# that threading offers is private, hence the fallback.
getattr(threading, "_register_atexit", atexit.register)(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
