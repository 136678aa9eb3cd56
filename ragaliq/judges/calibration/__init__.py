"""Making a judge's confidence a probability, from claims that people have labelled."""

from ragaliq.judges.calibration.fitting import fit_calibration
from ragaliq.judges.calibration.judge import CalibratedJudge
from ragaliq.judges.calibration.model import (
    CALIBRATION_VERSION,
    Calibration,
    CalibrationFigures,
    Side,
    raw_support,
)
from ragaliq.judges.calibration.points import OperatingPoint

__all__ = [
    "CALIBRATION_VERSION",
    "CalibratedJudge",
    "Calibration",
    "CalibrationFigures",
    "OperatingPoint",
    "Side",
    "fit_calibration",
    "raw_support",
]
