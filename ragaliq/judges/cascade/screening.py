"""Which of the first judge's verdicts are taken without asking the next judge.

Only a calibration can say which those are. The rule follows from it alone, never from the traffic
or its order: the same claim is treated alike in every process and at any time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

from ragaliq.errors import ConfigurationError
from ragaliq.judges.base import ClaimVerdict
from ragaliq.judges.calibration import Calibration, raw_support
from ragaliq.statistics import wilson

__all__ = ["Screening"]

_DIGITS = 4  # decimals a calibrated judge gives its probabilities
_CHANCE = 0.5
_FEW = 20  # labelled claims; what fewer stand for is too small a part to refuse all for


class _Labelled(NamedTuple):
    support: float
    certainty: float
    claims: int
    right: int


@dataclass(frozen=True, kw_only=True)
class Screening:
    """The rule by which verdicts of a calibrated judge are accepted.

    A verdict's certainty is the calibrated probability that it is right: of support for SUPPORTED,
    of no support for the others.

    Attributes:
        below: Claims with a certainty below are escalated.
        share_at: Share of the claims with exactly that certainty that are escalated too; an
            isotonic curve gives many claims the same one.
        band: Instead: claims whose calibrated support is in `[low, high)` are escalated.
        escalated: Share of the labelled claims that would be escalated.
        accuracy: Share of the others that are right, with its 95 % interval; None where all are
            escalated.
    """

    below: float = 1.0
    share_at: float = 1.0
    band: tuple[float, float] | None = None
    escalated: float = 1.0
    accuracy: tuple[float, float, float] | None = None

    @classmethod
    def everything(cls) -> Self:
        """Without a calibration: nothing is accepted."""
        return cls()

    @classmethod
    def by_share(cls, calibration: Calibration, share: float) -> Self:
        """Escalate this share of claims like the labelled ones, the least certain first.

        Raises:
            ConfigurationError: What would be accepted is not shown to be better than a guess.
        """
        wanted = share * calibration.labels
        below, before, here = 1.0, calibration.labels, 0
        passed = 0
        for certainty, claims in _by_certainty(calibration):
            if passed + claims > wanted:
                below, before, here = certainty, passed, claims
                break
            passed += claims
        at = (wanted - before) / here if here else 1.0
        return cls(below=below, share_at=at)._checked(calibration)

    @classmethod
    def by_band(cls, calibration: Calibration, low: float, high: float) -> Self:
        """Escalate the claims whose calibrated support is in `[low, high)`.

        Raises:
            ConfigurationError: What would be accepted is not shown to be better than a guess.
        """
        return cls(band=(low, high))._checked(calibration)

    def accepts(self, verdict: ClaimVerdict, draw: float) -> bool:
        """Whether a calibrated verdict is taken.

        Args:
            verdict: Of the calibrated judge.
            draw: The claim's own number in [0, 1), for claims that are equally certain.
        """
        support, certainty = (
            round(raw_support(verdict), _DIGITS),
            round(verdict.confidence, _DIGITS),
        )
        return draw >= self._chance(support, certainty)

    def _chance(self, support: float, certainty: float) -> float:
        """How likely a claim is escalated."""
        if self.band is not None:
            return float(self.band[0] <= support < self.band[1])
        if certainty == self.below:
            return self.share_at
        return float(certainty < self.below)

    def _checked(self, calibration: Calibration) -> Self:
        accepted = right = 0.0
        for row in _labelled(calibration):
            kept = 1.0 - self._chance(row.support, row.certainty)
            accepted += kept * row.claims
            right += kept * row.right
        escalated = 1.0 - accepted / calibration.labels
        if accepted < 1.0:
            return type(self)(
                below=self.below, share_at=self.share_at, band=self.band, escalated=escalated
            )
        accuracy = min(1.0, right / accepted)
        low, high = wilson(accuracy, n=accepted)
        if low <= _CHANCE and accepted >= _FEW:
            raise ConfigurationError(
                f"calibration {calibration.id}: of the {accepted:.0f} labelled claims this cascade "
                f"would take the first judge's word for, {accuracy:.0%} are right [{low:.0%}, "
                f"{high:.0%}], which may be a guess; escalate more, or label more claims"
            )
        return type(self)(
            below=self.below,
            share_at=self.share_at,
            band=self.band,
            escalated=escalated,
            accuracy=(accuracy, low, high),
        )


def _labelled(calibration: Calibration) -> Iterator[_Labelled]:
    """The labelled claims by their calibrated support, as the calibration keeps them."""
    points = calibration.points
    for point, following in zip(points, (*points[1:], None), strict=True):
        claims = point.claims - (following.claims if following else 0)
        supported = point.supported - (following.supported if following else 0)
        support = round(point.at, _DIGITS)
        if support >= calibration.supported_from:
            yield _Labelled(support, support, claims, supported)
        else:
            yield _Labelled(support, round(1.0 - support, _DIGITS), claims, claims - supported)


def _by_certainty(calibration: Calibration) -> list[tuple[float, int]]:
    """How many labelled claims there are of each certainty, least certain first."""
    counts: dict[float, int] = {}
    for row in _labelled(calibration):
        counts[row.certainty] = counts.get(row.certainty, 0) + row.claims
    return sorted(counts.items())
