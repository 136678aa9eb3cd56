"""A calibration: what a judge's confidence is worth on claims that people have labelled."""

from __future__ import annotations

import json
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ragaliq.errors import ConfigurationError
from ragaliq.judges.base import ClaimVerdict
from ragaliq.judges.calibration.points import (
    OperatingPoint,
    certainty_below,
    flagged_precision,
    supported_precision,
)
from ragaliq.statistics import IsotonicCalibrator, PlattCalibrator

__all__ = [
    "CALIBRATION_VERSION",
    "Calibration",
    "CalibrationFigures",
    "Side",
    "raw_support",
]

CALIBRATION_VERSION = 1

Side = Literal["faithfulness", "hallucination"]
"""What a threshold is for: calling claims supported, or flagging them as unsupported."""


def raw_support(verdict: ClaimVerdict) -> float:
    """How far a verdict speaks for the claim, 0 to 1, as every judge's confidence has it."""
    if verdict.verdict == "SUPPORTED":
        return verdict.confidence
    return 1.0 - verdict.confidence


class CalibrationFigures(BaseModel):
    """How good the calibration is, on labels that were left out when the curve was fitted.

    Attributes:
        brier: Brier score of the calibrated probabilities (cross-validated).
        brier_uncalibrated: The same of the judge's own confidences.
        log_loss: Mean negative log-likelihood of the calibrated probabilities.
        ece: Expected calibration error, ten bins of equal mass.
        ece_uncalibrated: The same of the judge's own confidences.
        auroc: How well the judge ranks supported claims above others; calibration changes it not.
        auroc_interval: Its 95 % interval.
        tried: Cross-validated Brier score of each kind of curve that was tried.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    brier: float
    brier_uncalibrated: float
    log_loss: float
    ece: float
    ece_uncalibrated: float
    auroc: float
    auroc_interval: tuple[float, float]
    tried: dict[str, float]


class Calibration(BaseModel):
    """A map from one judge's confidence to the probability that a claim is supported.

    It holds for the judge it was made for, and for claims like those that were labelled.

    Attributes:
        schema_version: Of this form.
        judge: Name of the judge.
        model: The judge's model, when it has one.
        fingerprint: Of the judge's parameters or prompts.
        evaluators: The metrics whose claims it is about.
        created: The day it was made (UTC, ISO 8601).
        labels: Number of labelled claims.
        supported: Those with the label supported.
        method: `platt` or `isotonic`.
        curve: The fitted curve over the judge's support.
        supported_from: The probability from which on a claim counts as supported.
        precision: The precision `supported_from` was chosen for; None for 0.5, the likelier side.
        points: What share is supported from which probability on, rising in `at`.
        figures: How good it is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    schema_version: int = Field(default=CALIBRATION_VERSION, ge=1, le=CALIBRATION_VERSION)
    judge: str
    model: str | None = None
    fingerprint: str
    evaluators: tuple[str, ...] = ("faithfulness", "hallucination")
    created: str
    labels: int = Field(ge=1)
    supported: int = Field(ge=1)
    method: Literal["platt", "isotonic"]
    curve: PlattCalibrator | IsotonicCalibrator
    supported_from: float = Field(default=0.5, ge=0.0, le=1.0)
    precision: float | None = Field(default=None, gt=0.0, lt=1.0)
    points: tuple[OperatingPoint, ...] = Field(min_length=1)
    figures: CalibrationFigures

    @model_validator(mode="after")
    def _curve_rises(self) -> Self:
        if isinstance(self.curve, PlattCalibrator):
            rises = self.method == "platt" and self.curve.slope > 0.0
        else:
            scores, shares = self.curve.scores, self.curve.probabilities
            rises = (
                self.method == "isotonic"
                and len(scores) == len(shares) > 0
                and all(a < b for a, b in pairwise(scores))
                and all(a <= b for a, b in pairwise(shares))
                and 0.0 <= shares[0] <= shares[-1] <= 1.0
            )
        if not rises:
            raise ValueError("the curve must be of the method that is named, and rise")
        if any(a.at >= b.at or a.claims < b.claims for a, b in pairwise(self.points)):
            raise ValueError("the points must rise in `at` and fall in `claims`")
        if self.points[0][1:] != (self.labels, self.supported):
            raise ValueError("the first point must count all labels")
        return self

    @property
    def id(self) -> str:
        """Names the calibration: a hash of all it says, but for the day."""
        told = json.dumps(self.model_dump(mode="json", exclude={"created"}), sort_keys=True)
        digest = blake2b(told.encode(), digest_size=8, person=b"ragaliq-calibrat").hexdigest()
        return f"{self.judge}-{digest}"

    def support(self, raw: float) -> float:
        """The probability that a claim is supported.

        Never 0 or 1: n labels cannot tell a chance of less than about 1 in n from none
        (Laplace's rule of succession bounds it by 1 / (n + 2)).

        Args:
            raw: The judge's support, 0 to 1, see `raw_support`.
        """
        least = 1.0 / (self.labels + 2.0)
        return min(max(self.curve(raw), least), 1.0 - least)

    def threshold_for(self, precision: float, *, evaluator: Side = "faithfulness") -> float:
        """The probability from which on, or below which, a precision is reached.

        Reached means: the lower end of Wilson's one-sided 95 % interval over the labelled claims
        is at least `precision`.

        Args:
            precision: Wanted share of right decisions among those taken, between 0 and 1.
            evaluator: `faithfulness`: claims with at least this probability are supported;
                `hallucination`: claims with less than it are not supported.

        Raises:
            ConfigurationError: The labels do not show that any threshold reaches it.
        """
        if not 0.0 < precision < 1.0:
            raise ConfigurationError(f"precision must be between 0 and 1, got {precision}")
        if evaluator not in ("faithfulness", "hallucination"):
            raise ConfigurationError(
                f"no thresholds for {evaluator!r}; there are for faithfulness and hallucination"
            )
        precisions = supported_precision if evaluator == "faithfulness" else flagged_precision
        bounds = precisions(self.points)
        for at, bound in bounds:
            if bound >= precision:
                return at
        best = max((bound for _, bound in bounds), default=0.0)
        raise ConfigurationError(
            f"these {self.labels} labels do not show a precision of {precision:g} at any threshold "
            f"({evaluator}); the best they show is {best:.2f}. Ask for less, or label more claims"
        )

    def certainty_for(self, share: float) -> float:
        """The certainty below which this share of the labelled claims lies.

        A claim's certainty is the larger of its probabilities of being supported and of not being
        so. The threshold depends on the labels alone, and not on the traffic or its order.

        Args:
            share: 0 to 1; 0 gives a certainty no claim is below, 1 one no claim reaches.

        Raises:
            ConfigurationError: The share is out of range.
        """
        if not 0.0 <= share <= 1.0:
            raise ConfigurationError(f"share must be within [0, 1], got {share}")
        return certainty_below(self.points, share)

    def save(self, path: str | Path) -> None:
        """Write the calibration as JSON.

        Raises:
            ConfigurationError: The file cannot be written.
        """
        told = {"id": self.id, **self.model_dump(mode="json")}
        try:
            Path(path).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(f"{path}: {error.strerror or error}") from None

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a calibration that `save` wrote.

        Raises:
            ConfigurationError: The file is missing, no calibration, of a later version, or was
                changed after it was made.
        """
        told = _read(Path(path))
        name = told.pop("id", None)
        version = told.get("schema_version")
        if isinstance(version, int) and version > CALIBRATION_VERSION:
            raise ConfigurationError(f"{path} was made by a later ragaliq; update ragaliq")
        try:
            calibration = cls.model_validate(told)
        except ValidationError as error:
            problem = error.errors()[0]
            place = ".".join(str(part) for part in problem["loc"]) or "calibration"
            raise ConfigurationError(
                f"{path} is no calibration: {place}: {problem['msg']}; make one with "
                "`ragaliq calibrate`"
            ) from None
        if calibration.id != name:
            raise ConfigurationError(
                f"{path} was changed after it was made (its id does not fit); make a new one with "
                "`ragaliq calibrate`"
            )
        return calibration


def _read(path: Path) -> dict[str, object]:
    try:
        told = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise ConfigurationError(f"{path} is no calibration: it is not JSON") from None
    if not isinstance(told, dict):
        raise ConfigurationError(f"{path} is no calibration: it is no JSON object")
    return told
