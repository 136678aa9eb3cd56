"""How good a judge is on labelled claims, each figure with its interval.

What the figures are and where they come from is on the documentation page "Measuring a judge".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from pydantic import BaseModel, ConfigDict

from ragaliq.bench.judged import JudgedClaim
from ragaliq.core.results import JudgeUsage
from ragaliq.statistics import (
    Estimate,
    ReliabilityBin,
    RiskPoint,
    auroc,
    cohen_kappa,
    confusion,
    expected_calibration_error,
    percentile_interval,
    reliability_table,
    risk_coverage,
    wilson,
)

__all__ = ["JudgeFigures", "balanced_accuracy", "judge_figures", "ranking"]

Rows = Sequence[JudgedClaim]

_MOST_RESAMPLES = 1000
_LEAST_RESAMPLES = 100
_RESAMPLED_ROWS = 400_000  # what a figure may cost: resamples times claims
_CURVE_POINTS = 50


class JudgeFigures(BaseModel):
    """The figures of one group of claims, or of all.

    A figure is None where the claims do not define it: a ranking needs both kinds of label.

    Attributes:
        claims: How many were asked about.
        scored: How many the judge decided; all figures are about these.
        supported: Those of them that people call supported.
        failures: How often the judge failed, by status; such claims are in no figure.
        classes: 3 where labels and verdicts are told apart into three, else 2.
        auroc: How well the judge's support ranks.
        balanced_accuracy: Mean share met of supported and of unsupported claims.
        macro_f1: Mean F1 of the classes.
        kappa: Agreement with the labels beyond chance.
        ece: Expected calibration error of the support, ten bins of equal mass.
        confusion: Counts of `label/verdict`.
        reliability: The bins behind `ece`.
        risk_coverage: Share of errors when only the surest claims are decided.
        median_seconds: What a claim took, with its interval.
        slowest_seconds: What 19 of 20 claims stayed below.
        usage: What all claims cost together, failed ones included.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    claims: int
    scored: int
    supported: int
    failures: dict[str, int]
    classes: int
    auroc: Estimate | None
    balanced_accuracy: Estimate | None
    macro_f1: Estimate | None
    kappa: Estimate | None
    ece: Estimate | None
    confusion: dict[str, int]
    reliability: tuple[ReliabilityBin, ...]
    risk_coverage: tuple[RiskPoint, ...]
    median_seconds: Estimate | None
    slowest_seconds: float | None
    usage: JudgeUsage


def judge_figures(judged: Rows, *, seed: int = 0) -> JudgeFigures:
    """Compute all figures.

    Intervals are percentile bootstraps over contexts: whole contexts are drawn, since claims over
    one are not independent. Where no resample differs from another, Wilson's interval with the
    rarer kind of label as number of cases is taken.

    Args:
        judged: What the judge made of each claim.
        seed: Of the resampling.
    """
    rows = [row for row in judged if row.failure is None]
    three_way = bool(rows) and all(row.label is not None for row in rows) and _has_three(rows)
    both = {row.is_supported for row in rows} == {True, False}

    def estimate(
        statistic: Callable[[Rows], float | None], *, defined: bool = True
    ) -> Estimate | None:
        return _estimate(rows, statistic, seed) if rows and defined else None

    seconds = sorted(row.seconds for row in rows)
    return JudgeFigures(
        claims=len(judged),
        scored=len(rows),
        supported=sum(row.is_supported for row in rows),
        failures=dict(Counter(row.failure for row in judged if row.failure is not None)),
        classes=3 if three_way else 2,
        auroc=estimate(ranking, defined=both),
        balanced_accuracy=estimate(balanced_accuracy, defined=both),
        macro_f1=estimate(lambda some: _macro_f1(some, three_way=three_way), defined=both),
        kappa=estimate(lambda some: _kappa(some, three_way=three_way), defined=both),
        ece=estimate(_ece),
        confusion=_confusion(rows, three_way=three_way),
        reliability=tuple(reliability_table(_support(rows), _labels(rows))) if rows else (),
        risk_coverage=_curve(rows),
        median_seconds=estimate(_median_seconds),
        slowest_seconds=seconds[max(0, -(-len(seconds) * 19 // 20) - 1)] if seconds else None,
        usage=sum((row.usage for row in judged), JudgeUsage()),
    )


def _has_three(rows: Rows) -> bool:
    return len({row.label for row in rows}) == 3


def _estimate(rows: Rows, statistic: Callable[[Rows], float | None], seed: int) -> Estimate | None:
    value = statistic(rows)
    if value is None:
        return None
    clusters = [row.cluster for row in rows]
    resamples = max(_LEAST_RESAMPLES, min(_MOST_RESAMPLES, _RESAMPLED_ROWS // len(rows)))
    method, contexts = "percentile_bootstrap", len(set(clusters))
    low, high = value, value
    if contexts > 1:
        low, high = percentile_interval(
            rows, statistic, clusters=clusters, resamples=resamples, seed=seed
        )
    if low == high and 0.0 <= value <= 1.0:
        supported = sum(row.is_supported for row in rows)
        rarer = min(supported, len(rows) - supported, contexts) or 1
        (low, high), method = wilson(value, n=rarer), "wilson_rarer_kind"
    return Estimate(
        value=value, low=low, high=high, method=method, n=len(rows), effective_n=contexts
    )


def _support(rows: Rows) -> list[float]:
    return [row.support for row in rows if row.support is not None]


def _labels(rows: Rows) -> list[float]:
    return [float(row.is_supported) for row in rows]


def _classes(rows: Rows, *, three_way: bool) -> tuple[list[str], list[str]]:
    if three_way:
        return [str(row.label) for row in rows], [str(row.verdict) for row in rows]
    names = {True: "SUPPORTED", False: "NOT_SUPPORTED"}
    return (
        [names[row.is_supported] for row in rows],
        [names[row.verdict == "SUPPORTED"] for row in rows],
    )


def _has_both(rows: Rows) -> bool:
    return any(row.is_supported for row in rows) and not all(row.is_supported for row in rows)


def ranking(rows: Rows) -> float | None:
    """The AUROC of the judge's support; None with one kind of label."""
    return auroc(_support(rows), _labels(rows)) if _has_both(rows) else None


def balanced_accuracy(rows: Rows) -> float | None:
    """Mean share met of supported and of unsupported claims; None with one kind of label."""
    if not _has_both(rows):
        return None
    return confusion(*_classes(rows, three_way=False)).balanced_accuracy


def _macro_f1(rows: Rows, *, three_way: bool) -> float | None:
    if not _has_both(rows):
        return None
    return confusion(*_classes(rows, three_way=three_way)).macro_f1


def _kappa(rows: Rows, *, three_way: bool) -> float | None:
    found = cohen_kappa(*_classes(rows, three_way=three_way))
    return None if found is None else found.value


def _ece(rows: Rows) -> float:
    return expected_calibration_error(_support(rows), _labels(rows))


def _median_seconds(rows: Rows) -> float:
    ordered = sorted(row.seconds for row in rows)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2.0


def _confusion(rows: Rows, *, three_way: bool) -> dict[str, int]:
    labels, verdicts = _classes(rows, three_way=three_way)
    # Where labels are of two kinds the verdicts are still of three: that is worth seeing.
    told = verdicts if three_way else [str(row.verdict) for row in rows]
    counts = Counter(f"{label}/{verdict}" for label, verdict in zip(labels, told, strict=True))
    return dict(sorted(counts.items()))


def _curve(rows: Rows) -> tuple[RiskPoint, ...]:
    if not rows:
        return ()
    sure = [max(support, 1.0 - support) for support in _support(rows)]
    points = risk_coverage(sure, [float(row.is_right) for row in rows])
    step = max(1, -(-len(points) // _CURVE_POINTS))
    return (*points[: len(points) - 1 : step], points[-1])
