"""Progress on standard error: a bar in a terminal, now and then a line elsewhere."""

from __future__ import annotations

import time
from datetime import timedelta
from types import TracebackType
from typing import Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from ragaliq.cli.console import errors
from ragaliq.core.results import JudgeUsage

__all__ = ["RunProgress"]

_LINE_EVERY = 10.0  # seconds


class RunProgress:
    """Shows how far a run is, how fast, what it has cost and how long it will take.

    Args:
        total: Judgings in all.
        done: Those that were there before.
    """

    def __init__(self, total: int, done: int) -> None:
        self._total, self._done, self._before = total, done, done
        self._started = self._said = time.monotonic()
        self._usage = JudgeUsage()
        self._bar = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}/s"),
            TextColumn("{task.fields[cost]}"),
            TimeRemainingColumn(),
            console=errors,
            disable=not errors.is_terminal,
        )
        self._task: TaskID = self._bar.add_task("", total=total, completed=done, rate="", cost="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def judged(self, usage: JudgeUsage) -> None:
        """One more is done, at this cost."""
        self._done += 1
        self._usage += usage
        self._bar.update(self._task, completed=self._done, rate=self._rate, cost=self._cost)
        if not errors.is_terminal and time.monotonic() - self._said >= _LINE_EVERY:
            self._said = time.monotonic()
            errors.print(
                f"{self._done:,} of {self._total:,}, {self._rate}/s, {self._cost}, "
                f"{self._left} left"
            )

    @property
    def _rate(self) -> str:
        elapsed = max(time.monotonic() - self._started, 1e-9)
        return f"{(self._done - self._before) / elapsed:,.1f}"

    @property
    def _left(self) -> str:
        elapsed = time.monotonic() - self._started
        seconds = elapsed / (self._done - self._before) * (self._total - self._done)
        return str(timedelta(seconds=round(seconds)))

    @property
    def _cost(self) -> str:
        cost = self._usage.cost_usd
        return "cost unknown" if cost is None else f"${cost:,.4f}"
