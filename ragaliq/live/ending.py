"""The ends of a monitor: waiting for what is queued, closing, and starting anew after a fork."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from ragaliq.live.direct import DirectEvaluation
from ragaliq.live.stats import MonitorStats
from ragaliq.live.sweeps import Sweepable
from ragaliq.records.sinks import in_turn

if TYPE_CHECKING:
    from ragaliq.live.sampling import Sampler

__all__ = ["EndingMonitor"]

logger = logging.getLogger(__name__)

# Seconds a process may take to end without saying why: the embedded judge takes one to start.
_UNNOTICED = 2.0


class EndingMonitor(DirectEvaluation):
    """The part of a monitor that ends it."""

    _sampler: Sampler

    def close(self, timeout: float = 30.0) -> bool:
        """Evaluate what is queued, at most for `timeout` seconds, then stop for good.

        Runs left over are counted `shutdown`. Called from `on_result` it cannot wait: no more runs
        are accepted, and those in the queue are still evaluated.

        Returns:
            Whether everything was evaluated.
        """
        if self._engine.worker.is_current_thread:
            return self._stop_judging(0.0)  # the sinks are still needed for what is queued
        # A write to a disk has its chance even when the judge took all the time there was.
        return in_turn(timeout, self._stop_judging, self._sinks.close, at_least=0.25)

    def _stop_judging(self, timeout: float) -> bool:
        self._engine.sweeps.hand_over()
        self._sampler.close()
        return self._engine.close(timeout)

    def sweep_later(self, delay: float, sweepable: Sweepable) -> bool:
        """Sweep something on the worker's thread, in `delay` seconds or sooner; for adapters.

        Returns:
            False when it will not be done: the monitor is off or closed.
        """
        return self._enabled and self._engine.sweeps.add(delay, sweepable)

    def flush_at_exit(self) -> None:
        """Wait for what is queued; called when the main thread has ended."""
        unnoticed = min(self._exit_timeout, _UNNOTICED)
        if self.flush(unnoticed):
            return
        left = self._exit_timeout - unnoticed
        if left > 0:
            logger.warning(
                "the process waits for %d runs to be evaluated and %d results to be stored, %g s "
                "more at most; Ctrl-C ends it now",
                self._engine.worker.undone,
                sum(sink.pending for sink in self._sinks.stats().values()),
                left,
            )
        if left <= 0 or not self.flush(left):
            self.give_up_at_exit()

    def close_at_exit(self) -> None:
        """Close within `exit_timeout`; called when the interpreter ends."""
        self.close(self._exit_timeout)

    def give_up_at_exit(self) -> None:
        """Close without waiting, and say what is lost; called when the user will not wait."""
        before = self.stats()
        self.close(0.0)
        after = self.stats()
        runs = after.outcomes.get("shutdown", 0) - before.outcomes.get("shutdown", 0)
        records = _dropped(after) - _dropped(before)
        if runs or records:
            logger.warning(
                "lost at the end of the process: %d runs not evaluated (counted as shutdown), %d "
                "results not stored (counted as dropped)",
                runs,
                records,
            )

    def restart_after_fork(self) -> None:
        """Start anew in a forked child: the parent's queue, thread and counts are the parent's."""
        self._engine = self._engine.after_fork()
        self._sampler.restart()
        self._emitter.watch(self._engine.worker, self._engine.tally)

    def stats(self) -> MonitorStats:
        """What became of every run so far."""
        sampling = self._sampler.counts()
        return replace(self._engine.stats(), sampling=sampling, sinks=self._sinks.stats())


def _dropped(stats: MonitorStats) -> int:
    return sum(sink.dropped for sink in stats.sinks.values())
