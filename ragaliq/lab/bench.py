"""Figures of a judge on labelled claims, with intervals; comparison of two judges.

The documentation page "Measure a judge" explains the figures and their sources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ragaliq.core.files import replace_file
from ragaliq.core.results import JudgeUsage
from ragaliq.errors import DatasetError
from ragaliq.judges.base import LLMJudge
from ragaliq.lab.agreement import (
    RiskPoint,
    auroc,
    balanced_accuracy,
    kappa,
    macro_f1,
    risk_coverage,
)
from ragaliq.lab.curves import ReliabilityBin, expected_calibration_error, reliability_table
from ragaliq.lab.judging import JudgedClaim
from ragaliq.lab.resampling import percentile_interval, resampled_estimate
from ragaliq.statistics import Estimate, paired_difference

JudgedClaims = Sequence[JudgedClaim]

_CURVE_POINTS = 50


class JudgeFigures(BaseModel):
    """Figures of one group of claims, or of all.

    A figure is None where the claims do not define it: a ranking needs both kinds of label.

    Attributes:
        claims: Number of claims.
        scored: Number that the judge decided; all figures are about these.
        supported: Number of those that people call supported.
        failures: Failures of the judge by status; these claims are in no figure.
        classes: 3 if labels and verdicts have three classes, else 2.
        auroc: AUROC of the judge's support.
        balanced_accuracy: Mean share met of supported and of unsupported claims.
        macro_f1: Mean F1 of the classes.
        kappa: Agreement with the labels beyond chance.
        ece: Expected calibration error of the support, ten bins of equal mass.
        confusion: Counts of `label/verdict`.
        reliability: The bins behind `ece`.
        risk_coverage: Share of errors when only the surest claims are decided.
        median_seconds: Median seconds of a claim, with its interval.
        slowest_seconds: 95th percentile of the seconds of a claim.
        usage: Usage of all claims together, failed ones included.
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


def judge_figures(judged: JudgedClaims) -> JudgeFigures:
    """Compute all figures.

    Intervals are percentile bootstraps over contexts: whole contexts are drawn, since claims over
    one are not independent. If all resamples are equal, Wilson's interval is used, with the count
    of the rarer label as number of cases.
    """
    rows = [row for row in judged if row.failure is None]
    three_way = {row.label for row in rows} == {"SUPPORTED", "CONTRADICTED", "NOT_ENOUGH_INFO"}
    labels, _ = _classes(rows, three_way=three_way)
    # Where labels are of two kinds the verdicts are still of three: that is worth seeing.
    shown = zip(labels, (str(row.verdict) for row in rows), strict=True)
    seconds = sorted(row.seconds for row in rows)

    supported = sum(row.is_supported for row in rows)

    def estimate(statistic: Callable[[JudgedClaims], float | None]) -> Estimate | None:
        return resampled_estimate(
            rows,
            statistic,
            cases=min(supported, len(rows) - supported),
            clusters=[row.cluster for row in rows],
        )

    def of_classes(
        figure: Callable[[Sequence[str], Sequence[str]], float | None],
    ) -> Estimate | None:
        def defined(some: JudgedClaims) -> float | None:
            return figure(*_classes(some, three_way=three_way)) if _has_both(some) else None

        return estimate(defined)

    return JudgeFigures(
        claims=len(judged),
        scored=len(rows),
        supported=supported,
        failures=dict(Counter(row.failure for row in judged if row.failure is not None)),
        classes=3 if three_way else 2,
        auroc=estimate(ranking),
        balanced_accuracy=estimate(accuracy_of),
        macro_f1=of_classes(macro_f1),
        kappa=of_classes(kappa),
        ece=estimate(lambda some: expected_calibration_error(_support(some), _labels(some))),
        confusion=dict(sorted(Counter("/".join(pair) for pair in shown).items())),
        reliability=tuple(reliability_table(_support(rows), _labels(rows))) if rows else (),
        risk_coverage=_curve(rows) if rows else (),
        median_seconds=estimate(lambda some: median(row.seconds for row in some)),
        slowest_seconds=seconds[max(0, -(-len(seconds) * 19 // 20) - 1)] if seconds else None,
        usage=sum((row.usage for row in judged), JudgeUsage()),
    )


def _support(rows: JudgedClaims) -> list[float]:
    return [row.support for row in rows if row.support is not None]


def _labels(rows: JudgedClaims) -> list[float]:
    return [float(row.is_supported) for row in rows]


def _classes(rows: JudgedClaims, *, three_way: bool) -> tuple[list[str], list[str]]:
    if three_way:
        return [str(row.label) for row in rows], [str(row.verdict) for row in rows]
    names = {True: "SUPPORTED", False: "NOT_SUPPORTED"}
    return (
        [names[row.is_supported] for row in rows],
        [names[row.verdict == "SUPPORTED"] for row in rows],
    )


def _has_both(rows: JudgedClaims) -> bool:
    return len({row.is_supported for row in rows}) == 2


def ranking(rows: JudgedClaims) -> float | None:
    """The AUROC of the judge's support; None with one kind of label."""
    return auroc(_support(rows), _labels(rows)) if _has_both(rows) else None


def accuracy_of(rows: JudgedClaims) -> float | None:
    """Mean share met of supported and of unsupported claims; None with one kind of label."""
    return balanced_accuracy(*_classes(rows, three_way=False)) if _has_both(rows) else None


def _curve(rows: JudgedClaims) -> tuple[RiskPoint, ...]:
    sure = [max(support, 1.0 - support) for support in _support(rows)]
    points = risk_coverage(sure, [row.is_right for row in rows])
    step = max(1, -(-len(points) // _CURVE_POINTS))
    return (*points[: len(points) - 1 : step], points[-1])


# A bench: the figures with the decisions behind them.

BENCH_VERSION = 1


class JudgeBench(BaseModel):
    """Figures over all claims and group by group, with the decisions behind them; no text.

    Attributes:
        schema_version: Of this form.
        data: Name of the file of labelled claims.
        judge: Name of the judge.
        model: Its model, when it has one.
        fingerprint: Of its parameters or prompts.
        calibration: Id of its calibration; `uncalibrated` without one.
        created: The day it was made (UTC, ISO 8601).
        overall: Figures over all claims.
        groups: Figures of each group, where there are several.
        judged: The decisions.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    schema_version: int = Field(default=BENCH_VERSION, ge=1, le=BENCH_VERSION)
    data: str
    judge: str
    model: str | None = None
    fingerprint: str
    calibration: str
    created: str
    overall: JudgeFigures
    groups: dict[str, JudgeFigures] = Field(default_factory=dict)
    judged: tuple[JudgedClaim, ...]

    @property
    def title(self) -> str:
        """The judge in words."""
        name = f"{self.judge} ({self.model})" if self.model else self.judge
        return f"{name}, {self.calibration}"

    def save(self, path: str | Path) -> None:
        """Write the bench as JSON.

        Raises:
            DatasetError: The file cannot be written.
        """
        replace_file(path, self.model_dump_json(indent=1) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a bench that `save` wrote.

        Raises:
            DatasetError: The file is missing or no bench.
        """
        try:
            return cls.model_validate_json(Path(path).read_bytes())
        except OSError as error:
            raise DatasetError(f"{path}: {error.strerror or error}") from None
        except ValidationError as error:
            place = ".".join(str(part) for part in error.errors()[0]["loc"]) or "it"
            raise DatasetError(
                f"{path} is not a bench of a judge ({place} is not as ragaliq writes it); make one "
                "with `ragaliq judge bench DATA --out bench.json`"
            ) from None


def bench_of(judged: Sequence[JudgedClaim], judge: LLMJudge, *, data: str) -> JudgeBench:
    """Compute the figures of what a judge decided about the claims of the file named `data`.

    Raises:
        DatasetError: There are no decisions.
    """
    if not judged:
        raise DatasetError(f"{data}: no claim was judged")
    rows = sorted(judged, key=lambda row: row.id)
    names = sorted({row.group for row in rows})
    groups = {
        name or "(none)": judge_figures([row for row in rows if row.group == name])
        for name in names
    }
    return JudgeBench(
        data=data,
        judge=judge.name,
        model=judge.model,
        fingerprint=judge.fingerprint(),
        calibration=judge.calibration,
        created=datetime.now(UTC).date().isoformat(),
        overall=judge_figures(rows),
        groups=groups if len(groups) > 1 else {},
        judged=tuple(rows),
    )


# Two judges on the same claims.

JudgedPair = tuple[JudgedClaim, JudgedClaim]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeComparison:
    """The second judge against the first, over the claims that both decided.

    Attributes:
        pairs: Number of those claims.
        left_out: Claims that only one has, or on which one failed.
        accuracy: Difference of the shares that are right, second minus first.
        balanced_accuracy: Difference of the balanced accuracies; None with one kind of label.
        auroc: Difference of the AUROCs; None with one kind of label.
    """

    pairs: int
    left_out: int
    accuracy: Estimate
    balanced_accuracy: Estimate | None
    auroc: Estimate | None


def compare_benches(first: JudgeBench, second: JudgeBench) -> JudgeComparison:
    """Compare claim by claim, so that what makes a claim hard for both cancels out.

    Raises:
        DatasetError: The benches share no claim that both decided, or their labels differ.
    """
    one, other = (
        {row.id: row for row in bench.judged if row.failure is None} for bench in (first, second)
    )
    pairs = [(one[key], other[key]) for key in sorted(one.keys() & other.keys())]
    if not pairs:
        raise DatasetError("the two benches share no claim that both judges decided")
    for a, b in pairs:
        if (a.is_supported, a.cluster) != (b.is_supported, b.cluster):
            raise DatasetError(
                f"claim {a.id!r} has another label or context in the other bench; compare benches "
                "over the same data"
            )
    right = [[row.is_right for row in side] for side in zip(*pairs, strict=True)]
    accuracy = None
    if len({a.cluster for a, _ in pairs}) < len(pairs):
        # Claims over one context are not independent: taken one by one they promise too much.
        accuracy = _difference(pairs, lambda rows: sum(row.is_right for row in rows) / len(rows))
    if accuracy is None or accuracy.low >= accuracy.high:
        accuracy = paired_difference(*right).difference
    everything = {row.id for row in (*first.judged, *second.judged)}
    return JudgeComparison(
        pairs=len(pairs),
        left_out=len(everything) - len(pairs),
        accuracy=accuracy,
        balanced_accuracy=_difference(pairs, accuracy_of),
        auroc=_difference(pairs, ranking),
    )


def _difference(
    pairs: Sequence[JudgedPair], figure: Callable[[JudgedClaims], float | None]
) -> Estimate | None:
    def difference(some: Sequence[JudgedPair]) -> float | None:
        first, second = figure([a for a, _ in some]), figure([b for _, b in some])
        return None if first is None or second is None else second - first

    value = difference(pairs)
    clusters = [a.cluster for a, _ in pairs]
    contexts = len(set(clusters))
    if value is None or contexts < 2:
        return None
    # Both judges are resampled together: drawn apart, the interval would be far too wide.
    low, high = percentile_interval(pairs, difference, clusters=clusters)
    return Estimate(
        value=value,
        low=low,
        high=high,
        method="paired_percentile_bootstrap",
        n=len(pairs),
        effective_n=contexts,
    )
