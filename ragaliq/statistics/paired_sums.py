"""What a prediction-powered mean needs to know of its data, as a few sums."""

from __future__ import annotations

from dataclasses import dataclass, field

from ragaliq.errors import ConfigurationError
from ragaliq.statistics.checks import Bounds
from ragaliq.statistics.estimates import Estimate
from ragaliq.statistics.interval_formulas import student_t_of_variance, wilson_of_variance
from ragaliq.statistics.weighted import Target, WeightedSums

__all__ = ["PairedSums"]

_NO_SPREAD = 1e-12


@dataclass(slots=True)
class _Moments:
    """Weighted sums of 1, x, y and their products, all about the point (1/2, 1/2)."""

    one: float = 0.0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0
    yy: float = 0.0

    def add(self, weight: float, x: float, y: float) -> None:
        x, y = x - 0.5, y - 0.5
        self.one += weight
        self.x += weight * x
        self.y += weight * y
        self.xx += weight * x * x
        self.xy += weight * x * y
        self.yy += weight * y * y

    def about(self, x: float, y: float) -> tuple[float, float, float]:
        """The sums of squares and products of the differences from a point: xx, xy, yy."""
        x, y = x - 0.5, y - 0.5
        return (
            max(0.0, self.xx - 2.0 * x * self.x + x * x * self.one),
            self.xy - x * self.y - y * self.x + x * y * self.one,
            max(0.0, self.yy - 2.0 * y * self.y + y * y * self.one),
        )


@dataclass(slots=True)
class PairedSums:
    """Scores of a cheap and of an expensive judge, the second on a part of the first.

    The variance has two parts. `_choice` weighs what comes from scoring only some with the
    expensive judge, which good cheap scores take away; the other two weigh what is left: that the
    cheap judge saw only a sample of the traffic, and that the traffic is itself a sample.
    """

    cheap: WeightedSums = field(default_factory=WeightedSums)
    expensive: WeightedSums = field(default_factory=WeightedSums)
    _cheap_of_pairs: WeightedSums = field(default_factory=WeightedSums)
    _choice: _Moments = field(default_factory=_Moments)
    _first_phase: _Moments = field(default_factory=_Moments)
    _process: _Moments = field(default_factory=_Moments)

    def add_cheap(self, score: float, probability: float = 1.0) -> None:
        """A member the cheap judge scored, whether or not the expensive one did as well."""
        self.cheap.add(score, probability)

    def add_pair(
        self,
        expensive: float,
        cheap: float,
        probability: float,
        *,
        cheap_probability: float = 1.0,
    ) -> None:
        """A member both judges scored; its cheap score goes to `add_cheap` too.

        Args:
            expensive: The expensive judge's score.
            cheap: The cheap judge's score.
            probability: The chance of being scored by both, at most `cheap_probability`.
            cheap_probability: The chance of being scored by the cheap judge.
        """
        later = probability / cheap_probability
        weight = 1.0 / probability
        self.expensive.add(expensive, probability)
        self._cheap_of_pairs.add(cheap, probability)
        square = weight * weight
        self._choice.add(square * (1.0 - later), cheap, expensive)
        self._first_phase.add(square * later * (1.0 - cheap_probability), cheap, expensive)
        self._process.add(square * later, cheap, expensive)

    @property
    def pairs(self) -> int:
        """Number of members both judges scored."""
        return self.expensive.n

    @property
    def cheap_count(self) -> int:
        """Number of members the cheap judge scored."""
        return self.cheap.n

    @property
    def cheap_mean(self) -> float:
        """The cheap judge's mean over everything it scored."""
        return self.cheap.mean

    def best_weight(self) -> float:
        """The weight of the cheap scores that makes the variance least, cut to [0, 1].

        Cut, because a slope from few pairs may be anything, and is multiplied with the difference
        between the cheap means.
        """
        squares, products, _ = self._choice.about(self._cheap_of_pairs.mean, self.expensive.mean)
        if squares <= _NO_SPREAD * self._choice.one:
            return 0.0
        return min(1.0, max(0.0, products / squares))

    def estimate(
        self,
        weight: float | None,
        *,
        classical: Estimate,
        bounds: Bounds,
        target: Target,
        confidence: float,
    ) -> tuple[Estimate, float]:
        """The prediction-powered mean, and the weight of the cheap scores in it."""
        if weight is not None and not 0.0 <= weight <= 1.0:
            raise ConfigurationError(f"weight must be within [0, 1], got {weight}")
        used = self.best_weight() if weight is None else weight
        # A fitted weight costs a degree of freedom, as a slope does in a regression.
        fitted = 1 if weight is not None else 2
        effective = self.expensive.effective_n
        if used == 0.0 or effective <= fitted + 1 or classical.method in ("census", "unseen_share"):
            return classical, 0.0
        value = self.expensive.mean + used * (self.cheap.mean - self._cheap_of_pairs.mean)
        value = min(max(value, bounds[0]), bounds[1])
        variance = self._variance(used, target) * effective / (effective - fitted)
        df = effective - fitted
        low, high = (
            wilson_of_variance(
                value,
                variance,
                df=df,
                bounds=bounds,
                confidence=confidence,
                least_cases=effective,  # that many the expensive scores are worth by themselves
            )
            if classical.method == "hajek_wilson"
            else student_t_of_variance(value, variance, df=df, bounds=bounds, confidence=confidence)
        )
        powered = Estimate(
            value=value,
            low=low,
            high=high,
            method="ppi++" if weight is None else "ppi",
            n=self.pairs,
            effective_n=effective,
            confidence=confidence,
        )
        return powered, used

    def _variance(self, weight: float, target: Target) -> float:
        known, mean = self._cheap_of_pairs.mean, self.expensive.mean
        xx, xy, yy = self._choice.about(known, mean)
        left = max(0.0, yy - 2.0 * weight * xy + weight * weight * xx)
        # Where the judges agree on every pair seen, the next one may still differ. Counting one
        # more, in which the two scores have nothing to do with each other, keeps the interval from
        # promising more than so many pairs can show.
        unrelated = (1.0 + weight * weight) * self.expensive.spread
        left += unrelated * self._choice.one / self.expensive.effective_n
        rest = self._process if target == "process" else self._first_phase
        return (left + rest.about(known, mean)[2]) / self.expensive.weight**2
