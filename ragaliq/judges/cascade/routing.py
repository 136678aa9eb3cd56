"""Which claims go to the next judge: those not accepted, and an audit of the accepted ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ragaliq.judges.base import ClaimVerdict
from ragaliq.judges.cascade.screening import Screening
from ragaliq.judges.digest import digest_of

__all__ = ["Router", "Routes"]

_RANGE = 2.0**64


@dataclass(frozen=True)
class Routes:
    """What becomes of claims, by their position.

    Attributes:
        accepted: The first judge's verdict stands.
        audited: It would stand, and the next judge is asked all the same.
        escalated: The next judge decides.
    """

    accepted: list[int] = field(default_factory=list)
    audited: list[int] = field(default_factory=list)
    escalated: list[int] = field(default_factory=list)

    @property
    def asked(self) -> list[int]:
        """Claims for the next judge, in order."""
        return sorted((*self.audited, *self.escalated))


class Router:
    """Sorts claims; what becomes of one depends on it, its context and the seed alone.

    Args:
        screening: Which verdicts are accepted.
        audit: Share of the accepted ones to ask the next judge about, 0 to 1.
        seed: Another one draws another share.
    """

    def __init__(self, screening: Screening, *, audit: float, seed: int) -> None:
        self.screening, self.audit, self.seed = screening, audit, seed

    def sort(
        self,
        claims: Sequence[str],
        context: Sequence[str],
        verdicts: Mapping[int, ClaimVerdict],
    ) -> Routes:
        """Sort claims by the first judge's verdicts; a claim without one is escalated."""
        routes = Routes()
        without_context = not any(chunk.strip() for chunk in context)
        read = digest_of(*context)
        for position, claim in enumerate(claims):
            verdict = verdicts.get(position)
            if verdict is None:
                routes.escalated.append(position)
            elif without_context and verdict.verdict == "NOT_ENOUGH_INFO":
                routes.accepted.append(position)  # there is nothing to read: no guess, no audit
            elif not self.screening.accepts(verdict, self._draw("tie", read, claim)):
                routes.escalated.append(position)
            elif self._draw("audit", read, claim) < self.audit:
                routes.audited.append(position)
            else:
                routes.accepted.append(position)
        return routes

    def _draw(self, purpose: str, context: str, claim: str) -> float:
        return int(digest_of(purpose, str(self.seed), context, claim), 16) / _RANGE
