"""The laboratory: labels, measured and calibrated judges, quality as reviewers would see it.

An annex: the main house reaches its commands by entry points and imports none of it. Figures of
judges need scipy and scikit-learn: `pip install 'ragaliq[lab]'`.
"""

from ragaliq.lab.alarm import QualityAlarm, QualityChange
from ragaliq.lab.bench import (
    JudgeBench,
    JudgeComparison,
    JudgeFigures,
    bench_of,
    compare_benches,
)
from ragaliq.lab.calibration import fit_calibration
from ragaliq.lab.judging import JudgedClaim, judge_claims
from ragaliq.lab.labels import Labels, draw_answers, read_labels
from ragaliq.lab.quality import QualitySeries, QualityWeek, quality_of, stored_quality

__all__ = [
    "JudgeBench",
    "JudgeComparison",
    "JudgeFigures",
    "JudgedClaim",
    "Labels",
    "QualityAlarm",
    "QualityChange",
    "QualitySeries",
    "QualityWeek",
    "bench_of",
    "compare_benches",
    "draw_answers",
    "fit_calibration",
    "judge_claims",
    "quality_of",
    "read_labels",
    "stored_quality",
]
