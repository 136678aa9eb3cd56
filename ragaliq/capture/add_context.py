"""Context that the application adds inside a run of any adapter."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from ragaliq.capture.run import RunLog
from ragaliq.capture.texts import Reader
from ragaliq.core.log_once import LogOnce

_LOG_ONCE = LogOnce(logging.getLogger("ragaliq"))


FindRuns = Callable[[], Iterable[tuple[RunLog, Reader]]]
"""Finds the followed runs that the code of this task or thread is in, with what reads their
framework's objects; never raises."""

_FINDERS: list[FindRuns] = []


def find_current_runs(finder: FindRuns) -> None:
    """Register a function that finds the current runs of a framework's handlers."""
    _FINDERS.append(finder)


def add_context(*documents: Any, replace: bool = False) -> None:
    """Add context to the current run; see `Monitor.add_context`."""
    held = [each for given in documents for each in (given if type(given) is list else [given])]
    for log, reader in [run for finder in _FINDERS for run in finder()]:
        if replace:
            log.passages, log.replaces = [], True
        for each in held:
            passages = reader.listed([each])
            if passages is None:  # the run is worth more than one document
                kind = type(each).__name__
                _LOG_ONCE.message(kind, f"add_context: a {kind} is ignored; give its text")
            else:
                log.passages = [*(log.passages or ()), *passages]
