"""Figures computed once with other libraries; the calls stand beside the numbers.

numpy 2.4.6, scipy 1.17.1, scikit-learn 1.9.1, statsmodels 0.15.0, ppi-python (Y, f, U as below).
"""

import statistics

import pytest

from ragaliq.statistics import (
    auroc,
    brier_score,
    cohen_kappa,
    confusion,
    fit_isotonic,
    fit_platt,
    mcnemar,
    mean_estimate,
    prediction_powered_mean,
    wilson,
)
from ragaliq.statistics.intervals import (
    MeanVariance,
    binomial_cdf,
    regularized_beta,
    student_t_quantile,
)

TRUTH, PREDICTED = list("SSCNSSCCNNSSSCNSNNCS"), list("SSCNSCCCNSSSSNNSNCCS")
SCORES = [0.1, 0.4, 0.35, 0.8, 0.8, 0.2, 0.9, 0.4, 0.55, 0.6, 0.15, 0.7]
LABELS = [0, 0, 1, 1, 0, 0, 1, 1, 0, 1, 0, 1]
Y = [0.9, 0.2, 0.7, 1, 0.5, 0.3, 0.8, 0.6]
F = [0.8, 0.3, 0.9, 0.9, 0.4, 0.1, 0.7, 0.9]
U = [0.5, 0.6, 0.9, 1, 0.2, 0.3, 0.8, 0.7, 0.75, 0.95, 0.1, 0.6]


@pytest.mark.parametrize(
    ("probability", "df", "expected"),
    [  # scipy.stats.t.ppf(probability, df)
        (0.975, 1, 12.706204736174694),
        (0.975, 2, 4.302652729749462),
        (0.975, 4.5, 2.6589123472044034),
        (0.975, 30, 2.0422724563012378),
        (0.975, 1e6, 1.959966356814107),
        (0.9, 3, 1.637744353696209),
        (0.1, 3, -1.637744353696209),
    ],
)
def test_quantiles_of_students_distribution(probability, df, expected):
    assert student_t_quantile(probability, df=df) == pytest.approx(expected, rel=1e-9)


def test_incomplete_beta_and_binomial():
    # scipy.special.betainc(2.5, 7.25, .3); scipy.stats.binom.cdf(3, 10, .5), .cdf(480, 1000, .5)
    assert regularized_beta(0.3, a=2.5, b=7.25) == pytest.approx(0.6604822735819071, rel=1e-11)
    assert binomial_cdf(3, trials=10, probability=0.5) == pytest.approx(0.171875, rel=1e-11)
    assert binomial_cdf(480, trials=1000, probability=0.5) == pytest.approx(0.108724146602070)


def test_agreement():
    table = confusion(TRUTH, PREDICTED)
    # sklearn.metrics: accuracy_score, balanced_accuracy_score, f1_score(average="macro")
    assert table.accuracy == pytest.approx(0.8)
    assert table.balanced_accuracy == pytest.approx(0.7851851851851852)
    assert table.macro_f1 == pytest.approx(0.7811447811447811)


def test_kappa_and_its_interval():
    kappa = cohen_kappa(TRUTH, PREDICTED)
    # statsmodels cohens_kappa(table): kappa, kappa_low, kappa_upp
    assert kappa.value == pytest.approx(0.6911196911196911)
    assert kappa.interval == pytest.approx((0.4265953473557791, 0.9556440348836033))


def test_mcnemar_exact():
    first, second = [0] * 11 + [1] * 3, [1] * 11 + [0] * 3
    # statsmodels mcnemar([[0, 3], [11, 0]], exact=True).pvalue
    assert mcnemar(first, second).exact_p == pytest.approx(0.057373046875)
    # the same less scipy.stats.binom.pmf(3, 14, .5)
    assert mcnemar(first, second).mid_p == pytest.approx(0.057373046875 - 364 / 2**14)


def test_intervals():
    # statsmodels proportion_confint(3, 20, method="wilson")
    assert wilson(3 / 20, n=20) == pytest.approx((0.052368745896216595, 0.36041886474075696))
    # scipy.stats.t.interval(.95, 4, loc=mean, scale=sem)
    values = [0.2, 0.4, 0.9, 0.5, 0.7]
    mean = MeanVariance(0.54, statistics.variance(values) / 5, 4.0, (0.0, 1.0))
    assert mean.student_t() == pytest.approx((0.20452086150733456, 0.8754791384926655))
    # expit(scipy.stats.t.interval(.95, 4, loc=logit(mean), scale=sem / mean / (1 - mean)))
    assert mean_estimate(values).interval == pytest.approx((0.2332200403319863, 0.8191949615830064))
    values = SCORES + [score * score for score in SCORES]
    # scipy.stats.bootstrap((values,), mean, method="BCa", n_resamples=200_000)
    bootstrap = mean_estimate(values, resamples=10_000)
    assert bootstrap.interval == pytest.approx((0.2983, 0.5194), abs=0.006)


def test_ranking_and_calibration():
    # sklearn.metrics: roc_auc_score, brier_score_loss
    assert auroc(SCORES, LABELS) == pytest.approx(0.7777777777777778)
    assert brier_score(SCORES, LABELS) == pytest.approx(0.188125)


def test_platt_scaling():
    platt = fit_platt(SCORES, LABELS)
    # sklearn.calibration._SigmoidCalibration().fit(scores, labels): -a_, -b_
    assert platt.slope == pytest.approx(3.1435112262897458, abs=1e-4)
    assert platt.intercept == pytest.approx(-1.5590199590477223, abs=1e-4)


def test_isotonic_regression():
    curve = fit_isotonic(SCORES, LABELS)
    # sklearn.isotonic.IsotonicRegression(out_of_bounds="clip").fit(scores, labels).predict(places)
    places = [0, 0.1, 0.2, 0.37, 0.4, 0.5, 0.58, 0.6, 0.75, 0.8, 0.85, 1]
    expected = [0, 0, 0, 0.5, 0.5, 0.5, 0.65, 0.75, 0.75, 0.75, 0.875, 1]
    assert [curve(x) for x in places] == pytest.approx(expected)


def test_prediction_powered_mean_is_that_of_ppi_py():
    found = prediction_powered_mean(Y, F, U)
    # Its weight is ours times N / (n + N); ppi_py.ppi_mean_pointestimate(Y, f, U, lam=0), lam=1
    lam = found.weight * len(U) / (len(F) + len(U))
    assert 0.0 < lam < 1.0
    expected = (1 - lam) * 0.625 + lam * 0.6166666666666666
    assert found.estimate.value == pytest.approx(expected)
