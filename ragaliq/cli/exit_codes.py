"""What the process ends with; scripts and CI may rely on these numbers."""

from __future__ import annotations

from enum import IntEnum

from ragaliq.errors import (
    BudgetExceeded,
    ConfigurationError,
    DatasetError,
    RagaliqError,
    StoreError,
)

__all__ = ["ExitCode", "code_of"]


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
