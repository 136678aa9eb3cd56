"""Intervals, estimates from samples, and measures of judges; no dependency beside Python.

Pure functions over sequences. Whatever draws random numbers takes a seed and gives the same
figure every time. Settings out of range raise ConfigurationError, data that cannot be counted
(none, NaN, lengths that differ, probabilities outside (0, 1]) DatasetError.
"""

from ragaliq.statistics.agreement import Confusion, McNemar, cohen_kappa, confusion, mcnemar
from ragaliq.statistics.bootstrap import bca_mean_interval, percentile_interval
from ragaliq.statistics.calibration import (
    ReliabilityBin,
    brier_score,
    expected_calibration_error,
    reliability_table,
)
from ragaliq.statistics.calibrators import (
    IsotonicCalibrator,
    PlattCalibrator,
    cross_validated,
    fit_isotonic,
    fit_platt,
)
from ragaliq.statistics.estimates import Estimate
from ragaliq.statistics.interval_formulas import wilson
from ragaliq.statistics.intervals import mean_estimate, share_estimate, student_t_interval
from ragaliq.statistics.paired import PairedDifference, paired_difference
from ragaliq.statistics.prediction_powered import PredictionPowered, prediction_powered_mean
from ragaliq.statistics.ranking import RiskPoint, auroc, auroc_estimate, risk_coverage
from ragaliq.statistics.sampling import (
    effective_sample_size,
    hajek_mean,
    horvitz_thompson_mean,
    horvitz_thompson_total,
)

__all__ = [
    "Confusion",
    "Estimate",
    "IsotonicCalibrator",
    "McNemar",
    "PairedDifference",
    "PlattCalibrator",
    "PredictionPowered",
    "ReliabilityBin",
    "RiskPoint",
    "auroc",
    "auroc_estimate",
    "bca_mean_interval",
    "brier_score",
    "cohen_kappa",
    "confusion",
    "cross_validated",
    "effective_sample_size",
    "expected_calibration_error",
    "fit_isotonic",
    "fit_platt",
    "hajek_mean",
    "horvitz_thompson_mean",
    "horvitz_thompson_total",
    "mcnemar",
    "mean_estimate",
    "paired_difference",
    "percentile_interval",
    "prediction_powered_mean",
    "reliability_table",
    "risk_coverage",
    "share_estimate",
    "student_t_interval",
    "wilson",
]
