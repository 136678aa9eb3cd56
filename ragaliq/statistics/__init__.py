"""Intervals, estimates from samples, and measures of judges; no dependency but Python.

Pure functions over sequences. Whatever draws random numbers takes a seed and gives the same
figure every time. Settings out of range raise ConfigurationError, data that cannot be counted
(none, NaN, lengths that differ, probabilities outside (0, 1]) DatasetError.
"""

from ragaliq.statistics.agreement import (
    Confusion,
    McNemar,
    RiskPoint,
    auroc,
    auroc_estimate,
    cohen_kappa,
    confusion,
    mcnemar,
    risk_coverage,
)
from ragaliq.statistics.calibration import (
    IsotonicCalibrator,
    PlattCalibrator,
    ReliabilityBin,
    brier_score,
    cross_validated,
    expected_calibration_error,
    fit_isotonic,
    fit_platt,
    reliability_table,
)
from ragaliq.statistics.intervals import (
    Estimate,
    PairedDifference,
    mean_estimate,
    paired_difference,
    percentile_interval,
    wilson,
)
from ragaliq.statistics.sampling import (
    PredictionPowered,
    hajek_mean,
    prediction_powered_mean,
)
from ragaliq.statistics.sequential import Shift, ShiftTest, confidence_sequence

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
    "Shift",
    "ShiftTest",
    "auroc",
    "auroc_estimate",
    "brier_score",
    "cohen_kappa",
    "confidence_sequence",
    "confusion",
    "cross_validated",
    "expected_calibration_error",
    "fit_isotonic",
    "fit_platt",
    "hajek_mean",
    "mcnemar",
    "mean_estimate",
    "paired_difference",
    "percentile_interval",
    "prediction_powered_mean",
    "reliability_table",
    "risk_coverage",
    "wilson",
]
