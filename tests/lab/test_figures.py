"""The figures of a judge, and the comparison of two."""

from functools import cache

import pytest
from bench_claims import decided

from ragaliq import DatasetError, LocalJudge
from ragaliq.lab.agreement import auroc, balanced_accuracy, kappa, macro_f1
from ragaliq.lab.bench import JudgeBench, bench_of, compare_benches, judge_figures

VERDICTS = ("SUPPORTED", "CONTRADICTED", "NOT_ENOUGH_INFO")


def estimates(figures):
    return [figures.auroc, figures.balanced_accuracy, figures.macro_f1, figures.kappa, figures.ece]


def test_figures_are_those_of_the_statistics_and_lie_in_their_intervals():
    rows = decided(100)
    figures = judge_figures(rows)
    labels = [row.is_supported for row in rows]
    calls = [row.verdict == "SUPPORTED" for row in rows]
    assert figures.auroc.value == auroc([row.support for row in rows], labels)
    assert figures.balanced_accuracy.value == balanced_accuracy(labels, calls)
    assert figures.macro_f1.value == macro_f1(labels, calls)
    assert figures.kappa.value == kappa(labels, calls)
    for estimate in estimates(figures)[:4]:
        assert estimate.low < estimate.value < estimate.high
    assert figures.ece.low < figures.ece.high
    assert figures.median_seconds.value == pytest.approx(0.0505)
    assert figures.slowest_seconds == pytest.approx(0.095)
    assert figures.usage.requests == 100


def test_a_failure_enters_no_figure_but_is_counted_and_paid():
    rows = decided(100)
    failed = rows[0].model_copy(
        update={"id": "x", "verdict": None, "support": None, "failure": "judge_refused"}
    )
    without, with_failures = judge_figures(rows), judge_figures([*rows, failed, failed])
    assert estimates(with_failures) == estimates(without)
    assert with_failures.confusion == without.confusion
    assert (with_failures.claims, with_failures.scored) == (102, 100)
    assert with_failures.failures == {"judge_refused": 2}
    assert with_failures.usage.requests == 102


def test_claims_over_few_contexts_tell_less():
    alone, together = judge_figures(decided(60)), judge_figures(decided(60, per_context=6))
    assert together.auroc.value == alone.auroc.value
    assert together.auroc.effective_n == 10
    assert alone.auroc.effective_n == 60


def test_figures_that_labels_of_one_kind_do_not_define_are_left_out():
    figures = judge_figures([row for row in decided(60) if row.is_supported])
    assert estimates(figures)[:4] == [None] * 4
    assert figures.ece is not None


def test_a_perfect_judge_has_intervals_with_a_width():
    rows = [
        row.model_copy(
            update={
                "verdict": "SUPPORTED" if row.is_supported else "NOT_ENOUGH_INFO",
                "support": 1.0 if row.is_supported else 0.0,
            }
        )
        for row in decided(40)
    ]
    for estimate in estimates(judge_figures(rows))[:4]:
        assert estimate.value == 1.0
        assert estimate.low < 0.9
        assert estimate.method == "wilson"


def test_three_classes_are_told_apart_where_all_labels_do():
    rows = decided(90)
    labelled = [
        row.model_copy(update={"label": VERDICTS[n % 3], "is_supported": n % 3 == 0})
        for n, row in enumerate(rows)
    ]
    figures = judge_figures(labelled)
    assert figures.classes == 3
    labels, verdicts = [r.label for r in labelled], [r.verdict for r in labelled]
    assert figures.macro_f1.value == macro_f1(labels, verdicts)
    assert judge_figures(rows).classes == 2


def test_nothing_but_failures_gives_no_figure():
    failed = decided(2)[0].model_copy(
        update={"verdict": None, "support": None, "failure": "judge_error"}
    )
    figures = judge_figures([failed])
    assert estimates(figures) == [None] * 5
    assert (figures.confusion, figures.risk_coverage, figures.slowest_seconds) == ({}, (), None)


def test_a_bench_is_read_back_as_it_was_and_holds_groups(tmp_path):
    rows = [row.model_copy(update={"group": "ab"[n % 2]}) for n, row in enumerate(decided(80))]
    bench = bench_of(rows, LocalJudge(), data="claims.jsonl")
    assert list(bench.groups) == ["a", "b"]
    bench.save(tmp_path / "bench.json")
    assert JudgeBench.load(tmp_path / "bench.json") == bench
    assert bench_of(rows[::-1], LocalJudge(), data="claims.jsonl") == bench
    (tmp_path / "bench.json").write_text("{}")
    with pytest.raises(DatasetError, match="not a bench of a judge"):
        JudgeBench.load(tmp_path / "bench.json")


@cache
def benches(*skills, per_context=1):
    sides = [
        decided(80, skill=skill, seed=seed, per_context=per_context)
        for seed, skill in enumerate(skills, start=4)
    ]
    return [bench_of(rows, LocalJudge(), data="claims") for rows in sides]


def test_a_better_judge_is_clearly_better_and_a_judge_is_no_better_than_itself():
    worse, better = benches(0.65, 0.9)
    found = compare_benches(worse, better)
    assert found.pairs == 80
    for estimate in (found.accuracy, found.balanced_accuracy, found.auroc):
        assert 0 < estimate.low < estimate.value < estimate.high
    assert compare_benches(*benches(0.65, 0.9, per_context=8)).accuracy.effective_n == 10
    same = compare_benches(worse, worse)
    assert same.accuracy.value == 0.0


def test_only_claims_that_both_decided_are_compared():
    one, other = benches(0.7, 0.8)
    failed = other.judged[0].model_copy(
        update={"verdict": None, "support": None, "failure": "judge_error"}
    )
    partial = other.model_copy(update={"judged": (failed, *other.judged[1:-1])})
    found = compare_benches(one, partial)
    assert (found.pairs, found.left_out) == (78, 2)


def test_benches_of_other_data_are_not_compared():
    one, other = benches(0.7, 0.8)
    elsewhere = bench_of(decided(80, prefix="x"), LocalJudge(), data="others")
    with pytest.raises(DatasetError, match="another label or context"):
        compare_benches(one, elsewhere)
    renamed = [row.model_copy(update={"id": f"z{row.id}"}) for row in other.judged]
    with pytest.raises(DatasetError, match="share no claim"):
        compare_benches(one, other.model_copy(update={"judged": tuple(renamed)}))
