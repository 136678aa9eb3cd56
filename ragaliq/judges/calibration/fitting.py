"""Fit a calibration to labels, or say why they do not carry one."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from datetime import UTC, datetime
from itertools import groupby

from ragaliq.errors import DatasetError
from ragaliq.judges.base import LLMJudge
from ragaliq.judges.calibration.model import Calibration, CalibrationFigures
from ragaliq.judges.calibration.points import OperatingPoint
from ragaliq.statistics import (
    IsotonicCalibrator,
    PlattCalibrator,
    auroc_estimate,
    brier_score,
    cross_validated,
    expected_calibration_error,
    fit_isotonic,
    fit_platt,
)

__all__ = ["LEAST_LABELS", "LEAST_OF_A_CLASS", "fit_calibration"]

LEAST_LABELS = 100
LEAST_OF_A_CLASS = 20
_LEAST_FOR_ISOTONIC = 300
"""Below, steps of a few labels each are fitted to chance."""

_FOLDS = 5
_MOST_POINTS = 200

Curve = PlattCalibrator | IsotonicCalibrator
Fit = Callable[[Sequence[float], Sequence[float]], Curve]


def fit_calibration(
    judge: LLMJudge,
    support: Sequence[float],
    labels: Sequence[bool],
    *,
    clusters: Sequence[Hashable] | None = None,
    precision: float | None = None,
    seed: int = 0,
) -> Calibration:
    """Fit the curve that predicts left-out labels best.

    Platt scaling and, from 300 labels on, isotonic regression are cross-validated in five parts;
    the lower Brier score wins. The figures are those of the left-out parts.

    Args:
        judge: Who gave the confidences.
        support: `raw_support` of the judge's verdict on each claim.
        labels: Whether people call it supported.
        clusters: What must not be torn apart, one a claim, such as the context it was checked
            against.
        precision: Count a claim as supported only where at least this share of such claims is;
            by default from a probability of 0.5 on.
        seed: Of the parts.

    Raises:
        DatasetError: There are too few labels, or the judge's confidence does not tell supported
            claims from others.
        ConfigurationError: No threshold reaches the precision.
    """
    _require_enough(labels)
    truth = [float(label) for label in labels]
    ranking = auroc_estimate(support, truth, seed=seed)
    if ranking.low <= 0.5:
        raise DatasetError(
            f"{judge.name} does not tell supported claims from others on these labels: AUROC "
            f"{ranking.value:.2f} [{ranking.low:.2f}, {ranking.high:.2f}], and 0.5 is chance. A "
            "calibration would make its guesses look like knowledge; use another judge, or label "
            "more claims if the interval is wide"
        )
    held_out = _cross_validate(support, truth, clusters, seed)
    scores = {name: brier_score(values, truth) for name, (_, values) in held_out.items()}
    method = min(scores, key=lambda name: (scores[name], name != "platt"))
    fit, predicted = held_out[method]
    predicted = _bounded(predicted)
    draft = Calibration(
        judge=judge.name,
        model=judge.model,
        fingerprint=judge.fingerprint(),
        created=datetime.now(UTC).date().isoformat(),
        labels=len(truth),
        supported=sum(labels),
        method="platt" if method == "platt" else "isotonic",
        curve=fit(support, truth),
        points=(OperatingPoint(0.0, len(truth), sum(labels)),),
        figures=CalibrationFigures(
            brier=brier_score(predicted, truth),
            brier_uncalibrated=brier_score(support, truth),
            log_loss=_log_loss(predicted, labels),
            ece=expected_calibration_error(predicted, truth),
            ece_uncalibrated=expected_calibration_error(support, truth),
            auroc=ranking.value,
            auroc_interval=ranking.interval,
            tried=scores,
        ),
    )
    points = _points([draft.support(raw) for raw in support], labels)
    calibration = draft.model_copy(update={"points": points})
    if precision is None:
        return calibration
    threshold = calibration.threshold_for(precision)
    return calibration.model_copy(update={"supported_from": threshold, "precision": precision})


def _require_enough(labels: Sequence[bool]) -> None:
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


def _cross_validate(
    support: Sequence[float],
    truth: Sequence[float],
    clusters: Sequence[Hashable] | None,
    seed: int,
) -> dict[str, tuple[Fit, list[float]]]:
    # Claims over one context are alike; with hardly any contexts they can only be dealt out singly.
    groups = clusters if clusters and len(set(clusters)) >= 2 * _FOLDS else None
    fits: dict[str, Fit] = {"platt": fit_platt}
    if len(truth) >= _LEAST_FOR_ISOTONIC:
        fits["isotonic"] = fit_isotonic
    return {
        name: (fit, cross_validated(support, truth, fit, folds=_FOLDS, groups=groups, seed=seed))
        for name, fit in fits.items()
    }


def _bounded(probabilities: Sequence[float]) -> list[float]:
    least = 1.0 / (len(probabilities) + 2.0)
    return [min(max(value, least), 1.0 - least) for value in probabilities]


def _log_loss(probabilities: Sequence[float], labels: Sequence[bool]) -> float:
    logs = [math.log(p if y else 1.0 - p) for p, y in zip(probabilities, labels, strict=True)]
    return -math.fsum(logs) / len(logs)


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
