"""Ends of a process: a last flush at exit, a fresh start after a fork."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from contextlib import suppress

# Registered exit hooks run in reverse order. The executors that connecting needs (getaddrinfo runs
# in one) close in a hook of their own, made on this import: importing it first lets ours run
# before theirs.
import concurrent.futures.thread  # noqa: F401  # isort: skip
from collections.abc import Callable
from typing import Protocol

__all__ = ["watch_process"]


class _Living(Protocol):
    def flush_at_exit(self) -> None: ...

    def close_at_exit(self) -> None: ...

    def give_up_at_exit(self) -> None: ...

    def restart_after_fork(self) -> None: ...


_WATCHED: weakref.WeakSet[_Living] = weakref.WeakSet()


def watch_process(living: _Living) -> None:
    """Call `living`'s hooks at exit and in forked children, for as long as it lives."""
    _WATCHED.add(living)


def _flush_all() -> None:
    # The main thread has ended, but others and executors may still be at work and end runs, so
    # nothing is closed yet. Registered last, the close comes before other libraries' exit hooks,
    # such as the one that shuts an exporter down.
    atexit.register(_close_all)
    _unless_interrupted(lambda living: living.flush_at_exit())


def _close_all() -> None:
    _unless_interrupted(lambda living: living.close_at_exit())


def _unless_interrupted(end: Callable[[_Living], None]) -> None:
    watched = list(_WATCHED)
    try:
        for living in watched:
            end(living)
    except KeyboardInterrupt:
        # Who presses Ctrl-C while the process ends wants it to end now. Let through, Python would
        # print it and go on to the next hook, which would wait anew.
        for living in watched:
            with suppress(KeyboardInterrupt):
                living.give_up_at_exit()


def _after_fork() -> None:
    for living in list(_WATCHED):
        living.restart_after_fork()


# atexit runs after the executors are closed, too late for an asynchronous judge client; the hook
# that threading offers is private, hence the fallback.
if hasattr(threading, "_register_atexit"):
    threading._register_atexit(_flush_all)
else:
    atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
