"""Which executor a monitor gets: the one asked for, or the one that suits its judge."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import PurePath
from typing import cast, get_args

from ragaliq.core.evaluator import Evaluator
from ragaliq.errors import ConfigurationError
from ragaliq.execution.plan import obstacle
from ragaliq.execution.process import ProcessScorer
from ragaliq.execution.seam import CaseScorer, Executor, ThreadScorer
from ragaliq.judges.base import LLMJudge

__all__ = ["EXECUTORS", "Executor", "choose_scorer"]

EXECUTORS: tuple[str, ...] = get_args(Executor)

_LOWEST_PRIORITY = 19


def choose_scorer(
    asked: str | None, *, judge: LLMJudge, evaluators: Sequence[Evaluator], niceness: int
) -> CaseScorer:
    """The scorer for a monitor.

    Args:
        asked: `thread`, `process`, or None for the process where it is of use and possible.
        judge: Who decides.
        evaluators: What is measured.
        niceness: How far the process steps back, 0 to 19.

    Raises:
        ConfigurationError: No such executor, or the process is asked for and not possible.
    """
    if not 0 <= niceness <= _LOWEST_PRIORITY:
        raise ConfigurationError(
            f"Monitor: niceness must be within 0 and {_LOWEST_PRIORITY}, got {niceness}"
        )
    if asked is not None and asked not in EXECUTORS:
        raise ConfigurationError(
            f"no executor {asked!r}; use 'thread' or 'process' (Monitor, or RAGALIQ_EXECUTOR); "
            "for workers elsewhere, Monitor(executor=CeleryExecutor('redis://...'))"
        )
    chosen = cast("Executor | None", asked)
    hindrance = _no_interpreter() or obstacle(judge, evaluators)
    if chosen == "process" and hindrance:
        raise ConfigurationError(
            f"executor='process' is not possible here: {hindrance}; "
            "use executor='thread' (Monitor, or RAGALIQ_EXECUTOR)"
        )
    if chosen == "thread" or hindrance:
        return ThreadScorer(judge)
    return ProcessScorer(evaluators, judge, niceness=niceness)


def _no_interpreter() -> str | None:
    if sys.platform == "win32":
        return "it needs a POSIX system"
    # Inside uWSGI or a frozen application that is the server or the application itself, and
    # starting it would start a second one.
    name = PurePath(sys.executable or "").name.lower()
    if getattr(sys, "frozen", False) or not ("python" in name or "pypy" in name):
        return "sys.executable is not a Python interpreter"
    return None
