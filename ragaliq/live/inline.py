"""Inline mode: a run's result is there when the call that made its answer returns."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from contextvars import ContextVar

from ragaliq.errors import RagaliqError
from ragaliq.live.job import Submission
from ragaliq.live.receipt import Receipt

__all__ = ["InlineMode"]

_KEPT = 1000
_KEPT_BYTES = 64 * 2**20


class InlineMode:
    """Has whoever ends a run wait for its result, and remembers results by run.

    Args:
        timeout: Seconds to wait; after that the answer goes out and the run is scored in the
            background, as it would be anyway.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        # Re-entrant: a stream that is dropped may end its run from the garbage collector.
        self._lock = threading.RLock()
        self._receipts: OrderedDict[str, tuple[Receipt, int]] = OrderedDict()
        self._size = 0
        # What a request looks for is its own run: tasks and threads have a context each.
        self._latest: ContextVar[str | None] = ContextVar("ragaliq_latest_run", default=None)

    @property
    def timeout(self) -> float:
        """Seconds to wait for a result."""
        return self._timeout

    def began(self, run_id: str) -> None:
        """A run has begun in this context; LangChain may end it in another one."""
        self._latest.set(run_id)

    def expect(self, submission: Submission) -> None:
        """Have the result of a run kept; the oldest of many, or of large ones, are forgotten."""
        receipt, size = Receipt(), submission.size  # the result will hold the texts
        submission.receipt = receipt
        with self._lock:
            _, before = self._receipts.pop(submission.run_id, (None, 0))
            self._receipts[submission.run_id] = receipt, size
            self._size += size - before
            while len(self._receipts) > _KEPT or (
                self._size > _KEPT_BYTES and len(self._receipts) > 1
            ):
                self._size -= self._receipts.popitem(last=False)[1][1]

    def wait(self, submission: Submission) -> None:
        """Wait for a run's result, unless an event loop runs in this thread; does not raise.

        A loop must not be blocked: the judge may even need it. There the result is awaited with
        `Monitor.result`.
        """
        if submission.receipt is None or asyncio._get_running_loop() is not None:
            return
        try:
            submission.receipt.wait(self._timeout)
        except RagaliqError:
            # Too late or not to be had: counted already, or about to be.
            return

    def find(self, run_id: str | None) -> Receipt | None:
        """The receipt of a run, by default of the latest one in this context."""
        run_id = self._latest.get() if run_id is None else run_id
        with self._lock:
            kept = None if run_id is None else self._receipts.get(run_id)
        return None if kept is None else kept[0]

    def after_fork(self) -> InlineMode:
        """A new one for a forked child, where nobody will deliver the parent's results."""
        return InlineMode(self._timeout)
