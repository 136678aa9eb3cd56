"""Sequential tests of a moved mean that stay valid when checked after every score.

A test of fixed size is wrong if it is repeated each day: at 5 % a day, most months have a false
alarm. An e-process is a bet against "nothing has changed" whose expected wealth never exceeds its
stake, so its chance of ever reaching `1 / alpha` is at most alpha (Ville 1939).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from ragaliq.core.checks import require_positive
from ragaliq.errors import ConfigurationError
from ragaliq.statistics import Estimate
from ragaliq.statistics.checks import require_share
from ragaliq.statistics.sampling import WeightedSums

Direction = Literal["fell", "rose"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """A mean that moved.

    Attributes:
        direction: `fell` or `rose`.
        now: The mean of the scores since the bet that won began, always valid.
        difference: That less the mean of the reference, with its interval.
        e_value: The wealth of the bets; 1 where there is no evidence.
    """

    direction: Direction
    now: Estimate
    difference: Estimate
    e_value: float


# Of the first bet: it is sized for a move of so much, and the scores take over after so many.
_FIRST_MOVE = 0.05
_FIRST_SCORES = 30.0
_LEAST_SPREAD = 0.01


@dataclass(slots=True)
class _Bet:
    """Bet that payoffs are above 0 on average.

    The share that is staked is the payoffs' mean over their mean square so far, which makes the
    wealth grow fastest (aGRAPA of Waudby-Smith & Ramdas 2024, JRSS B 86(1), arXiv 2010.09686).
    """

    most: float  # staked at most: no payoff can lose more than half of the wealth
    mean: float  # what the first stake rests on
    square: float
    log_wealth: float = 0.0

    def add(self, payoff: float) -> None:
        stake = min(self.most, max(0.0, self.mean / self.square))
        self.log_wealth += math.log1p(stake * payoff)
        self.mean += payoff
        self.square += payoff * payoff


@dataclass(slots=True)
class _Start:
    """Bets and sums since one of the moments at which the mean may have moved."""

    bets: dict[Direction, _Bet]
    sums: WeightedSums = field(default_factory=WeightedSums)


class ShiftTest:
    """Detects when a mean has moved from a reference's, down or up, after any score.

    When it moved is not known beforehand, so a bet is begun at each of `starts` moments, such as
    once a day, each with an equal part of the stake: their sum is an e-process too (Shin, Ramdas &
    Rinaldo 2023, "E-detectors", arXiv 2203.03532, with a prior over the moments in place of their
    sum, which bounds the chance of any false alarm and not only their rate). The reference's own
    uncertainty takes a fifth of `alpha`: the bets are against the end of its interval.

    Scores are weighted by the runs that they represent; a weight above the reference's largest one
    counts as that one.

    The test assumes that scores are exchangeable while nothing changes; `tolerance` leaves room for
    daily rhythms.

    Args:
        reference: The earlier scores.
        heaviest: The largest weight among them.
        alpha: The chance of a false alarm, for any number of scores.
        tolerance: Largest move that is ignored.
        starts: Most calls of `start`.
    """

    def __init__(
        self,
        reference: WeightedSums,
        *,
        heaviest: float = 1.0,
        alpha: float = 0.05,
        tolerance: float = 0.02,
        starts: int = 28,
    ) -> None:
        require_share(alpha, name="alpha")
        require_positive("ShiftTest", starts=starts)
        if not 0.0 <= tolerance < 1.0:
            raise ConfigurationError(f"tolerance must be within [0, 1), got {tolerance}")
        self.reference = reference.estimate(confidence=1.0 - alpha / 5.0)
        self._heaviest, self._starts, self._tolerance = heaviest, starts, tolerance
        self._alpha = alpha * 4.0 / 5.0
        # The scores that are bet on: below one, above the other.
        self._limits: dict[Direction, float] = {
            "fell": self.reference.low - tolerance,
            "rose": 1.0 - self.reference.high - tolerance,
        }
        self._usual = reference.weight / reference.n / heaviest
        self._spread = max(_LEAST_SPREAD, reference.spread)
        self._running: list[_Start] = []

    @property
    def started(self) -> int:
        """Number of bets begun."""
        return len(self._running)

    def renew(self) -> None:
        """End all bets, so that `starts` further ones may begin: another stake, another `alpha`."""
        self._running = []

    def start(self) -> None:
        """Begin a further bet; beyond `starts` nothing is begun."""
        if len(self._running) >= self._starts:
            return
        bets = {
            way: _Bet(
                most=0.5 / (1.0 - limit),
                mean=_FIRST_SCORES * _FIRST_MOVE * self._usual,
                square=_FIRST_SCORES * self._spread * self._usual**2,
            )
            for way, limit in self._limits.items()
            if limit > 0.0
        }
        self._running.append(_Start(bets))

    def add(self, score: float, weight: float = 1.0) -> None:
        """Add a score, 0 to 1, that represents `weight` runs."""
        counted = min(1.0, weight / self._heaviest)
        for each in self._running:
            each.sums.add(score, 1.0 / weight)
            for way, bet in each.bets.items():
                height = score if way == "fell" else 1.0 - score
                bet.add(counted * (self._limits[way] - height))

    def shift(self) -> Shift | None:
        """Move of the mean; None until there is enough evidence."""
        for way in self._limits:
            wealth = [each.bets[way].log_wealth for each in self._running if way in each.bets]
            if not wealth:
                continue
            # The mean cannot be large where the largest is not: most scores end here.
            if math.exp(max(wealth)) * self._alpha < 2.0:
                continue
            idle = self._starts - len(wealth)
            e_value = (math.fsum(map(math.exp, wealth)) + idle) / self._starts
            # Each direction has half of alpha.
            if e_value * self._alpha >= 2.0:
                since = self._running[wealth.index(max(wealth))].sums
                return self._shift(way, since, e_value)
        return None

    def _shift(self, way: Direction, since: WeightedSums, e_value: float) -> Shift:
        now, before = confidence_sequence(since), self.reference
        # The parts are independent, and their lengths add up as squares do.
        below = math.hypot(now.value - now.low, before.high - before.value)
        above = math.hypot(now.high - now.value, before.value - before.low)
        moved = now.value - before.value
        # The bet that was won has shown that the mean moved by more than the tolerance.
        difference = Estimate(
            value=moved,
            low=max(-1.0, moved - below, self._tolerance if way == "rose" else -1.0),
            high=min(1.0, moved + above, -self._tolerance if way == "fell" else 1.0),
            method=now.method,
            n=now.n,
            effective_n=now.effective_n,
        )
        return Shift(direction=way, now=now, difference=difference, e_value=e_value)


_TIGHTEST_AT = 500.0  # scores, at which a confidence sequence is narrowest against other choices


def confidence_sequence(sums: WeightedSums) -> Estimate:
    """The mean with a 95 % interval that holds at every moment, also one that was waited for.

    The asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas 2024,
    Annals of Statistics 52(6), arXiv 2103.06476, theorem 2.2, with Kish's effective number of
    scores; approximate below some 50.
    """
    alpha, n = 1.0 - 0.95, sums.effective_n
    twice = -2.0 * math.log(alpha)
    rho = (twice + math.log(twice) + 1.0) / _TIGHTEST_AT
    deviation = math.sqrt(max(sums.spread, _LEAST_SPREAD))
    reach = deviation * math.sqrt(
        2.0 * (n * rho + 1.0) / (n * n * rho) * math.log(math.sqrt(n * rho + 1.0) / alpha)
    )
    return Estimate(
        value=sums.mean,
        low=max(0.0, sums.mean - reach),
        high=min(1.0, sums.mean + reach),
        method="confidence_sequence",
        n=sums.n,
        effective_n=n,
    )
