"""Measuring judges on labelled claims, and comparing two of them."""

from ragaliq.bench.figures import (
    BENCH_VERSION,
    JudgeBench,
    JudgeComparison,
    JudgeFigures,
    bench_of,
    compare_benches,
    judge_figures,
)
from ragaliq.bench.judging import Journal, JudgedClaim, journal_settings, judge_claims
from ragaliq.bench.reliability_svg import reliability_svg

__all__ = [
    "BENCH_VERSION",
    "Journal",
    "JudgeBench",
    "JudgeComparison",
    "JudgeFigures",
    "JudgedClaim",
    "bench_of",
    "compare_benches",
    "journal_settings",
    "judge_claims",
    "judge_figures",
    "reliability_svg",
]
