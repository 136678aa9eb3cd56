"""How the judges of a cascade get on, as a metric."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ragaliq.judges.base import LLMJudge
from ragaliq.telemetry.metrics import MetricsRecorder

__all__ = ["AgreementWatch"]


logger = logging.getLogger(__name__)


class _Agreement(Protocol):
    @property
    def first(self) -> str: ...
    @property
    def second(self) -> str: ...
    @property
    def accepted_rate(self) -> float | None: ...
    @property
    def escalated_rate(self) -> float | None: ...


@runtime_checkable
class _Cascade(Protocol):
    def agreement(self) -> Sequence[_Agreement]: ...


class AgreementWatch:
    """Records the agreement of a judge that counts it; of any other, nothing.

    Args:
        judge: Who decides.
        metrics: Where it is recorded.
    """

    def __init__(self, judge: LLMJudge, metrics: MetricsRecorder) -> None:
        self._judge = judge if isinstance(judge, _Cascade) else None
        self._metrics = metrics
        self._recorded: Sequence[_Agreement] = ()

    def record(self) -> None:
        """Record what has changed since the last time; never raises."""
        if self._judge is None:
            return
        try:
            self._record(self._judge.agreement())
        except Exception as error:  # noqa: BLE001 - a judge of the user's may mean something else
            logger.debug("a judge's agreement could not be read: %s", type(error).__name__)
            self._judge = None

    def _record(self, now: Sequence[_Agreement]) -> None:
        if now == self._recorded:
            return
        self._recorded = now
        for pair in now:
            rates = {"accepted": pair.accepted_rate, "escalated": pair.escalated_rate}
            for route, rate in rates.items():
                if rate is not None:
                    self._metrics.agreed(pair.first, pair.second, route=route, share=rate)
