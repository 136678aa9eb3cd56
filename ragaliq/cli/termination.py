"""SIGTERM, with which systems end what they run: the work stops as it does on Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from ragaliq.cli.exit_codes import ExitCode

__all__ = ["heeding_sigterm"]


@contextmanager
def heeding_sigterm() -> Iterator[None]:
    """Inside, within a task, SIGTERM cancels the task.

    Raises:
        typer.Exit: SIGTERM came.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    told = False

    def stop() -> None:
        nonlocal told
        told = True
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
        if told:
            raise typer.Exit(ExitCode.TERMINATED) from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
