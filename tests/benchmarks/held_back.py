"""Monitors whose judge answers only when it is let, so that no judging is in what is measured."""

import asyncio
import threading

from ragaliq import Monitor
from ragaliq.testing import ScriptedJudge


class HeldJudge(ScriptedJudge):
    """Answers only while it is let."""

    def __init__(self):
        super().__init__()
        self.let = threading.Event()

    async def _called(self, method, **arguments):
        if not self.let.is_set():
            await asyncio.to_thread(self.let.wait)


class HeldBack:
    """A monitor that judges nothing until it is told to, and has room for all that waits."""

    def __init__(self, rate):
        self.outcome = "evaluated" if rate == 1.0 else "sampled_out"
        self.judge = HeldJudge()
        self.monitor = Monitor(
            judge=self.judge, sample_rate=rate, concurrency=1, max_queue=1_000_000
        )

    def catch_up(self):
        self.judge.let.set()
        assert self.monitor.flush(60)
        self.judge.let.clear()

    def end(self, runs):
        """Let it judge what is left, and check that it counted all these runs."""
        self.catch_up()
        assert self.monitor.stats().outcomes == ({self.outcome: runs} if runs else {})
        self.monitor.close(5)
