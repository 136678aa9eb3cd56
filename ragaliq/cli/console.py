"""Terminal output: results on standard output, all else on standard error; and exit codes.

Application text is untrusted here too: control characters could rewrite the screen, and rich's
markup could disguise text.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from enum import IntEnum
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text
from typer.core import TyperArgument, TyperCommand, TyperGroup

from ragaliq.core.printable import printable
from ragaliq.core.results import JudgeUsage
from ragaliq.errors import (
    BudgetExceeded,
    ConfigurationError,
    DatasetError,
    RagaliqError,
    StoreError,
)
from ragaliq.reports.wording import cost_of
from ragaliq.telemetry import configure_from_environment


class _Console(Console):
    """Prints texts as they are; nothing once its reader has gone, so that files are still written.

    Texts are made safe (`escape_for_terminal`); those in tables are not.
    """

    def print(self, *objects: Any, **options: Any) -> None:
        shown = (escape_for_terminal(each) if isinstance(each, str) else each for each in objects)
        try:
            super().print(*shown, **options)
        except BrokenPipeError:  # as older versions of rich pass on
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Ignore a broken pipe; newer versions of rich would exit with code 1."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


output = _Console(highlight=False, soft_wrap=True)
errors = _Console(stderr=True, highlight=False, soft_wrap=True)


def escape_for_terminal(text: str, *, limit: int | None = None, style: str = "") -> Text:
    """Text of any origin made safe to print: one line, no control characters, no markup."""
    return Text(printable(text, limit=limit), style=style)


_VALUES = {int: "INTEGER", float: "NUMBER", str: "TEXT", Path: "PATH", datetime: "DATE"}


INPUT, JUDGE, SCORES, RESULTS, LIMITS = (
    "Input options",
    "Judge options",
    "Score options",
    "Result options",
    "Limits",
)
"""Titles of groups of options."""
_TITLES = ("Arguments", "Options", INPUT, JUDGE, SCORES, RESULTS, LIMITS)


class _Described:
    """A command or group with readable option types in its help, instead of Python's.

    Arguments have a name only; newer versions of typer add a Python type, also to options.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        """Parameters with readable types."""
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # the command's
        hints = get_type_hints(self.callback)  # type: ignore[attr-defined]
        for each in found:
            if isinstance(each, TyperArgument):
                vars(each)["display_type_rich"] = lambda ctx: None  # noqa: ARG005 - typer's
            elif each.metavar is None:
                hint = hints.get(each.name)
                kinds = [
                    kind for part in (hint, *get_args(hint)) for kind in (part, *get_args(part))
                ]
                each.metavar = next((_VALUES[kind] for kind in kinds if kind in _VALUES), None)
        return found

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options under the title of their group."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for each in self.get_params(ctx):
            if (shown := each.get_help_record(ctx)) is not None:
                usual = "Arguments" if isinstance(each, TyperArgument) else "Options"
                groups.setdefault(getattr(each, "rich_help_panel", None) or usual, []).append(shown)
        for title in sorted(groups, key=_TITLES.index):
            with formatter.section(title):
                formatter.write_dl(groups[title])
        if isinstance(self, TyperGroup):
            self.format_commands(ctx, formatter)


class Command(_Described, TyperCommand):
    """A command of `ragaliq`."""


class Group(_Described, TyperGroup):
    """A group of commands that has options of its own."""


class ExitCode(IntEnum):
    """Exit codes of `ragaliq`."""

    OK = 0
    BELOW_THRESHOLD = 1  # --fail-under was not reached; `worker health`: no worker answers
    USAGE = 2  # an option or a setting is wrong
    DATA = 3  # a file or sink cannot be read or written, or does not hold what is needed
    JUDGE = 4  # some metric could not be judged for any case at all, or no broker is there
    BUDGET = 5  # --max-cost was reached
    INTERRUPTED = 130  # Ctrl-C; what was judged is kept
    TERMINATED = 143  # SIGTERM; likewise


def code_of(error: RagaliqError) -> ExitCode:
    """Exit code for an error."""
    if isinstance(error, ConfigurationError):
        return ExitCode.USAGE
    if isinstance(error, DatasetError | StoreError):
        return ExitCode.DATA
    if isinstance(error, BudgetExceeded):
        return ExitCode.BUDGET
    return ExitCode.JUDGE


class _OneLine(logging.Handler):
    """Prints the first failure of an export as a line; the SDK logs one for each attempt."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._has_printed = False

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record, if it is the first."""
        if not self._has_printed:
            self._has_printed = True
            errors.print(
                escape_for_terminal(
                    "telemetry of this run is lost, in part at least: is a collector running at "
                    f"OTEL_EXPORTER_OTLP_ENDPOINT? ({record.getMessage()})",
                    limit=300,
                )
            )


def exports_telemetry() -> bool:
    """Set up telemetry if the environment asks for it; return whether it is exported."""
    try:
        is_exported = configure_from_environment("ragaliq")
    except ConfigurationError as error:  # the exporter is not installed
        errors.print(escape_for_terminal(f"no telemetry is exported: {error}"))
        return False
    sdk = logging.getLogger("opentelemetry")
    if is_exported and not sdk.handlers:
        sdk.addHandler(_OneLine())
        sdk.propagate = False
    return is_exported


_LINE_EVERY = 10.0  # seconds


@contextmanager
def progress(total: int, done: int) -> Iterator[Callable[[JudgeUsage], None]]:
    """Show progress; yield a function to call with the usage of each evaluation."""
    started = shown = time.monotonic()
    now, usage = done, JudgeUsage()
    bar = Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(),
        console=errors,
        disable=not errors.is_terminal,
    )
    task = bar.add_task("", total=total, completed=done, figures="")

    def judged(more: JudgeUsage) -> None:
        nonlocal now, usage, shown
        now, usage = now + 1, usage + more
        elapsed = max(time.monotonic() - started, 1e-9)
        figures = f"{(now - done) / elapsed:,.1f}/s, {cost_of(usage)}"
        bar.update(task, completed=now, figures=figures)
        if not errors.is_terminal and time.monotonic() - shown >= _LINE_EVERY:
            shown = time.monotonic()
            left = timedelta(seconds=round(elapsed / (now - done) * (total - now)))
            errors.print(f"{now:,} of {total:,}, {figures}, {left} left")

    with bar:
        yield judged


def say_what_is_left(judged: int, total: int, kept_in: Path | None, *, option: str) -> None:
    """Print the progress of an interrupted run; `option` continues it, if there is a file."""
    line = f"{total - judged:,} of {total:,} are not done; "
    if kept_in is None:
        line += f"nothing is kept: with {option} a further run could continue"
    else:
        line += f"results are kept in {kept_in}: rerun with {option} to continue"
    errors.print(escape_for_terminal(line))


@contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """Make SIGTERM cancel the current task and end in `typer.Exit`."""
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
        # Windows lacks these signals, and only the main thread receives them.
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
