"""Measuring judges on labelled claims, and comparing two of them."""

from ragaliq.bench.comparing import JudgeComparison, compare_benches
from ragaliq.bench.figures import JudgeFigures, judge_figures
from ragaliq.bench.journal import Journal, journal_settings
from ragaliq.bench.judged import JudgedClaim
from ragaliq.bench.judging import judge_claims
from ragaliq.bench.reliability_svg import reliability_svg
from ragaliq.bench.result import BENCH_VERSION, JudgeBench, bench_of

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
