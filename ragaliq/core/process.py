"""Hooks for the end of a process and for forked children."""

from __future__ import annotations

import atexit
import os
import weakref
from contextlib import suppress

# Registered exit hooks run in reverse order. The executors that connecting needs (getaddrinfo runs
# in one) close in a hook of their own, made on this import: importing it first lets ours run
# before theirs.
import concurrent.futures.thread  # noqa: F401  # isort: skip
from collections.abc import Callable
from typing import Protocol

from ragaliq._private import register_before_threads_end


class Restarting(Protocol):
    """An object that a forked child must not share with its parent."""

    def restart_after_fork(self) -> None:
        """Start from scratch: this is a forked child."""


class Living(Restarting, Protocol):
    """An object that must know when its process ends or forks."""

    def flush_at_exit(self) -> None:
        """React to the end of the main thread; other threads may still run."""

    def close_at_exit(self) -> None:
        """React to the end of the interpreter."""

    def give_up_at_exit(self) -> None:
        """React to the end of the interpreter when the user will not wait."""


# Keep the registered objects when the module is loaded again, as in a notebook.
_LIVING: weakref.WeakSet[Living] = globals().get("_LIVING") or weakref.WeakSet()
_RESTARTING: weakref.WeakSet[Restarting] = globals().get("_RESTARTING") or weakref.WeakSet()
_IS_HOOKED = "_flush_all" in globals()


def watch_forks(restarting: Restarting) -> None:
    """Call `restart_after_fork` in forked children, for as long as the object lives."""
    _RESTARTING.add(restarting)


def watch_process(living: Living) -> None:
    """Call `living`'s hooks at exit and in forked children, for as long as it lives."""
    _LIVING.add(living)
    watch_forks(living)


def _flush_all() -> None:
    # The main thread has ended, but others and executors may still be at work and end runs, so
    # nothing is closed yet. Registered last, the close comes before other libraries' exit hooks,
    # such as the one that shuts an exporter down.
    atexit.register(_close_all)
    _unless_interrupted(lambda living: living.flush_at_exit())


def _close_all() -> None:
    _unless_interrupted(lambda living: living.close_at_exit())


def _unless_interrupted(end: Callable[[Living], None]) -> None:
    watched = list(_LIVING)
    try:
        for living in watched:
            end(living)
    except (KeyboardInterrupt, RuntimeError):
        # Ctrl-C at this point means: end now. If it were passed on, Python would print it and run
        # the next hook, which would wait again. Inside Python's own locks it becomes a RuntimeError
        # about a lock that is not held.
        for living in watched:
            with suppress(KeyboardInterrupt, RuntimeError):
                living.give_up_at_exit()


def _after_fork() -> None:
    for restarting in list(_RESTARTING):
        restarting.restart_after_fork()


if not _IS_HOOKED:
    # atexit runs after the executors are closed, too late for an asynchronous judge client.
    if not register_before_threads_end(_flush_all):
        atexit.register(_close_all)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)
