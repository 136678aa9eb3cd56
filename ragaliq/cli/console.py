"""The terminal: results on standard output, everything else on standard error; and how a run ends.

Text of applications is untrusted here too: control characters could rewrite what is on the screen,
and rich's markup could dress one thing up as another.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Self

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from ragaliq.core.printable import printable
from ragaliq.core.results import JudgeUsage
from ragaliq.errors import (
    BudgetExceeded,
    ConfigurationError,
    DatasetError,
    RagaliqError,
    StoreError,
)

__all__ = [
    "ExitCode",
    "RunProgress",
    "code_of",
    "errors",
    "output",
    "plain",
    "say_what_is_left",
    "stopped_by_sigterm",
]

output = Console(highlight=False, soft_wrap=True)
errors = Console(stderr=True, highlight=False, soft_wrap=True)


def plain(text: str, *, limit: int | None = None, style: str = "") -> Text:
    """Text as it may be printed: one line, no control characters, no markup.

    Args:
        text: Of any origin.
        limit: Characters to show; longer text ends in an ellipsis.
        style: A rich style.
    """
    return Text(printable(text, limit=limit), style=style)


class ExitCode(IntEnum):
    """Exit codes of `ragaliq`."""

    OK = 0
    BELOW_THRESHOLD = 1  # --fail-under was not reached; `worker health`: no worker answers
    USAGE = 2  # an option or a setting is wrong
    DATA = 3  # a file cannot be read or written, or does not hold what is needed
    JUDGE = 4  # some metric could not be judged for any case at all, or no broker is there
    BUDGET = 5  # --max-cost was reached
    INTERRUPTED = 130  # Ctrl-C; what was judged is kept
    TERMINATED = 143  # SIGTERM; likewise


def code_of(error: RagaliqError) -> ExitCode:
    """The exit code for an error."""
    if isinstance(error, ConfigurationError):
        return ExitCode.USAGE
    if isinstance(error, DatasetError | StoreError):
        return ExitCode.DATA
    if isinstance(error, BudgetExceeded):
        return ExitCode.BUDGET
    return ExitCode.JUDGE


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


def say_what_is_left(judged: int, total: int, kept_in: Path | None, *, option: str) -> None:
    """Say how far the work got.

    Args:
        judged: What was done, in earlier runs too.
        total: What there was to do.
        kept_in: The file that holds what was judged; None where none was asked for.
        option: The option with which a further run continues, or, without a file, would have.
    """
    left = f"{total - judged:,} of {total:,} are not done"
    if kept_in is None:
        errors.print(plain(f"{left}; nothing is kept: with {option} a further run could continue"))
    else:
        errors.print(
            plain(f"{left}; results are kept in {kept_in}: rerun with {option} to continue")
        )


@contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """Inside, within a task, SIGTERM cancels the task.

    Raises:
        typer.Exit: SIGTERM came.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    came = False

    def stop() -> None:
        nonlocal came
        came = True
        if task is not None:
            task.cancel()

    try:
        loop.add_signal_handler(signal.SIGTERM, stop)
    except (NotImplementedError, RuntimeError, ValueError):
        # Windows has no such signals, and threads other than the first get none.
        yield
        return
    try:
        yield
    except asyncio.CancelledError:
        if came:
            raise typer.Exit(ExitCode.TERMINATED) from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
