"""Agreement, ranking and tests of two judges, against figures counted in another way."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import (
    balanced_accuracy_score,
    cohen_kappa_score,
    f1_score,
    roc_auc_score,
)

from ragaliq import DatasetError
from ragaliq.lab.agreement import (
    auroc,
    auroc_estimate,
    balanced_accuracy,
    kappa,
    kappa_estimate,
    macro_f1,
    risk_coverage,
)
from ragaliq.lab.resampling import percentile_interval

TRUTH, PREDICTED = list("SSCNSSCCNNSSSCNSNNCS"), list("SSCNSCCCNSSSSNNSNCCS")
CATEGORY = st.sampled_from("SCN")
SCORE = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.5, 1.0]))
LABELLED = st.lists(st.tuples(SCORE, st.integers(0, 1)), min_size=2, max_size=40).filter(
    lambda rows: len({label for _, label in rows}) == 2
)


def columns(rows):
    return [list(column) for column in zip(*rows, strict=True)]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(CATEGORY, CATEGORY), min_size=2, max_size=40))
def test_agreement_is_that_of_scikit_learn(rows):
    truth, predicted = columns(rows)
    if len({*truth, *predicted}) < 2:
        assert (macro_f1(truth, predicted), kappa(truth, predicted)) == (1.0, None)
        return
    expected = f1_score(truth, predicted, average="macro", zero_division=0.0)
    assert macro_f1(truth, predicted) == pytest.approx(expected)
    assert kappa(truth, predicted) == pytest.approx(cohen_kappa_score(truth, predicted))
    if set(predicted) <= set(truth):
        expected = balanced_accuracy_score(truth, predicted)
        assert balanced_accuracy(truth, predicted) == pytest.approx(expected)


@settings(max_examples=40, deadline=None)
@given(LABELLED)
def test_the_area_is_that_of_scikit_learn(rows):
    scores, labels = columns(rows)
    assert auroc(scores, labels) == pytest.approx(roc_auc_score(labels, scores))


def test_a_category_that_is_only_predicted_counts_as_missed():
    assert macro_f1(list("SSS"), list("SSC")) == pytest.approx(0.8 / 2)


def test_kappa_has_an_interval_and_one_category_has_no_kappa():
    found = kappa_estimate(TRUTH, PREDICTED)
    # statsmodels cohens_kappa(table) gives 0.427 to 0.956 by a formula for large samples
    assert found.low == pytest.approx(0.427, abs=0.06)
    assert found.high == pytest.approx(0.956, abs=0.06)
    everywhere = kappa_estimate(list("SSNC"), list("SSNC"))
    assert (everywhere.value, everywhere.high, everywhere.method) == (1.0, 1.0, "wilson")
    assert everywhere.low < 0.6
    assert kappa_estimate(list("SSS"), list("SSS")) is None


def test_an_area_has_an_interval_also_where_the_classes_are_apart():
    estimate = auroc_estimate([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
    assert (estimate.value, estimate.method) == (1.0, "wilson")
    assert estimate.low < 0.5
    scores = [i % 7 + 2 * (i % 2) for i in range(60)]
    mixed = auroc_estimate(scores, [i % 2 for i in range(60)])
    assert 0.5 < mixed.low < mixed.value < mixed.high < 1.0
    with pytest.raises(DatasetError, match="all are the same"):
        auroc_estimate([0.1, 0.2], [1, 1])


@given(LABELLED)
def test_the_abstention_curve_ends_with_everything_decided(rows):
    confidences, right = columns(rows)
    curve = risk_coverage(confidences, right)
    assert curve[-1].coverage == 1.0
    assert curve[-1].risk == pytest.approx(1 - sum(right) / len(right))
    assert [p.coverage for p in curve] == sorted({p.coverage for p in curve})
    assert curve == risk_coverage(*columns(sorted(rows)))


def test_clusters_are_drawn_whole():
    rows = [float(i % 2) for i in range(40)]

    def mean(drawn):
        return sum(drawn) / len(drawn)

    alone = percentile_interval(rows, mean)
    together = percentile_interval(rows, mean, clusters=[i % 2 for i in range(40)])
    assert alone[0] > 0.3
    assert together == (0.0, 1.0)  # two clusters: one may be drawn twice
    assert alone == percentile_interval(rows, mean)


def test_a_figure_that_resamples_cannot_define_is_refused_rather_than_guessed():
    with pytest.raises(DatasetError, match="not defined"):
        percentile_interval([1, 2], lambda rows: None)
    with pytest.raises(DatasetError, match="at least two"):
        percentile_interval([1, 2], len, clusters="aa")
