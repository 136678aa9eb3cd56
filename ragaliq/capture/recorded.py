"""Runs that are captured for a caller and not submitted."""

from __future__ import annotations

from dataclasses import dataclass

from ragaliq.capture.run import RunLog
from ragaliq.core.run import SpanTarget


@dataclass(slots=True)
class RecordedRun:
    """Captured run that is kept for a caller, such as a guard, instead of being enqueued.

    Adapters use it like a monitor's `RunHandle`, and end it by `submit`, `discard` or `withdraw`.

    Attributes:
        run_id: The run's id as text.
        log: Its log, once it has ended without an error.
        target: The span to link its evaluation to.
        session_id: The conversation, when the application names it.
        reason: Reason why there is no log; empty while the run is open.
    """

    run_id: str
    log: RunLog | None = None
    target: SpanTarget | None = None
    session_id: str | None = None
    reason: str = ""

    def submit(
        self,
        log: RunLog,
        *,
        target: SpanTarget | None = None,
        session_id: str | None = None,
        response_id: str | None = None,  # noqa: ARG002 - as a monitor's runs take it
        model: str | None = None,  # noqa: ARG002
    ) -> bool:
        """Keep the log of a run that ended well."""
        self.log, self.target, self.session_id = log, target, session_id
        return True

    def discard(self, reason: str) -> None:
        """Keep the reason why there is no log."""
        self.reason = reason

    def withdraw(self) -> None:
        """Withdraw the run: an inner guard has checked its answer."""
        self.reason = "withdrawn"
