"""Every error ragaliq raises.

    RagaliqError
    ├── ConfigurationError     a setting, argument or environment variable is wrong
    ├── DatasetError           a file or row to evaluate cannot be read
    │   ├── RowError               one row is bad; the rows after it can be read
    │   └── MissingReferenceError  a case holds nothing that a metric could compare with
    ├── BudgetExceeded         a spend or rate limit stops the evaluation
    ├── SinkError              a sink did not store results (`ragaliq.records`)
    ├── StoreError             a file in which ragaliq keeps its state cannot be used
    ├── BrokerUnavailableError     the broker cannot be reached
    ├── JobRefusedError        a run can never be enqueued
    ├── MessageRefusedError    a message holds no job that this worker can do
    ├── NotEvaluated           a run that somebody waits for will have no result
    │   └── EvaluationTimeout  its result is not there in time
    ├── GuardRejected          a guard stopped an answer (`ragaliq.guards`)
    └── JudgeError             the judge gave nothing that can be scored
        ├── JudgeAPIError      the request failed: network, authentication, rate limit, server
        │   ├── CircuitOpenError   it was not sent: the judge kept failing and is left alone
        │   ├── JudgeBillingError  the account has no credit: not repeated, opens the breaker
        │   └── JudgeProcessError  the process that judges died
        ├── JudgeTimeoutError  no reply within the time limit
        │   └── RateLimitedError   our own rate limit left no turn within the time limit
        ├── JudgeRefusalError  the judge declined to answer
        ├── JudgeInputError    there is more text than the judge can compare
        ├── RedactionError     `redact_for_judge` raised, so that nothing was sent
        └── JudgeResponseError the reply is malformed, cut off or carries an unknown verdict

Messages say what was wrong, where and what to do. They never carry keys, nor the text of
questions, answers or contexts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # pytest loads its plugin, and with it this module, in every project
    from ragaliq.core.results import JudgeUsage

__all__ = [
    "BrokerUnavailableError",
    "BudgetExceeded",
    "CircuitOpenError",
    "ConfigurationError",
    "DatasetError",
    "EvaluationTimeout",
    "JobRefusedError",
    "JudgeAPIError",
    "JudgeBillingError",
    "JudgeError",
    "JudgeInputError",
    "JudgeProcessError",
    "JudgeRefusalError",
    "JudgeResponseError",
    "JudgeTimeoutError",
    "MessageRefusedError",
    "MissingReferenceError",
    "NotEvaluated",
    "RagaliqError",
    "RateLimitedError",
    "RedactionError",
    "RowError",
    "StoreError",
]


class RagaliqError(Exception):
    """Base of every error ragaliq raises on purpose."""


class ConfigurationError(RagaliqError):
    """A setting, argument or environment variable is wrong."""


class DatasetError(RagaliqError):
    """A file or row to evaluate cannot be read."""


class RowError(DatasetError):
    """One row is bad; the rows after it can still be read."""


class MissingReferenceError(DatasetError):
    """A case lacks the reference that a metric compares with, such as an expected answer."""


class BudgetExceeded(RagaliqError):
    """A spend or rate limit stops the evaluation before it is paid for."""


class StoreError(RagaliqError):
    """A file in which ragaliq keeps its state cannot be used.

    Args:
        message: What happened; names the file and nothing that is in it.
        kind: A word for counting, such as `disk_full`.
        permanent: Trying again cannot help.
    """

    def __init__(self, message: str, *, kind: str = "error", permanent: bool = False) -> None:
        super().__init__(message)
        self.kind, self.permanent = kind, permanent


class BrokerUnavailableError(RagaliqError):
    """The broker cannot be reached."""


class JobRefusedError(RagaliqError):
    """A job can never be enqueued.

    Args:
        reason: A word for counting, such as `too_large`.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"the job cannot be enqueued: {reason}")
        self.reason = reason


class MessageRefusedError(RagaliqError):
    """A message holds no job that this worker can do.

    Args:
        reason: Such as `version` or `malformed`.
        detail: More about it; never text from it.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason, self.detail = reason, detail


class NotEvaluated(RagaliqError):
    """A run that somebody waits for will have no result.

    Args:
        reason: Why, in the words in which `stats()` counts it, such as `queue_full`.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"the run was not evaluated: {reason}")
        self.reason = reason


class EvaluationTimeout(NotEvaluated):
    """The result is not there in time; the run is still scored and counted in the background."""


class JudgeError(RagaliqError):
    """The judge gave nothing that can be scored.

    Args:
        message: What happened and what to do; never the text that was judged.
        usage: Tokens and money the failed call cost all the same, when known.
    """

    def __init__(self, message: str = "", *, usage: JudgeUsage | None = None) -> None:
        super().__init__(message)
        self.usage = usage


class JudgeAPIError(JudgeError):
    """The request to the judge failed: network, authentication, rate limit, server error."""


class CircuitOpenError(JudgeAPIError):
    """The judge was not asked: it failed too often in a row and is left alone for a while."""


class JudgeBillingError(JudgeAPIError):
    """The account has no credit: the request is not repeated, and the breaker opens at once."""


class JudgeProcessError(JudgeAPIError):
    """The process in which the judge works died with the run; it is started again."""


class JudgeTimeoutError(JudgeError):
    """The judge did not reply within the time limit."""


class RateLimitedError(JudgeTimeoutError):
    """The judge was not asked: the rate limit set for it left no turn within the time limit."""


class JudgeRefusalError(JudgeError):
    """The judge declined to answer."""


class RedactionError(JudgeError):
    """`redact_for_judge` raised, so that nothing was sent to the judge."""


class JudgeInputError(JudgeError):
    """There is more text than can be compared; the status is `too_long`."""


class JudgeResponseError(JudgeError):
    """The judge's reply is malformed, cut off, or carries a verdict that does not exist."""
