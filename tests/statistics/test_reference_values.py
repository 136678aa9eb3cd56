"""Figures computed once with scipy 1.17.1 and statsmodels 0.15.0, whose calls stand above them."""

import statistics

import pytest

from ragaliq.statistics import hajek_mean, wilson
from ragaliq.statistics.intervals import MeanVariance, regularized_beta, student_t_quantile


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


def test_incomplete_beta():
    # scipy.special.betainc(2.5, 7.25, .3)
    assert regularized_beta(0.3, a=2.5, b=7.25) == pytest.approx(0.6604822735819071, rel=1e-11)


def test_intervals():
    # statsmodels proportion_confint(3, 20, method="wilson")
    assert wilson(3 / 20, n=20) == pytest.approx((0.052368745896216595, 0.36041886474075696))
    # scipy.stats.t.interval(.95, 4, loc=mean, scale=sem)
    values = [0.2, 0.4, 0.9, 0.5, 0.7]
    mean = MeanVariance(0.54, statistics.variance(values) / 5, 4.0, (0.0, 1.0))
    assert mean.student_t() == pytest.approx((0.20452086150733456, 0.8754791384926655))
    # expit(scipy.stats.t.interval(.95, 4, loc=logit(mean), scale=sem / mean / (1 - mean)))
    estimate = hajek_mean(values, [1.0] * 5)
    assert estimate.interval == pytest.approx((0.2332200403319863, 0.8191949615830064))
