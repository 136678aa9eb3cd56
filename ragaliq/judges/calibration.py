"""Calibrated judge: its verdicts follow a curve or a level that `ragaliq calibrate` found."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ragaliq.core.results import ClaimDetail
from ragaliq.errors import ConfigurationError
from ragaliq.judges.base import (
    BatchingJudge,
    ClaimsResult,
    ClaimVerdict,
    JudgeResult,
    LLMJudge,
    VerdictsResult,
)
from ragaliq.statistics import wilson

# --- The judge --------------------------------------------------------------------------------


class CalibratedJudge(BatchingJudge):
    """Wraps a judge and replaces its confidence by a probability fitted to labels.

    The confidence of SUPPORTED is the probability that the claim is supported, that of the other
    verdicts the probability that it is not. A claim counts as supported from
    `calibration.min_support` on, whatever the judge's own verdict. CONTRADICTED stays, since it
    needs a positive sign, not a low score. Without context nothing is supported, with certainty.

    A calibration of unlabelled claims has no curve: the confidence stays the judge's own, and only
    `min_support` moves.

    Scores of relevance are passed through: labels of claims say nothing about them.

    Args:
        judge: The judge.
        calibration: The calibration for this judge, or its file.

    Raises:
        ConfigurationError: It was made for another judge, model, parameters or prompts; or the
            judge is not a `BatchingJudge`.
    """

    sure_from = 0.9  # nine of ten such verdicts are right: the confidence is a probability

    def __init__(self, judge: LLMJudge, calibration: Calibration | str | Path) -> None:
        if not isinstance(judge, BatchingJudge):
            raise ConfigurationError(
                f"a calibration needs a BatchingJudge, and {type(judge).__name__} is none"
            )
        if isinstance(judge, CalibratedJudge):
            raise ConfigurationError(f"{judge.name} is calibrated already, by {judge.calibration}")
        if not isinstance(calibration, Calibration):
            calibration = Calibration.load(calibration)
        problem = ""
        if calibration.judge != judge.name:
            problem = f"it was made for judge {calibration.judge!r}, not {judge.name!r}"
        elif calibration.model != judge.model:
            problem = f"it was made for model {calibration.model!r}, not {judge.model!r}"
        elif calibration.fingerprint != judge.fingerprint():
            problem = f"the parameters or prompts of {judge.name!r} have changed since it was made"
        if problem:
            raise ConfigurationError(
                f"calibration {calibration.id} cannot be used: {problem}; make a new one with "
                "`ragaliq calibrate`"
            )
        if not calibration.labels:
            if judge.min_support is None:
                raise ConfigurationError(
                    f"calibration {calibration.id} cannot be used: {judge.name!r} has no threshold "
                    "that unlabelled claims can move"
                )
            self.sure_from = judge.sure_from
            self.min_support = calibration.min_support
        self.judge, self.curve = judge, calibration
        self.name, self.model, self.kind = judge.name, judge.model, judge.kind
        self.calibration, self.costs_money = calibration.id, judge.costs_money
        self.max_context_chars = judge.max_context_chars
        self.max_answer_chars = judge.max_answer_chars
        self.max_claims = judge.max_claims
        self.default_metrics = judge.default_metrics

    def fingerprint(self) -> str:
        """Fingerprint of the wrapped judge."""
        return self.judge.fingerprint()

    @property
    def is_unpriced(self) -> bool:
        """True if the wrapped judge's replies will have no price."""
        return self.judge.is_unpriced

    @property
    def plan(self) -> dict[str, Any] | None:
        """Plan of the wrapped judge, with the calibration."""
        plan = self.judge.plan
        if not isinstance(plan, dict) or type(self) is not CalibratedJudge:
            return None
        return plan | {"calibration": self.curve.model_dump(mode="json")}

    def unload(self) -> None:
        """Free the memory of the wrapped judge's model."""
        self.judge.unload()

    def estimate(self) -> LLMJudge:
        """Return the wrapped judge's estimate; the curve changes verdicts, not what is asked.

        A judge that is its own estimate keeps the curve, by which a cascade escalates.
        """
        estimating = self.judge.estimate()
        return self if estimating is self.judge else estimating

    def answered_by(self, send: Callable[..., Any]) -> CalibratedJudge:
        """Return a copy of the judge that gets its replies from `send`; raises as `LLMJudge`."""
        return CalibratedJudge(self.judge.answered_by(send), self.curve)

    async def extract_statements(self, query: str, response: str) -> ClaimsResult:
        """As the judge does."""
        return await self.judge.extract_statements(query, response)

    async def verify_claims(self, claims: Sequence[str], context: Sequence[str]) -> VerdictsResult:
        """Decide all claims by their calibrated probabilities."""
        reply = await self.judge.verify_claims(claims, context)
        verdicts = [self._calibrated(verdict, context) for verdict in reply.verdicts]
        return reply.model_copy(update={"verdicts": verdicts})

    async def grade_statements(
        self, query: str, response: str, context: Sequence[str]
    ) -> VerdictsResult:
        """Find the answer's claims and decide them by their calibrated probabilities."""
        reply = await self.judge.grade_statements(query, response, context)
        statements = [self._calibrated(statement, context) for statement in reply.verdicts]
        return reply.model_copy(update={"verdicts": statements})

    async def evaluate_relevance(self, query: str, response: str) -> JudgeResult:
        """As the judge does; not calibrated."""
        return await self.judge.evaluate_relevance(query, response)

    async def evaluate_context_relevance(self, query: str, chunk: str) -> JudgeResult:
        """As the judge does; not calibrated."""
        return await self.judge.evaluate_context_relevance(query, chunk)

    async def aclose(self) -> None:
        """Release the wrapped judge's resources."""
        await self.judge.aclose()

    def _calibrated(self, verdict: ClaimVerdict, context: Sequence[str]) -> ClaimVerdict:
        if not any(chunk.strip() for chunk in context):
            return verdict.model_copy(update={"calibration": self.calibration})
        probability = round(self.curve.support(raw_support(verdict)), 4)
        decided, reason = verdict.verdict, verdict.reason
        is_supported = probability >= self.curve.min_support
        if decided != "CONTRADICTED" and is_supported != (decided == "SUPPORTED"):
            decided = "SUPPORTED" if is_supported else "NOT_ENOUGH_INFO"
            reason += (
                f" By the calibration, support has a chance of {probability:.0%}."
                if self.curve.labels
                else f" The application's claims count as supported from {self.curve.min_support}."
            )
        return verdict.model_copy(
            update={
                "verdict": decided,
                "confidence": probability if decided == "SUPPORTED" else 1.0 - probability,
                "reason": reason.strip(),
                "calibration": self.calibration,
            }
        )


# --- The curves -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlattCalibrator:
    """A logistic curve: 1 / (1 + exp(-(slope * score + intercept)))."""

    slope: float
    intercept: float

    def __call__(self, score: float) -> float:
        """The probability of label 1 at this score."""
        return 0.5 + 0.5 * math.tanh(0.5 * (self.slope * score + self.intercept))


@dataclass(frozen=True, slots=True)
class IsotonicCalibrator:
    """A rising curve through points, straight between them and level outside.

    Attributes:
        scores: Rising scores.
        probabilities: The probability of label 1 at each, never falling.
    """

    scores: tuple[float, ...]
    probabilities: tuple[float, ...]

    def __call__(self, score: float) -> float:
        """The probability of label 1 at this score."""
        place = bisect_right(self.scores, score)
        if place == 0:
            return self.probabilities[0]
        if place == len(self.scores):
            return self.probabilities[-1]
        left, right = self.scores[place - 1], self.scores[place]
        low, high = self.probabilities[place - 1], self.probabilities[place]
        return low + (high - low) * (score - left) / (right - left)


# --- The calibration --------------------------------------------------------------------------

CALIBRATION_VERSION = 1

# Two-sided, so that a precision is reached with a certainty of 95 % on one side.
_SURE = 0.9

Side = Literal["faithfulness", "hallucination"]
"""What a threshold is for: calling claims supported, or flagging them as unsupported."""


def raw_support(verdict: ClaimVerdict | ClaimDetail) -> float:
    """Support of a claim by a verdict's confidence, 0 to 1."""
    if verdict.verdict == "SUPPORTED":
        return verdict.confidence
    return 1.0 - verdict.confidence


def never_certain(probability: float, labels: int) -> float:
    """Bound a probability away from 0 and 1 by what so many labels can show."""
    least = 1.0 / (labels + 2.0)
    return min(max(probability, least), 1.0 - least)


class OperatingPoint(NamedTuple):
    """Labelled claims at or above a probability.

    Attributes:
        at: The calibrated probability of support.
        claims: Labelled claims with at least this probability.
        supported: Those of them that people call supported.
    """

    at: float
    claims: int
    supported: int


class CalibrationFigures(BaseModel):
    """Quality of the calibration on labels that were not used for fitting the curve.

    Attributes:
        brier: Brier score of the calibrated probabilities (cross-validated).
        brier_uncalibrated: The same of the judge's own confidences.
        ece: Expected calibration error, ten bins of equal mass.
        ece_uncalibrated: The same of the judge's own confidences.
        auroc: AUROC of the judge's ranking, which calibration does not change.
        auroc_interval: Its 95 % interval.
        tried: Cross-validated Brier score of each kind of curve that was tried.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    brier: float
    brier_uncalibrated: float
    ece: float
    ece_uncalibrated: float
    auroc: float
    auroc_interval: tuple[float, float]
    tried: dict[str, float]


def level_prefix(judge: str) -> str:
    """Start of the ids of calibrations that leave a judge's confidence as it is."""
    return f"{judge}-level-"


class Calibration(BaseModel):
    """A map from one judge's confidence to the probability that a claim is supported.

    It holds for the judge it was made for, and for claims like those that were labelled.

    Attributes:
        schema_version: Of this form.
        judge: Name of the judge.
        model: The judge's model, when it has one.
        fingerprint: Of the judge's parameters or prompts.
        created: The day it was made (UTC, ISO 8601).
        labels: Number of labelled claims; 0 where it is made of unlabelled ones.
        supported: Those with the label supported.
        unlabelled: Number of unlabelled claims it is made of instead.
        method: `platt`, `isotonic` or, of unlabelled claims, `level`.
        curve: The fitted curve over the judge's support; of unlabelled claims the support itself.
        min_support: The probability, or support, from which on a claim counts as supported: 0.5,
            the likelier side, the operating point that was asked for, or `threshold_of` unlabelled
            claims.
        precision: The precision `min_support` was chosen for, if it was.
        points: What share is supported from which probability on, rising in `at`.
        figures: How good it is, as far as labels show.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    schema_version: int = Field(default=CALIBRATION_VERSION, ge=1, le=CALIBRATION_VERSION)
    judge: str
    model: str | None = None
    fingerprint: str
    created: str
    labels: int = Field(ge=0)
    supported: int = Field(ge=0)
    unlabelled: int = Field(default=0, ge=0)
    method: Literal["platt", "isotonic", "level"]
    curve: PlattCalibrator | IsotonicCalibrator
    min_support: float = Field(default=0.5, ge=0.0, le=1.0)
    precision: float | None = Field(default=None, gt=0.0, lt=1.0)
    points: tuple[OperatingPoint, ...] = ()
    figures: CalibrationFigures | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        is_labelled = bool(self.labels and self.supported and self.points and self.figures)
        if is_labelled == (self.method == "level") or bool(self.labels) == bool(self.unlabelled):
            raise ValueError("its claims, method and figures do not fit")
        return self

    @property
    def id(self) -> str:
        """Name of the judge and hash of the calibration's content, except the day."""
        said = json.dumps(self.model_dump(mode="json", exclude={"created"}), sort_keys=True)
        digest = blake2b(said.encode(), digest_size=8, person=b"ragaliq-calibrat").hexdigest()
        return f"{self.judge}-{digest}" if self.labels else f"{level_prefix(self.judge)}{digest}"

    def support(self, raw: float) -> float:
        """The probability that a claim is supported.

        Never 0 or 1: n labels cannot tell a chance of less than about 1 in n from none
        (Laplace's rule of succession bounds it by 1 / (n + 2)).

        Args:
            raw: The judge's support, 0 to 1, see `raw_support`; with a `level` it is returned.
        """
        if not self.labels:
            return raw
        return never_certain(self.curve(raw), self.labels)

    def threshold_for(self, precision: float, *, metric: Side = "faithfulness") -> float:
        """Probability threshold for a wanted precision.

        It is reached if the lower end of Wilson's one-sided 95 % interval over the labelled claims
        is at least `precision`.

        Args:
            precision: Wanted share of right decisions among those taken, between 0 and 1.
            metric: `faithfulness`: claims with at least this probability are supported;
                `hallucination`: claims with less than it are not supported.

        Raises:
            ConfigurationError: The labels do not show that any threshold reaches it.
        """
        if not 0.0 < precision < 1.0:
            raise ConfigurationError(f"precision must be between 0 and 1, got {precision}")
        if not self.labels:
            raise ConfigurationError(
                f"calibration {self.id} is made of unlabelled claims, which show no precision; "
                "make one of labels"
            )
        if metric not in ("faithfulness", "hallucination"):
            raise ConfigurationError(
                f"no thresholds for {metric!r}; there are for faithfulness and hallucination"
            )
        bounds = []  # what most claims are decided by first
        for point in self.points:
            passed, right = point.claims, point.supported
            if metric == "hallucination":
                passed = self.labels - passed
                right = passed - (self.supported - right)
            if passed:
                bounds.append((point.at, wilson(right / passed, n=passed, confidence=_SURE)[0]))
        if metric == "hallucination":
            bounds.reverse()
        for at, bound in bounds:
            if bound >= precision:
                return at
        best = max((bound for _, bound in bounds), default=0.0)
        raise ConfigurationError(
            f"these {self.labels} labels do not show a precision of {precision:g} at any threshold "
            f"({metric}); the best they show is {best:.2f}. Ask for less, or label more claims"
        )

    def save(self, path: str | Path) -> None:
        """Write the calibration as JSON.

        Raises:
            ConfigurationError: The file cannot be written.
        """
        said = {"id": self.id, **self.model_dump(mode="json")}
        try:
            Path(path).write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(f"{path}: {error.strerror or error}") from None

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a calibration that `save` wrote.

        Raises:
            ConfigurationError: The file is missing, not a calibration, of a later version, or was
                changed after it was made.
        """
        try:
            said = json.loads(Path(path).read_text("utf-8"))
        except OSError as error:
            raise ConfigurationError(f"{path}: {error.strerror or error}") from None
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise ConfigurationError(f"{path} is not a calibration: it is not a JSON object")
        name = said.pop("id", None)
        version = said.get("schema_version")
        if isinstance(version, int) and version > CALIBRATION_VERSION:
            raise ConfigurationError(f"{path} was made by a later ragaliq; update ragaliq")
        try:
            calibration = cls.model_validate(said)
        except ValidationError as error:
            problem = error.errors()[0]
            place = ".".join(str(part) for part in problem["loc"]) or "calibration"
            raise ConfigurationError(
                f"{path} is not a calibration: {place}: {problem['msg']}; make one with "
                "`ragaliq calibrate`"
            ) from None
        if calibration.id != name:
            raise ConfigurationError(
                f"{path} was changed after it was made (its id does not fit); make a new one with "
                "`ragaliq calibrate`"
            )
        return calibration
