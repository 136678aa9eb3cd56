"""A judge whose confidence is a probability."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from ragaliq.errors import ConfigurationError
from ragaliq.judges.base import (
    BatchingJudge,
    ClaimsResult,
    ClaimVerdict,
    GradedStatements,
    JudgeResult,
    LLMJudge,
    VerdictsResult,
)
from ragaliq.judges.calibration.model import Calibration, raw_support

__all__ = ["CalibratedJudge"]

V = TypeVar("V", bound=ClaimVerdict)


class CalibratedJudge(BatchingJudge):
    """A judge, with its confidence replaced by what labels say it is worth.

    SUPPORTED comes with the probability that the claim is supported, the other verdicts with the
    probability that it is not. A claim counts as supported from `calibration.supported_from` on,
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

    def __init__(self, judge: LLMJudge, calibration: Calibration | str | Path) -> None:
        if not isinstance(judge, BatchingJudge):
            raise ConfigurationError(
                f"a calibration needs a BatchingJudge, and {type(judge).__name__} is none"
            )
        if isinstance(judge, CalibratedJudge):
            raise ConfigurationError(f"{judge.name} is calibrated already, by {judge.calibration}")
        if not isinstance(calibration, Calibration):
            calibration = Calibration.load(calibration)
        _require_made_for(judge, calibration)
        self.judge, self.curve = judge, calibration
        self.name, self.model = judge.name, judge.model
        self.calibration = calibration.id
        self.max_context_chars, self.max_answer_chars = (
            judge.max_context_chars,
            judge.max_answer_chars,
        )
        self.max_claims = judge.max_claims

    def fingerprint(self) -> str:
        """That of the judge inside."""
        return self.judge.fingerprint()

    async def extract_claims(self, response: str) -> ClaimsResult:
        """As the judge does."""
        return await self.judge.extract_claims(response)

    async def extract_statements(self, query: str, response: str) -> ClaimsResult:
        """As the judge does."""
        return await self.judge.extract_statements(query, response)

    async def verify_claim(self, claim: str, context: list[str]) -> ClaimVerdict:
        """Decide one claim by its calibrated probability."""
        return self._calibrated(await self.judge.verify_claim(claim, context), context)

    async def verify_claims(self, claims: Sequence[str], context: Sequence[str]) -> VerdictsResult:
        """Decide all claims by their calibrated probabilities."""
        reply = await self.judge.verify_claims(claims, context)
        verdicts = [self._calibrated(verdict, context) for verdict in reply.verdicts]
        return reply.model_copy(update={"verdicts": verdicts})

    async def grade_statements(
        self, query: str, response: str, context: Sequence[str]
    ) -> GradedStatements:
        """Find the answer's claims and decide them by their calibrated probabilities."""
        reply = await self.judge.grade_statements(query, response, context)
        statements = [self._calibrated(statement, context) for statement in reply.statements]
        return reply.model_copy(update={"statements": statements})

    async def evaluate_relevance(self, query: str, response: str) -> JudgeResult:
        """As the judge does; not calibrated."""
        return await self.judge.evaluate_relevance(query, response)

    async def evaluate_context_relevance(self, query: str, chunk: str) -> JudgeResult:
        """As the judge does; not calibrated."""
        return await self.judge.evaluate_context_relevance(query, chunk)

    async def aclose(self) -> None:
        """Release what the judge inside holds."""
        await self.judge.aclose()

    def _calibrated(self, verdict: V, context: Sequence[str]) -> V:
        if not any(chunk.strip() for chunk in context):
            return verdict.model_copy(update={"calibration": self.calibration})
        probability = round(self.curve.support(raw_support(verdict)), 4)
        decided, reason = verdict.verdict, verdict.reason
        is_supported = probability >= self.curve.supported_from
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


def _require_made_for(judge: LLMJudge, calibration: Calibration) -> None:
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
