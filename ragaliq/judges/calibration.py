"""Making a judge's confidence a probability, from claims that people have labelled."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.judges.base import (
    BatchingJudge,
    ClaimsResult,
    ClaimVerdict,
    JudgeResult,
    LLMJudge,
    VerdictsResult,
)
from ragaliq.statistics import (
    IsotonicCalibrator,
    PlattCalibrator,
    auroc_estimate,
    brier_score,
    cross_validated,
    expected_calibration_error,
    fit_isotonic,
    fit_platt,
    wilson,
)

# --- The judge --------------------------------------------------------------------------------


class CalibratedJudge(BatchingJudge):
    """A judge, with its confidence replaced by what labels say it is worth.

    SUPPORTED comes with the probability that the claim is supported, the other verdicts with the
    probability that it is not. A claim counts as supported from `calibration.min_support` on,
    whatever the judge itself made of its score. A contradiction stays one: it is called on a
    positive sign and not for a low score. Without context nothing is supported, for certain.

    Scores of relevance are passed through: labels of claims say nothing about them.

    Args:
        judge: Who decides.
        calibration: Made for this judge, or the file it is in.

    Raises:
        ConfigurationError: It was made for another judge, model, parameters or prompts; or the
            judge is no `BatchingJudge`.
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
        self.judge, self.curve = judge, calibration
        self.name, self.model, self.kind = judge.name, judge.model, judge.kind
        self.calibration = calibration.id
        self.max_context_chars = judge.max_context_chars
        self.max_answer_chars = judge.max_answer_chars
        self.max_claims = judge.max_claims
        self.default_metrics = judge.default_metrics

    def fingerprint(self) -> str:
        """That of the judge inside."""
        return self.judge.fingerprint()

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
        """Release what the judge inside holds."""
        await self.judge.aclose()

    def _calibrated(self, verdict: ClaimVerdict, context: Sequence[str]) -> ClaimVerdict:
        if not any(chunk.strip() for chunk in context):
            return verdict.model_copy(update={"calibration": self.calibration})
        probability = round(self.curve.support(raw_support(verdict)), 4)
        decided, reason = verdict.verdict, verdict.reason
        is_supported = probability >= self.curve.min_support
        if decided != "CONTRADICTED" and is_supported != (decided == "SUPPORTED"):
            decided = "SUPPORTED" if is_supported else "NOT_ENOUGH_INFO"
            reason = f"{reason} By the calibration, support has a chance of {probability:.0%}."
        return verdict.model_copy(
            update={
                "verdict": decided,
                "confidence": probability if decided == "SUPPORTED" else 1.0 - probability,
                "reason": reason.strip(),
                "calibration": self.calibration,
            }
        )


# --- The calibration --------------------------------------------------------------------------

CALIBRATION_VERSION = 1

# Two-sided, so that a precision is reached with a certainty of 95 % on one side.
_SURE = 0.9

Side = Literal["faithfulness", "hallucination"]
"""What a threshold is for: calling claims supported, or flagging them as unsupported."""


def raw_support(verdict: ClaimVerdict) -> float:
    """How far a verdict speaks for the claim, 0 to 1, as every judge's confidence has it."""
    if verdict.verdict == "SUPPORTED":
        return verdict.confidence
    return 1.0 - verdict.confidence


def _never_certain(probability: float, labels: int) -> float:
    least = 1.0 / (labels + 2.0)
    return min(max(probability, least), 1.0 - least)


class OperatingPoint(NamedTuple):
    """Labelled claims from a probability on.

    Attributes:
        at: The calibrated probability of support.
        claims: Labelled claims with at least this probability.
        supported: Those of them that people call supported.
    """

    at: float
    claims: int
    supported: int


class CalibrationFigures(BaseModel):
    """How good the calibration is, on labels that were not used when the curve was fitted.

    Attributes:
        brier: Brier score of the calibrated probabilities (cross-validated).
        brier_uncalibrated: The same of the judge's own confidences.
        ece: Expected calibration error, ten bins of equal mass.
        ece_uncalibrated: The same of the judge's own confidences.
        auroc: How well the judge ranks supported claims above others; calibration changes it not.
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


class Calibration(BaseModel):
    """A map from one judge's confidence to the probability that a claim is supported.

    It holds for the judge it was made for, and for claims like those that were labelled.

    Attributes:
        schema_version: Of this form.
        judge: Name of the judge.
        model: The judge's model, when it has one.
        fingerprint: Of the judge's parameters or prompts.
        created: The day it was made (UTC, ISO 8601).
        labels: Number of labelled claims.
        supported: Those with the label supported.
        method: `platt` or `isotonic`.
        curve: The fitted curve over the judge's support.
        min_support: The probability from which on a claim counts as supported: 0.5, the likelier
            side, or the operating point that was asked for.
        precision: The precision `min_support` was chosen for, if it was.
        points: What share is supported from which probability on, rising in `at`.
        figures: How good it is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    schema_version: int = Field(default=CALIBRATION_VERSION, ge=1, le=CALIBRATION_VERSION)
    judge: str
    model: str | None = None
    fingerprint: str
    created: str
    labels: int = Field(ge=1)
    supported: int = Field(ge=1)
    method: Literal["platt", "isotonic"]
    curve: PlattCalibrator | IsotonicCalibrator
    min_support: float = Field(default=0.5, ge=0.0, le=1.0)
    precision: float | None = Field(default=None, gt=0.0, lt=1.0)
    points: tuple[OperatingPoint, ...] = Field(min_length=1)
    figures: CalibrationFigures

    @property
    def id(self) -> str:
        """Names the calibration: a hash of all it says, but for the day."""
        said = json.dumps(self.model_dump(mode="json", exclude={"created"}), sort_keys=True)
        digest = blake2b(said.encode(), digest_size=8, person=b"ragaliq-calibrat").hexdigest()
        return f"{self.judge}-{digest}"

    def support(self, raw: float) -> float:
        """The probability that a claim is supported.

        Never 0 or 1: n labels cannot tell a chance of less than about 1 in n from none
        (Laplace's rule of succession bounds it by 1 / (n + 2)).

        Args:
            raw: The judge's support, 0 to 1, see `raw_support`.
        """
        return _never_certain(self.curve(raw), self.labels)

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
        bounds = []  # what most claims are decided by first
        for point in self.points:
            passed, right = point.claims, point.supported
            if evaluator == "hallucination":
                passed = self.labels - passed
                right = passed - (self.supported - right)
            if passed:
                bounds.append((point.at, wilson(right / passed, n=passed, confidence=_SURE)[0]))
        if evaluator == "hallucination":
            bounds.reverse()
        for at, bound in bounds:
            if bound >= precision:
                return at
        best = max((bound for _, bound in bounds), default=0.0)
        raise ConfigurationError(
            f"these {self.labels} labels do not show a precision of {precision:g} at any threshold "
            f"({evaluator}); the best they show is {best:.2f}. Ask for less, or label more claims"
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
            ConfigurationError: The file is missing, no calibration, of a later version, or was
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


# --- Fitting ----------------------------------------------------------------------------------

LEAST_LABELS = 100
LEAST_OF_A_CLASS = 20
_LEAST_FOR_ISOTONIC = 300
"""Below, steps of a few labels each are fitted to chance."""

_FOLDS = 5
_LIKELIER = 0.5
_MOST_POINTS = 200

Curve = PlattCalibrator | IsotonicCalibrator
Fit = Callable[[Sequence[float], Sequence[float]], Curve]


def fit_calibration(
    judge: LLMJudge,
    support: Sequence[float],
    labels: Sequence[bool],
    *,
    clusters: Sequence[Hashable] | None = None,
    precision: float | None = None,
    min_support: float | Literal["balanced"] | None = None,
    seed: int = 0,
) -> Calibration:
    """Fit the curve that predicts held-out labels best.

    Platt scaling and, from 300 labels on, isotonic regression are cross-validated in five parts;
    the lower Brier score wins. The figures are those of the held-out parts.

    Args:
        judge: Who gave the confidences.
        support: `raw_support` of the judge's verdict on each claim.
        labels: Whether people call it supported.
        clusters: What must not be torn apart, one a claim, such as the context it was checked
            against.
        precision: Count a claim as supported only where at least this share of such claims is;
            by default from a probability of 0.5 on.
        min_support: Instead: the probability from which on a claim counts as supported, 0 to 1, or
            `balanced` for the one of the best balanced accuracy.
        seed: Of the parts.

    Raises:
        DatasetError: There are too few labels, or the judge's confidence does not tell supported
            claims from others.
        ConfigurationError: No threshold reaches the precision, or two operating points are asked
            for.
    """
    if precision is not None and min_support is not None:
        raise ConfigurationError("give precision= or min_support=, not both")
    if isinstance(min_support, (int, float)) and not 0.0 <= min_support <= 1.0:
        raise ConfigurationError(f"min_support must be within [0, 1], got {min_support}")
    supported = sum(labels)
    rarer = min(supported, len(labels) - supported)
    found = f"there are {len(labels)} labels, {supported} of them supported"
    if rarer == 0:
        raise DatasetError(
            f"{found}: all are the same, and a calibration learns from the difference; label "
            f"at least {LEAST_OF_A_CLASS} claims of the other kind"
        )
    if len(labels) < LEAST_LABELS or rarer < LEAST_OF_A_CLASS:
        raise DatasetError(
            f"{found}; at least {LEAST_LABELS} are needed, {LEAST_OF_A_CLASS} of each kind: the "
            "curve has two parameters, each of which takes about ten labels of the rarer kind, "
            "and with fewer than a hundred a threshold rests on a handful of claims"
        )
    truth = [float(label) for label in labels]
    ranking = auroc_estimate(support, truth, seed=seed)
    if ranking.low <= 0.5:
        raise DatasetError(
            f"{judge.name} does not tell supported claims from others on these labels: AUROC "
            f"{ranking.value:.2f} [{ranking.low:.2f}, {ranking.high:.2f}], and 0.5 is chance. A "
            "calibration would make its guesses look like knowledge; use another judge, or label "
            "more claims if the interval is wide"
        )
    # Claims over one context are alike; with hardly any contexts they can only be dealt out singly.
    groups = clusters if clusters and len(set(clusters)) >= 2 * _FOLDS else None
    fits: dict[str, Fit] = {"platt": fit_platt}
    if len(truth) >= _LEAST_FOR_ISOTONIC:
        fits["isotonic"] = fit_isotonic
    held_out = {
        name: cross_validated(support, truth, fit, folds=_FOLDS, groups=groups, seed=seed)
        for name, fit in fits.items()
    }
    scores = {name: brier_score(values, truth) for name, values in held_out.items()}
    method = min(scores, key=lambda name: (scores[name], name != "platt"))
    curve = fits[method](support, truth)
    if isinstance(curve, PlattCalibrator) and curve.slope <= 0.0:
        raise DatasetError(
            "the judge's support falls where the labels rise: its surest claims would become its "
            "least sure; label more claims, or use another judge"
        )
    predicted = [_never_certain(value, len(truth)) for value in held_out[method]]
    points = _points([_never_certain(curve(raw), len(truth)) for raw in support], labels)
    calibration = Calibration(
        judge=judge.name,
        model=judge.model,
        fingerprint=judge.fingerprint(),
        created=datetime.now(UTC).date().isoformat(),
        labels=len(truth),
        supported=supported,
        method="platt" if method == "platt" else "isotonic",
        curve=curve,
        points=points,
        figures=CalibrationFigures(
            brier=brier_score(predicted, truth),
            brier_uncalibrated=brier_score(support, truth),
            ece=expected_calibration_error(predicted, truth),
            ece_uncalibrated=expected_calibration_error(support, truth),
            auroc=ranking.value,
            auroc_interval=ranking.interval,
            tried=scores,
        ),
    )
    if precision is not None:
        min_support = calibration.threshold_for(precision)
    elif min_support == "balanced":
        # Balanced accuracy, but for a constant. Of equal ones the likelier side's.
        unsupported = len(truth) - supported
        gains = [
            (point.supported / supported - (point.claims - point.supported) / unsupported, point.at)
            for point in points
        ]
        _, min_support = max(gains, key=lambda gain: (gain[0], -abs(gain[1] - _LIKELIER)))
    elif min_support is None:
        min_support = _LIKELIER
    return calibration.model_copy(update={"min_support": min_support, "precision": precision})


def _points(probabilities: Sequence[float], labels: Sequence[bool]) -> tuple[OperatingPoint, ...]:
    """A point at each probability there is, thinned to about as many claims between each two."""
    ranked = sorted(zip(probabilities, labels, strict=True))
    claims, supported = len(ranked), sum(labels)
    step = len(ranked) / _MOST_POINTS
    points: list[OperatingPoint] = []
    passed = 0
    for at, group in groupby(ranked, key=lambda pair: pair[0]):
        hits = [label for _, label in group]
        if passed >= len(points) * step:
            points.append(OperatingPoint(at, claims, supported))
        passed += len(hits)
        claims, supported = claims - len(hits), supported - sum(hits)
    return tuple(points)
