"""Fit a judge's confidence to labelled claims, or its threshold to unlabelled ones."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from datetime import UTC, datetime
from itertools import groupby

from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.calibration import (
    Calibration,
    CalibrationFigures,
    IsotonicCalibrator,
    OperatingPoint,
    PlattCalibrator,
    never_certain,
)
from ragaliq.judges.local.verdict import LEAST_UNLABELLED, threshold_of
from ragaliq.lab.agreement import auroc_estimate
from ragaliq.lab.curves import (
    FOLDS,
    Curve,
    brier_score,
    cross_validated,
    expected_calibration_error,
    fit_isotonic,
    fit_platt,
)

LEAST_LABELS = 100
LEAST_OF_A_CLASS = 20
_LEAST_FOR_ISOTONIC = 300
"""Below, steps of a few labels each are fitted to chance."""

_LIKELIER = 0.5
_MOST_POINTS = 200

Fit = Callable[[Sequence[float], Sequence[float]], Curve]


def fit_calibration(
    judge: LLMJudge,
    support: Sequence[float],
    labels: Sequence[bool],
    *,
    clusters: Sequence[Hashable] | None = None,
    precision: float | None = None,
    min_support: float | None = None,
) -> Calibration:
    """Fit the curve that predicts held-out labels best.

    Platt scaling and, from 300 labels on, isotonic regression are cross-validated in five parts;
    the lower Brier score wins. The figures are those of the held-out parts.

    Args:
        judge: The judge that gave the confidences.
        support: `raw_support` of the judge's verdict on each claim.
        labels: Whether people call it supported.
        clusters: Cluster of each claim, such as its context, which stays in one part.
        precision: Least share of truly supported claims among those that count as supported; by
            default a probability of 0.5 counts.
        min_support: Instead: the least probability of a claim that counts as supported, 0 to 1.

    Raises:
        DatasetError: There are too few labels, or the judge's confidence does not tell supported
            claims from others.
        ConfigurationError: No threshold reaches the precision, or two operating points are asked
            for.
    """
    if precision is not None and min_support is not None:
        raise ConfigurationError("give precision= or min_support=, not both")
    if min_support is not None and not 0.0 <= min_support <= 1.0:
        raise ConfigurationError(f"min_support must be within [0, 1], got {min_support}")
    supported = sum(labels)
    rarer = min(supported, len(labels) - supported)
    found = f"there are {len(labels)} labels, {supported} of them supported"
    if rarer == 0:
        raise DatasetError(
            f"{found}: all are the same, and a calibration learns from the difference; label "
            f"at least {LEAST_OF_A_CLASS} claims of the other kind"
        )
    if len(labels) < LEAST_LABELS or rarer < LEAST_OF_A_CLASS:
        raise DatasetError(
            f"{found}; at least {LEAST_LABELS} are needed, {LEAST_OF_A_CLASS} of each kind: the "
            "curve has two parameters, each of which takes about ten labels of the rarer kind, "
            "and with fewer than a hundred a threshold rests on a handful of claims"
        )
    truth = [float(label) for label in labels]
    ranking = auroc_estimate(support, truth)
    if ranking.low <= 0.5:
        raise DatasetError(
            f"{judge.name} does not tell supported claims from others on these labels: AUROC "
            f"{ranking.value:.2f} [{ranking.low:.2f}, {ranking.high:.2f}], and 0.5 is chance. A "
            "calibration would make its guesses look like knowledge; use another judge, or label "
            "more claims if the interval is wide"
        )
    # Claims over one context are alike; with hardly any contexts they can only be dealt out singly.
    groups = clusters if clusters and len(set(clusters)) >= 2 * FOLDS else None
    fits: dict[str, Fit] = {"platt": fit_platt}
    if len(truth) >= _LEAST_FOR_ISOTONIC:
        fits["isotonic"] = fit_isotonic
    held_out = {
        name: cross_validated(support, truth, fit, groups=groups) for name, fit in fits.items()
    }
    scores = {name: brier_score(values, truth) for name, values in held_out.items()}
    method = min(scores, key=lambda name: (scores[name], name != "platt"))
    curve = fits[method](support, truth)
    if isinstance(curve, PlattCalibrator) and curve.slope <= 0.0:
        raise DatasetError(
            "the judge's support falls where the labels rise: its surest claims would become its "
            "least sure; label more claims, or use another judge"
        )
    predicted = [never_certain(value, len(truth)) for value in held_out[method]]
    points = _points([never_certain(curve(raw), len(truth)) for raw in support], labels)
    calibration = Calibration(
        judge=judge.name,
        model=judge.model,
        fingerprint=judge.fingerprint(),
        created=datetime.now(UTC).date().isoformat(),
        labels=len(truth),
        supported=supported,
        method="platt" if method == "platt" else "isotonic",
        curve=curve,
        points=points,
        figures=CalibrationFigures(
            brier=brier_score(predicted, truth),
            brier_uncalibrated=brier_score(support, truth),
            ece=expected_calibration_error(predicted, truth),
            ece_uncalibrated=expected_calibration_error(support, truth),
            auroc=ranking.value,
            auroc_interval=ranking.interval,
            tried=scores,
        ),
    )
    if precision is not None:
        min_support = calibration.threshold_for(precision)
    elif min_support is None:
        min_support = _LIKELIER
    return calibration.model_copy(update={"min_support": min_support, "precision": precision})


def level_calibration(judge: LLMJudge, support: Sequence[float]) -> Calibration:
    """Find the threshold of one application from its claims, without labels.

    Args:
        judge: The judge that gave the confidences; it has a `min_support`.
        support: `raw_support` of its verdict on each claim.

    Raises:
        DatasetError: There are too few claims.
        ConfigurationError: The judge has no threshold that unlabelled claims can move.
    """
    if judge.min_support is None:
        raise ConfigurationError(
            f"the threshold of {judge.name!r} needs labels: unlabelled claims move that of the "
            "embedded judge only"
        )
    if len(support) < LEAST_UNLABELLED:
        raise DatasetError(
            f"there are {len(support)} claims of judge {judge.name!r}; at least {LEAST_UNLABELLED} "
            "are needed"
        )
    return Calibration(
        judge=judge.name,
        model=judge.model,
        fingerprint=judge.fingerprint(),
        created=datetime.now(UTC).date().isoformat(),
        labels=0,
        supported=0,
        unlabelled=len(support),
        method="level",
        curve=IsotonicCalibrator((0.0, 1.0), (0.0, 1.0)),
        min_support=threshold_of(support),
    )


def _points(probabilities: Sequence[float], labels: Sequence[bool]) -> tuple[OperatingPoint, ...]:
    """A point at each probability there is, thinned to about as many claims between each two."""
    ranked = sorted(zip(probabilities, labels, strict=True))
    claims, supported = len(ranked), sum(labels)
    step = len(ranked) / _MOST_POINTS
    points: list[OperatingPoint] = []
    passed = 0
    for at, group in groupby(ranked, key=lambda pair: pair[0]):
        hits = [label for _, label in group]
        if passed >= len(points) * step:
            points.append(OperatingPoint(at, claims, supported))
        passed += len(hits)
        claims, supported = claims - len(hits), supported - sum(hits)
    return tuple(points)
