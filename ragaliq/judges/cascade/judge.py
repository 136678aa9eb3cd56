"""`CascadeJudge`: several judges as one, each asked only where the one before is not sure."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from ragaliq.core.evaluator import judge_calibration
from ragaliq.core.results import JudgeUsage
from ragaliq.errors import JudgeError, JudgeResponseError
from ragaliq.judges.base import (
    BatchingJudge,
    ClaimsResult,
    ClaimVerdict,
    GradedStatements,
    JudgeResult,
    LLMJudge,
    NumberedVerdict,
    StatementVerdict,
    VerdictsResult,
)
from ragaliq.judges.calibration import CalibratedJudge, Calibration
from ragaliq.judges.cascade.agreement import AgreementWindow, StageAgreement
from ragaliq.judges.cascade.asking import Answers, ask, limit_of
from ragaliq.judges.cascade.routing import Router, Routes
from ragaliq.judges.cascade.settings import (
    check_settings,
    choose_screening,
    screen_of,
    stage_names,
)
from ragaliq.judges.digest import digest_of

__all__ = ["CascadeJudge", "Stage"]

logger = logging.getLogger(__name__)

Stage = Literal["first", "last"]

_COUNTED_ELSEWHERE = JudgeUsage()
_DECISION = set(ClaimVerdict.model_fields) - {"usage", "tokens_used"}


class CascadeJudge(BatchingJudge):
    """Screens with the first judge and lets the next one decide what that is least sure of.

    Without a calibration nothing is accepted: every claim goes on to the next judge. With one, the
    next judge gets the least certain claims of an answer, and an audit of the others, in one call.
    Where both judged, the next judge's verdict stands. `decided_by` names the judge of each claim.

    The next judge's failure is a failure, as it would be without the cascade: it raises what that
    judge raised, and a claim its reply leaves out has no verdict. Only the first judge's failure
    does no harm: the next one decides then.

    Args:
        first: The judge that screens, such as `LocalJudge()`.
        second: The judge that decides the rest.
        more: Judges after that; each decides what the one before leaves to it. A judge in the
            middle decides only where it is a `CalibratedJudge`.
        escalate: Share of claims the next judge is to decide, 0 to 1; 0.5 by default. It is met
            on claims like those the calibration was made with.
        band: Instead of a share: escalate claims whose calibrated support is in `[low, high)`.
        audit: Share of the accepted claims the next judge is asked about too, 0 to 1.
        calibration: Of the first judge, or the file it is in; or give a `CalibratedJudge`.
        extract_with: The judge that finds an answer's claims.
        relevance_with: The judge that scores relevance, which no calibration speaks about.
        seed: Draws the audit, by claim and context.
        window: Claims over which agreement is counted.
        least_agreement: Agreement on audited claims below which a warning is logged.

    Raises:
        ConfigurationError: A setting is out of range, the calibration was made for another judge,
            or it does not show that what would be accepted is better than a guess.

    Attributes:
        first: The judge that screens, calibrated if there is a calibration.
        second: The judge it escalates to; a cascade of its own where there are more than two.
        screening: Which verdicts are accepted, and what the calibration's labels promise.
    """

    def __init__(
        self,
        first: LLMJudge,
        second: LLMJudge,
        *more: LLMJudge,
        escalate: float | None = None,
        band: tuple[float, float] | None = None,
        audit: float = 0.02,
        calibration: Calibration | str | Path | None = None,
        extract_with: Stage = "first",
        relevance_with: Stage = "last",
        seed: int = 0,
        window: int = 1000,
        least_agreement: float = 0.8,
    ) -> None:
        check_settings(
            escalate=escalate,
            band=band,
            audit=audit,
            window=window,
            least_agreement=least_agreement,
            extract_with=extract_with,
            relevance_with=relevance_with,
        )
        self._settings: dict[str, Any] = {
            "escalate": escalate,
            "band": band,
            "audit": audit,
            "extract_with": extract_with,
            "relevance_with": relevance_with,
            "seed": seed,
            "window": window,
            "least_agreement": least_agreement,
        }
        self.first = screen_of(first, calibration)
        self.second = self.with_stages(second, *more) if more else second
        self.screening = choose_screening(self.first, escalate=escalate, band=band)
        self._router = Router(self.screening, audit=audit, seed=seed)
        self._names = stage_names(self.first, self.second)
        self._agreement = AgreementWindow(*self._names, size=window, least=least_agreement)
        last = more[-1] if more else second
        self._extractor = self.first if extract_with == "first" else last
        self._relevance = self.first if relevance_with == "first" else last
        self.name = ">".join(self._names)
        self.model = last.model if isinstance(last.model, str) else None
        self.calibration = judge_calibration(self.first)
        limits = (limit_of(self.first.max_context_chars), limit_of(self.second.max_context_chars))
        self.max_context_chars = min((limit for limit in limits if limit), default=None)
        self.max_answer_chars = limit_of(self._extractor.max_answer_chars)

    @property
    def stages(self) -> tuple[LLMJudge, ...]:
        """The judges, in the order they are asked."""
        rest = self.second.stages if isinstance(self.second, CascadeJudge) else (self.second,)
        return (self.first, *rest)

    def with_stages(self, *stages: LLMJudge) -> CascadeJudge:
        """A cascade of other judges with these settings; each brings its own calibration."""
        settings = self._settings
        if not isinstance(stages[0], CalibratedJudge):
            settings = {**settings, "band": None}
        return CascadeJudge(*stages, **settings)

    def agreement(self) -> tuple[StageAgreement, ...]:
        """How neighbouring judges got on over the last claims, first pair first."""
        rest = self.second.agreement() if isinstance(self.second, CascadeJudge) else ()
        return (self._agreement.snapshot(), *rest)

    def fingerprint(self) -> str:
        """Changes with the settings and with any of the judges."""
        judges = (judge.fingerprint() for judge in (self.first, self.second))
        return digest_of("cascade", str(self._settings), self.calibration, *judges)

    async def extract_claims(self, response: str) -> ClaimsResult:
        """As the judge does that finds claims."""
        return await self._extractor.extract_claims(response)

    async def extract_statements(self, query: str, response: str) -> ClaimsResult:
        """As the judge does that finds claims."""
        if isinstance(self._extractor, BatchingJudge):
            return await self._extractor.extract_statements(query, response)
        return await self._extractor.extract_claims(response)

    async def verify_claim(self, claim: str, context: list[str]) -> ClaimVerdict:
        """Decide one claim."""
        reply = await self.verify_claims([claim], context)
        if not reply.verdicts:
            raise JudgeResponseError(f"{self.name} gave no verdict", usage=reply.usage)
        fields = reply.verdicts[0].model_dump(include=_DECISION)
        return ClaimVerdict(**fields, usage=reply.usage, tokens_used=reply.tokens_used)

    async def verify_claims(self, claims: Sequence[str], context: Sequence[str]) -> VerdictsResult:
        """Decide all claims: one call of the first judge, at most one of the next.

        Raises:
            JudgeError: The next judge failed; what both cost is in its `usage`.
        """
        screened = await self._screen(claims, context)
        routes = self._router.sort(claims, context, screened.verdicts)
        decided = await self._escalate(claims, context, routes.asked, screened.usage)
        self._compare(routes, screened, decided)
        first, second = self._names
        verdicts = {i: _by(first, screened.verdicts[i]) for i in routes.accepted}
        verdicts |= {i: _by(second, verdict) for i, verdict in decided.verdicts.items()}
        usage = screened.usage + decided.usage
        return VerdictsResult(
            verdicts=[_numbered(i, verdicts[i]) for i in sorted(verdicts)],
            usage=usage,
            tokens_used=usage.total_tokens,
        )

    async def grade_statements(
        self, query: str, response: str, context: Sequence[str]
    ) -> GradedStatements:
        """Find the answer's claims and decide them.

        Raises:
            JudgeError: A judge failed, or left a claim without a verdict.
        """
        found = await self.extract_statements(query, response)
        try:
            reply = await self.verify_claims(found.claims, context)
        except JudgeError as error:
            error.usage = found.spent() + (error.usage or JudgeUsage())
            raise
        usage = found.spent() + reply.spent()
        missing = len(found.claims) - len(reply.verdicts)
        if missing:
            raise JudgeResponseError(
                f"{self.name} gave no verdict for {missing} of {len(found.claims)} claims",
                usage=usage,
            )
        statements = [
            StatementVerdict(
                index=i,
                statement=claim,
                **verdict.model_dump(include=_DECISION),
                usage=_COUNTED_ELSEWHERE,
            )
            for i, (claim, verdict) in enumerate(zip(found.claims, reply.verdicts, strict=True))
        ]
        return GradedStatements(statements=statements, usage=usage, tokens_used=usage.total_tokens)

    async def evaluate_relevance(self, query: str, response: str) -> JudgeResult:
        """As the judge does that scores relevance."""
        return await self._relevance.evaluate_relevance(query, response)

    async def evaluate_context_relevance(self, query: str, chunk: str) -> JudgeResult:
        """As the judge does that scores relevance."""
        return await self._relevance.evaluate_context_relevance(query, chunk)

    async def aclose(self) -> None:
        """Release what the judges hold."""
        for judge in (self.first, self.second):
            await judge.aclose()

    async def _screen(self, claims: Sequence[str], context: Sequence[str]) -> Answers:
        if not claims:
            return Answers({}, JudgeUsage())
        try:
            return await ask(self.first, claims, context)
        except JudgeError as error:
            # The next judge decides everything then, which costs more and is no worse.
            logger.debug("%s could not screen: %s", self._names[0], type(error).__name__)
            return Answers({}, error.usage or JudgeUsage())

    async def _escalate(
        self, claims: Sequence[str], context: Sequence[str], asked: Sequence[int], spent: JudgeUsage
    ) -> Answers:
        if not asked:
            return Answers({}, JudgeUsage())
        try:
            found = await ask(self.second, [claims[i] for i in asked], context)
        except JudgeError as error:
            error.usage = spent + (error.usage or JudgeUsage())
            raise
        verdicts = {asked[i]: verdict for i, verdict in found.verdicts.items()}
        return Answers(verdicts, found.usage)

    def _compare(self, routes: Routes, screened: Answers, decided: Answers) -> None:
        escalated, audited = set(routes.escalated), set(routes.audited)
        for position in (*routes.accepted, *routes.asked):
            self._agreement.routed(escalated=position in escalated)
        for position in routes.asked:
            ours, theirs = screened.verdicts.get(position), decided.verdicts.get(position)
            if ours is not None and theirs is not None:
                agreed = (ours.verdict == "SUPPORTED") == (theirs.verdict == "SUPPORTED")
                self._agreement.compared(agreed=agreed, audited=position in audited)


def _by(name: str, verdict: ClaimVerdict) -> ClaimVerdict:
    return verdict.model_copy(update={"decided_by": verdict.decided_by or name})


def _numbered(position: int, verdict: ClaimVerdict) -> NumberedVerdict:
    fields = verdict.model_dump(include=_DECISION)
    return NumberedVerdict(claim_index=position, **fields, usage=_COUNTED_ELSEWHERE)
