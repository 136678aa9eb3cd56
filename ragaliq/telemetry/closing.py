"""Ending the SDK within a time limit, also at exit."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable

__all__ = ["Closing"]


class Closing:
    """Calls `close` on a thread of its own, once, and waits for it no longer than it is told.

    An exporter in the middle of a request cannot be interrupted: a receiver that accepts and does
    not answer would hold the process for as long as the SDK likes. The thread exists beforehand,
    since none can be started when the interpreter ends.

    Args:
        close: Exports what is waiting and stops.
        exit_timeout: Seconds it may take at exit.
    """

    def __init__(self, close: Callable[[], None], *, exit_timeout: float) -> None:
        self._close = close
        self._exit_timeout = exit_timeout
        self._start()
        atexit.register(self._at_exit)
        if hasattr(os, "register_at_fork"):
            again = weakref.WeakMethod(self._start)
            os.register_at_fork(after_in_child=lambda: (start := again()) and start())

    def within(self, timeout: float) -> bool:
        """Close; False if `timeout` seconds were not enough, and it goes on."""
        self._asked.set()
        return self._closed.wait(timeout)

    def _at_exit(self) -> None:
        # Who asked before has waited as long as they wanted to.
        if not self._asked.is_set():
            self.within(self._exit_timeout)

    def _start(self) -> None:
        self._asked, self._closed = threading.Event(), threading.Event()
        threading.Thread(target=self._run, name="ragaliq-closing", daemon=True).start()

    def _run(self) -> None:
        self._asked.wait()
        try:
            self._close()
        finally:
            self._closed.set()
