"""Cascade of judges: a cheap judge decides confident claims, a better one the rest."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from ragaliq.core.concurrency import run_all
from ragaliq.core.results import JudgeUsage
from ragaliq.errors import ConfigurationError, JudgeError, JudgeResponseError
from ragaliq.judges.base import (
    BatchingJudge,
    ClaimsResult,
    ClaimVerdict,
    JudgeResult,
    LLMJudge,
    VerdictsResult,
    digest_of,
    identity_of,
    limit_of,
    spent_before,
)
from ragaliq.judges.calibration import CalibratedJudge, Calibration, level_prefix, raw_support
from ragaliq.statistics import wilson

# --- The judge --------------------------------------------------------------------------------

logger = logging.getLogger(__name__)

_HALF = 0.5
_DRAWS = 2.0**64
_COUNTED_ELSEWHERE = JudgeUsage()


class CascadeJudge(BatchingJudge):
    """Screens with the first judge and escalates the least certain claims to the next.

    Without a calibration every claim is escalated. With one, the next judge gets the least certain
    claims of an answer, and an audit of the others, in one call. A language model as the screen may
    rely on its own confidence: `escalate="unsure"`. If both judges decided, the next judge's
    verdict counts. `decided_by` names the judge of each claim.

    A failure of the next judge is a failure of the cascade: its error is raised, and a claim that
    its reply does not decide has no verdict. If the first judge fails, the next one decides.

    Args:
        first: The judge that screens, such as `LocalJudge()`.
        second: The judge that decides the rest.
        more: Further judges; each decides what the one before escalates. A judge in the middle
            decides only if it is a `CalibratedJudge`.
        escalate: Share of claims to escalate, 0 to 1; 0.5 by default. It applies to claims like
            those of the calibration. Or `unsure`: claims that the first judge is unsure of
            (`is_unsure`), which the embedded judge and entailment models need a calibration for.
        band: Instead of a share: escalate claims whose calibrated support is in `[low, high)`.
        audit: Share of the accepted claims that the next judge also decides, 0 to 1.
        calibration: Calibration of the first judge, or its file; or pass a `CalibratedJudge`.
        least_agreement: Agreement on audited claims below which a warning is logged.

    Raises:
        ConfigurationError: A setting is out of range, the calibration was made for another judge,
            or it does not show that accepted verdicts are better than a guess.

    Attributes:
        first: The judge that screens, calibrated if there is a calibration.
        second: The judge it escalates to; another cascade if there are more than two.
        screening: Rule for accepting verdicts, and its figures from the calibration's labels.
    """

    def __init__(
        self,
        first: LLMJudge,
        second: LLMJudge,
        *more: LLMJudge,
        escalate: float | Literal["unsure"] | None = None,
        band: tuple[float, float] | None = None,
        audit: float = 0.02,
        calibration: Calibration | str | Path | None = None,
        least_agreement: float = 0.8,
    ) -> None:
        if escalate is not None and band is not None:
            raise ConfigurationError("CascadeJudge: give escalate= or band=, not both")
        for setting, share in (
            ("escalate", _HALF if escalate in (None, "unsure") else escalate),
            ("audit", audit),
            ("least_agreement", least_agreement),
        ):
            if not isinstance(share, (int, float)) or not 0.0 <= share <= 1.0:
                raise ConfigurationError(
                    f"CascadeJudge: {setting} must be within [0, 1], got {share!r}"
                )
        if band is not None and not 0.0 <= band[0] < band[1] <= 1.0:
            raise ConfigurationError(
                f"CascadeJudge: band must be (low, high) with 0 <= low < high <= 1, got {band!r}"
            )
        self._settings: dict[str, Any] = {
            "escalate": escalate,
            "band": band,
            "audit": audit,
            "least_agreement": least_agreement,
        }
        self.first = first if calibration is None else CalibratedJudge(first, calibration)
        self.second = self.with_stages(second, *more) if more else second
        self.screening = _screening(self.first, escalate=escalate, band=band)
        self._audit = audit
        self._names = _stage_names(self.first, self.second)
        self._least_agreement, self._agreement_is_low = least_agreement, False
        # Without a lock, which a fork could leave held: `append` and copying are atomic.
        self._was_escalated: deque[bool] = deque(maxlen=_WINDOW)
        self._audits_agreed: deque[bool] = deque(maxlen=_WINDOW)
        self._escalated_agreed: deque[bool] = deque(maxlen=_WINDOW)
        # A calibration does not cover relevance: the last judge scores it.
        self._last = last = more[-1] if more else second
        self.name = ">".join(self._names)
        self.model = last.model if isinstance(last.model, str) else None
        self.kind = last.kind
        self.costs_money = any(each.costs_money is True for each in self.stages)
        self.default_metrics = last.default_metrics
        self.calibration = identity_of(self.first).calibration
        limits = (limit_of(each.max_context_chars) for each in (self.first, self.second))
        self.max_context_chars = min((limit for limit in limits if limit), default=None)
        self.max_answer_chars = limit_of(self.first.max_answer_chars)

    @property
    def is_unpriced(self) -> bool:
        """True if a reply of one of the judges will have no price."""
        return any(each.is_unpriced is True for each in self.stages)

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
            if settings["escalate"] == "unsure" and _goes_by_wording(stages[0]):
                settings["escalate"] = None
        return CascadeJudge(*stages, **settings)

    def estimate(self) -> CascadeJudge:
        """Return a cascade of the judges' estimates; raises as `LLMJudge`."""
        return self.with_stages(*(judge.estimate() for judge in self.stages))

    def agreement(self) -> tuple[StageAgreement, ...]:
        """Agreement of neighbouring judges over the last claims, first pair first."""
        routes, audits, escalated = map(
            tuple, (self._was_escalated, self._audits_agreed, self._escalated_agreed)
        )
        first, second = self._names
        own = StageAgreement(
            first=first,
            second=second,
            claims=len(routes),
            escalated_share=_share(routes),
            audited=len(audits),
            accepted_rate=_share(audits),
            escalated=len(escalated),
            escalated_rate=_share(escalated),
        )
        rest = self.second.agreement() if isinstance(self.second, CascadeJudge) else ()
        return (own, *rest)

    def fingerprint(self) -> str:
        """Fingerprint of the settings and of all judges."""
        judges = (judge.fingerprint() for judge in (self.first, self.second))
        return digest_of("cascade", str(self._settings), self.calibration, *judges)

    async def extract_statements(self, query: str, response: str) -> ClaimsResult:
        """As the first judge does."""
        if isinstance(self.first, BatchingJudge):
            return await self.first.extract_statements(query, response)
        return await self.first.extract_claims(response)

    async def verify_claims(self, claims: Sequence[str], context: Sequence[str]) -> VerdictsResult:
        """Decide all claims: one call of the first judge, at most one of the next.

        Raises:
            JudgeError: The next judge failed; what both cost is in its `usage`.
        """
        first, second = self._names
        try:
            screened, usage = await _ask(self.first, claims, context)
        except JudgeError as error:
            # The next judge decides everything then, which costs more but is not worse.
            logger.debug("%s could not screen: %s", first, type(error).__name__)
            screened, usage = {}, error.usage or JudgeUsage()

        without_context = not any(chunk.strip() for chunk in context)
        read = digest_of(*context)
        escalated, asked = set[int](), list[int]()
        for position, claim in enumerate(claims):
            verdict = screened.get(position)
            if verdict and without_context and verdict.verdict == "NOT_ENOUGH_INFO":
                continue  # there is nothing to read: no guess, no audit
            if verdict is None or not self._accepts(verdict, read, claim):
                escalated.add(position)
                asked.append(position)
            elif self._draw("audit", read, claim) < self._audit:
                asked.append(position)

        with spent_before(usage):
            found, cost = await _ask(self.second, [claims[i] for i in asked], context)
        usage += cost
        decided = {asked[i]: verdict for i, verdict in found.items()}

        left, verdicts = set(asked), []
        for position in range(len(claims)):
            ours, theirs = screened.get(position), decided.get(position)
            self._was_escalated.append(position in escalated)
            if ours and theirs:
                compared = self._escalated_agreed if position in escalated else self._audits_agreed
                compared.append((ours.verdict == "SUPPORTED") == (theirs.verdict == "SUPPORTED"))
            verdict, name = (theirs, second) if position in left else (ours, first)
            if verdict is not None:
                update = {
                    "index": position,
                    "decided_by": verdict.decided_by or name,
                    "usage": _COUNTED_ELSEWHERE,
                    "tokens_used": 0,
                }
                verdicts.append(verdict.model_copy(update=update))
        self._warn_of_low_agreement()
        return VerdictsResult(verdicts=verdicts, usage=usage)

    async def evaluate_relevance(self, query: str, response: str) -> JudgeResult:
        """As the last judge does."""
        return await self._last.evaluate_relevance(query, response)

    async def evaluate_context_relevance(self, query: str, chunk: str) -> JudgeResult:
        """As the last judge does."""
        return await self._last.evaluate_context_relevance(query, chunk)

    def is_unsure(self, verdict: ClaimVerdict) -> bool:
        """Check by the judge that decided."""
        judge = self.first if verdict.decided_by == self._names[0] else self.second
        return judge.is_unsure(verdict)

    async def aclose(self) -> None:
        """Release the judges' resources."""
        for judge in (self.first, self.second):
            await judge.aclose()

    def _accepts(self, verdict: ClaimVerdict, context: str, claim: str) -> bool:
        if self.screening.by_judge:
            return not self.first.is_unsure(verdict)
        support = round(raw_support(verdict), _DIGITS)
        chance = self.screening.chance(support, round(verdict.confidence, _DIGITS))
        return self._draw("tie", context, claim) >= chance

    def _warn_of_low_agreement(self) -> None:
        """Log a warning when agreement on accepted verdicts drops below the bound, once."""
        audits = tuple(self._audits_agreed)
        if len(audits) < _LEAST_AUDITED:
            return
        rate, was_low = sum(audits) / len(audits), self._agreement_is_low
        self._agreement_is_low = rate < self._least_agreement
        if self._agreement_is_low and not was_low:
            first, second = self._names
            logger.warning(
                "%s agrees with only %.0f%% of the last %d audited verdicts taken from %s "
                "(bound: %.0f%%); make a new calibration on recent claims, or escalate more",
                second,
                100 * rate,
                len(audits),
                first,
                100 * self._least_agreement,
            )

    def _draw(self, purpose: str, context: str, claim: str) -> float:
        """A number in [0, 1) that depends on claim and context alone."""
        return int(digest_of(purpose, context, claim), 16) / _DRAWS


def _stage_names(first: LLMJudge, second: LLMJudge) -> tuple[str, str]:
    """Names of two judges in `decided_by`; with their models if the names are equal.

    Raises:
        ConfigurationError: They have one name and one model.
    """
    names = identity_of(first).name, identity_of(second).name
    if names[0] != names[1]:
        return names
    if first.model == second.model:
        raise ConfigurationError(
            f"CascadeJudge: two judges are called {names[0]!r} and have the same model, so nobody "
            "could tell who decided; give one another name"
        )
    return f"{names[0]}:{first.model}", f"{names[1]}:{second.model}"


# --- Screening: which verdicts of the first judge are accepted --------------------------------

_DIGITS = 4  # decimals a calibrated judge gives its probabilities
_FEW = 20  # labelled claims; what fewer stand for is too small a part to refuse all for


@dataclass(frozen=True, kw_only=True)
class Screening:
    """Rule for accepting verdicts of the first judge; by default none are.

    A verdict's certainty is the calibrated probability that it is right: of support for SUPPORTED,
    of no support for the others.

    Attributes:
        below: Claims with a certainty below are escalated.
        share_at: Share of the claims with exactly that certainty that are escalated too; an
            isotonic curve gives many claims the same one.
        band: Instead: claims whose calibrated support is in `[low, high)` are escalated.
        by_judge: Instead: claims on which the judge itself is unsure are escalated.
        escalated: Share of the labelled claims that would be escalated; 1.0 without labels.
        accuracy: Share of the others that are right, with its 95 % interval; None where all are
            escalated.
    """

    below: float = 1.0
    share_at: float = 1.0
    band: tuple[float, float] | None = None
    by_judge: bool = False
    escalated: float = 1.0
    accuracy: tuple[float, float, float] | None = None

    def chance(self, support: float, certainty: float) -> float:
        """Chance that a claim is escalated, 0 to 1; in between, its own draw decides."""
        if self.band is not None:
            return float(self.band[0] <= support < self.band[1])
        if certainty == self.below:
            return self.share_at
        return float(certainty < self.below)

    def checked(self, calibration: Calibration) -> Screening:
        """Rule with its figures from the labels.

        Raises:
            ConfigurationError: The labels do not show that accepted verdicts beat a guess.
        """
        accepted = right = 0.0
        for support, certainty, claims, agreed in _labelled(calibration):
            kept = 1.0 - self.chance(support, certainty)
            accepted += kept * claims
            right += kept * agreed
        escalated = 1.0 - accepted / calibration.labels
        if accepted < 1.0:
            return replace(self, escalated=escalated)
        accuracy = min(1.0, right / accepted)
        low, high = wilson(accuracy, n=accepted)
        if low <= _HALF and accepted >= _FEW:
            raise ConfigurationError(
                f"calibration {calibration.id}: of the {accepted:.0f} labelled claims this cascade "
                f"would take the first judge's word for, {accuracy:.0%} are right [{low:.0%}, "
                f"{high:.0%}], which may be a guess; escalate more, or label more claims"
            )
        return replace(self, escalated=escalated, accuracy=(accuracy, low, high))


def _goes_by_wording(judge: LLMJudge) -> bool:
    """True if the judge's uncalibrated confidence does not predict when it is right."""
    from ragaliq.judges.local.judge import WordingJudge

    return isinstance(judge, WordingJudge)


def _screening(
    first: LLMJudge,
    *,
    escalate: float | Literal["unsure"] | None,
    band: tuple[float, float] | None,
) -> Screening:
    """Build the rule for accepting the first judge's verdicts."""
    if first.calibration.startswith(level_prefix(first.name)):
        raise ConfigurationError(
            f"CascadeJudge: calibration {first.calibration} is made of unlabelled claims, which do "
            "not say when the first judge is right; make one of labels by `ragaliq calibrate`"
        )
    if escalate == "unsure":
        if _goes_by_wording(first):
            raise ConfigurationError(
                f"CascadeJudge: escalate='unsure' takes the word of the first judge, and the score "
                f"of {first.name!r} does not say when it is right; pass calibration= (made by "
                "`ragaliq calibrate`), or a language model as the first judge"
            )
        return Screening(by_judge=True)
    if not isinstance(first, CalibratedJudge):
        if band is not None:
            raise ConfigurationError(
                "CascadeJudge: band is about calibrated support, and the first judge has no "
                "calibration; pass calibration= (made by `ragaliq calibrate`)"
            )
        return Screening()
    calibration = first.curve
    if band is not None:
        return Screening(band=band).checked(calibration)
    # The least certain claims first, until the share is reached.
    counts = Counter[float]()
    for _, certainty, claims, _ in _labelled(calibration):
        counts[certainty] += claims
    left = (_HALF if escalate is None else escalate) * calibration.labels
    for certainty, claims in sorted(counts.items()):
        if claims > left:
            return Screening(below=certainty, share_at=left / claims).checked(calibration)
        left -= claims
    return Screening().checked(calibration)


def _labelled(calibration: Calibration) -> Iterator[tuple[float, float, int, int]]:
    """Support, certainty, number and number of right ones of the labelled claims that are alike."""
    points = calibration.points
    for point, following in zip(points, (*points[1:], None), strict=True):
        claims = point.claims - (following.claims if following else 0)
        supported = point.supported - (following.supported if following else 0)
        support = round(point.at, _DIGITS)
        if support >= calibration.min_support:
            yield support, support, claims, supported
        else:
            yield support, round(1.0 - support, _DIGITS), claims, claims - supported


# --- Agreement --------------------------------------------------------------------------------


_WINDOW = 1000  # claims of each kind over which agreement is counted
_LEAST_AUDITED = 30
"""Audited claims below which a low share says little: of 30, one disagreement is 3 points."""


@dataclass(frozen=True, kw_only=True)
class StageAgreement:
    """Agreement of two neighbouring judges over the last 1,000 claims of each kind.

    Judges agree if both call a claim supported, or both do not: screens confuse CONTRADICTED with
    NOT_ENOUGH_INFO. A share is None if there are no such claims.

    Attributes:
        first: The judge that screens.
        second: The judge that decides what is escalated.
        claims: Claims screened.
        escalated_share: Share of them that were escalated, without audits.
        audited: Accepted verdicts that the second judge also decided.
        accepted_rate: Share of those that it agreed with.
        escalated: Escalated claims that both decided.
        escalated_rate: Share of those on which they agreed.
    """

    first: str
    second: str
    claims: int
    escalated_share: float | None
    audited: int
    accepted_rate: float | None
    escalated: int
    escalated_rate: float | None


def _share(answers: Collection[bool]) -> float | None:
    return sum(answers) / len(answers) if answers else None


# --- Asking, whichever kind of judge it is ----------------------------------------------------


async def _ask(
    judge: LLMJudge, claims: Sequence[str], context: Sequence[str]
) -> tuple[dict[int, ClaimVerdict], JudgeUsage]:
    """Ask about all claims, in one call where the judge can.

    Returns:
        Verdicts by the position of the claim, some of which may be missing, and what they cost.

    Raises:
        JudgeError: The judge failed. Its `usage` holds what earlier calls cost as well.
    """
    verdicts: dict[int, ClaimVerdict] = {}
    usage = JudgeUsage()
    if isinstance(judge, BatchingJudge):
        size = limit_of(judge.max_claims) or len(claims)
        for start in range(0, len(claims), max(1, size)):
            asked = claims[start : start + size]
            with spent_before(usage):
                reply = await judge.verify_claims(asked, context)
            usage += reply.spent()
            verdicts |= {start + i: each for i, each in reply.by_claim(len(asked)).items()}
        return verdicts, usage

    async def one(position: int, claim: str) -> None:
        nonlocal usage
        try:
            verdict = await judge.verify_claim(claim, list(context))
        except JudgeResponseError as error:
            usage += error.usage or JudgeUsage()
            return  # one malformed reply is one missing verdict
        usage += verdict.spent()
        verdicts[position] = verdict

    try:
        await run_all(one(position, claim) for position, claim in enumerate(claims))
    except JudgeError as error:
        error.usage = usage + (error.usage or JudgeUsage())
        raise
    return verdicts, usage
