"""How often two judges of a cascade say the same, and a warning when that drops."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from dataclasses import dataclass

__all__ = ["AgreementWindow", "StageAgreement"]

logger = logging.getLogger(__name__)

_LEAST_AUDITED = 30
"""Audited claims below which a low share says little: of 30, one disagreement is 3 points."""


@dataclass(frozen=True, kw_only=True)
class StageAgreement:
    """How two neighbouring judges of a cascade got on, over the last claims.

    To agree is to call a claim supported, or not supported: which of CONTRADICTED and
    NOT_ENOUGH_INFO it is, screens tell badly.

    Attributes:
        first: The judge that screens.
        second: The judge that decides what is escalated.
        claims: Claims screened.
        escalated_share: Share of them whose decision was left to the second judge, audits apart;
            None where there are none.
        audited: Accepted verdicts that the second judge looked at all the same.
        audited_agreed: Those of them it agreed with.
        escalated: Escalated claims both judged.
        escalated_agreed: Those of them on which they agreed.
    """

    first: str
    second: str
    claims: int = 0
    escalated_share: float | None = None
    audited: int = 0
    audited_agreed: int = 0
    escalated: int = 0
    escalated_agreed: int = 0

    @property
    def accepted_rate(self) -> float | None:
        """Share of accepted verdicts the second judge agrees with; None without audits."""
        return self.audited_agreed / self.audited if self.audited else None

    @property
    def escalated_rate(self) -> float | None:
        """Share of escalated claims on which both agree; None where there are none."""
        return self.escalated_agreed / self.escalated if self.escalated else None

    @property
    def rate(self) -> float | None:
        """Agreement over all claims: audited claims stand for all that were accepted.

        None until every kind of claim there is has been judged twice.
        """
        share = self.escalated_share
        if share is None:
            return None
        parts = ((share, self.escalated_rate), (1.0 - share, self.accepted_rate))
        if any(weight and rate is None for weight, rate in parts):
            return None
        return sum(weight * (rate or 0.0) for weight, rate in parts)


class AgreementWindow:
    """Counts agreement over the last claims; safe on any thread.

    Args:
        first: Name of the judge that screens.
        second: Name of the judge that decides what is escalated.
        size: Claims remembered of each kind.
        least: Agreement on accepted verdicts below which a warning is logged, once for each drop.
    """

    def __init__(self, first: str, second: str, *, size: int, least: float) -> None:
        self._first, self._second, self._least = first, second, least
        self._pid, self._own_lock = os.getpid(), threading.Lock()
        self._routes: deque[bool] = deque(maxlen=size)
        self._audited: deque[bool] = deque(maxlen=size)
        self._escalated: deque[bool] = deque(maxlen=size)
        self._is_low = False

    @property
    def _lock(self) -> threading.Lock:
        if self._pid != os.getpid():  # the parent may have held it at the fork
            self._pid, self._own_lock = os.getpid(), threading.Lock()
        return self._own_lock

    def routed(self, *, escalated: bool) -> None:
        """A claim was screened."""
        with self._lock:
            self._routes.append(escalated)

    def compared(self, *, agreed: bool, audited: bool) -> None:
        """Both judges have judged a claim."""
        with self._lock:
            (self._audited if audited else self._escalated).append(agreed)
            dropped = audited and self._has_dropped()
            rate, seen = self._audited_rate(), len(self._audited)
        if dropped:
            logger.warning(
                "%s agrees with only %.0f%% of the last %d audited verdicts taken from %s "
                "(bound: %.0f%%); calibrate it anew on recent claims, or escalate more",
                self._second,
                100 * rate,
                seen,
                self._first,
                100 * self._least,
            )

    def snapshot(self) -> StageAgreement:
        """The counts now."""
        with self._lock:
            return StageAgreement(
                first=self._first,
                second=self._second,
                claims=len(self._routes),
                escalated_share=sum(self._routes) / len(self._routes) if self._routes else None,
                audited=len(self._audited),
                audited_agreed=sum(self._audited),
                escalated=len(self._escalated),
                escalated_agreed=sum(self._escalated),
            )

    def _has_dropped(self) -> bool:
        """Whether agreement is low now and was not before."""
        if len(self._audited) < min(_LEAST_AUDITED, self._audited.maxlen or _LEAST_AUDITED):
            return False
        was_low, self._is_low = self._is_low, self._audited_rate() < self._least
        return self._is_low and not was_low

    def _audited_rate(self) -> float:
        return sum(self._audited) / len(self._audited) if self._audited else 1.0
