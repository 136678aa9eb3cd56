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


class Forking(Restarting, Protocol):
    """An object that must be still while its process forks."""

    def before_fork(self) -> None:
        """Let nothing happen until the fork is done."""

    def after_fork_in_parent(self) -> None:
        """Go on."""


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
_FORKING: weakref.WeakSet[Forking] = globals().get("_FORKING") or weakref.WeakSet()
_RESTARTING: weakref.WeakSet[Restarting] = globals().get("_RESTARTING") or weakref.WeakSet()
_IS_HOOKED = "_flush_all" in globals()


def watch_forks(restarting: Restarting) -> None:
    """Call `restart_after_fork` in forked children, for as long as the object lives."""
    _RESTARTING.add(restarting)


def watch_both_sides(forking: Forking) -> None:
    """Call all three methods around forks, for as long as the object lives."""
    _FORKING.add(forking)


def watch_process(living: Living) -> None:
    """Call `living`'s hooks at exit and in forked children, for as long as it lives."""
    _LIVING.add(living)
    watch_forks(living)


def close_last(close: Callable[[], object]) -> None:
    """Call `close` at exit, once every living object and the application's exit hooks are done."""
    atexit.register(close)


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


def _before_fork() -> None:
    for forking in list(_FORKING):
        forking.before_fork()


def _after_fork_in_parent() -> None:
    for forking in list(_FORKING):
        forking.after_fork_in_parent()


def _after_fork() -> None:
    # Listed at once: what a restart makes in the child is none of the parent's.
    for restarting in [*_FORKING, *_RESTARTING]:
        restarting.restart_after_fork()


if not _IS_HOOKED:
    # atexit runs after the executors are closed, too late for an asynchronous judge client.
    if not register_before_threads_end(_flush_all):
        atexit.register(_close_all)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=_before_fork,
            after_in_parent=_after_fork_in_parent,
            after_in_child=_after_fork,
        )
