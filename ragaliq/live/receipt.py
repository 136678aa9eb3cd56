"""Where somebody waits for the result of a run that the worker evaluates."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib

from ragaliq.core.results import Evaluation
from ragaliq.errors import BudgetExceeded, EvaluationTimeout, NotEvaluated

__all__ = ["Receipt"]


class Receipt:
    """The result of one run, once there is one.

    It may be waited for from any thread and any event loop; giving up waiting changes nothing for
    the run.
    """

    __slots__ = ("_future",)

    def __init__(self) -> None:
        # Either the result or the reason why there is none.
        self._future: concurrent.futures.Future[Evaluation | str] = concurrent.futures.Future()
        # A future that runs cannot be cancelled: whoever stops waiting does so for himself only.
        self._future.set_running_or_notify_cancel()

    def settle(self, outcome: Evaluation | str) -> None:
        """There is a result, or a reason why there is none; only the first call counts."""
        with contextlib.suppress(concurrent.futures.InvalidStateError):
            self._future.set_result(outcome)

    @property
    def result(self) -> Evaluation | None:
        """The result, if it is there."""
        outcome = self._future.result() if self._future.done() else None
        return None if isinstance(outcome, str) else outcome

    def wait(self, timeout: float) -> Evaluation:
        """Wait for the result, blocking this thread.

        Raises:
            EvaluationTimeout: It is not there within `timeout` seconds.
            NotEvaluated: There will be none.
            BudgetExceeded: A budget left no room for it.
        """
        if not concurrent.futures.wait([self._future], timeout).done:
            raise EvaluationTimeout("timeout")
        return _result(self._future.result())

    async def await_result(self, timeout: float) -> Evaluation:  # noqa: ASYNC109 - as in wait
        """`wait` without blocking the event loop."""
        waiting = asyncio.wrap_future(self._future)
        if not (await asyncio.wait([waiting], timeout=timeout))[0]:
            waiting.cancel()
            raise EvaluationTimeout("timeout")
        return _result(waiting.result())


def _result(outcome: Evaluation | str) -> Evaluation:
    if outcome == "over_budget":
        raise BudgetExceeded("the run was not evaluated: over_budget")
    if isinstance(outcome, str):
        raise NotEvaluated(outcome)
    return outcome
