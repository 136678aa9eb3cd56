"""A cheap judge decides what it is sure of, a better one the rest, and each claim says who did."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from ragaliq.core.concurrency import run_all
from ragaliq.core.evaluator import judge_calibration, judge_name
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
)
from ragaliq.judges.calibration import CalibratedJudge, Calibration, raw_support
from ragaliq.statistics import wilson

__all__ = ["AgreementWindow", "CascadeJudge", "Screening", "StageAgreement"]


# --- The judge --------------------------------------------------------------------------------

logger = logging.getLogger(__name__)

Stage = Literal["first", "last"]

_COUNTED_ELSEWHERE = JudgeUsage()


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
        return reply.verdicts[0].model_copy(
            update={"index": None, "usage": reply.usage, "tokens_used": reply.tokens_used}
        )

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
    ) -> VerdictsResult:
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
            verdict.model_copy(update={"index": i, "statement": claim})
            for i, (claim, verdict) in enumerate(zip(found.claims, reply.verdicts, strict=True))
        ]
        return VerdictsResult(verdicts=statements, usage=usage, tokens_used=usage.total_tokens)

    async def evaluate_relevance(self, query: str, response: str) -> JudgeResult:
        """As the judge does that scores relevance."""
        return await self._relevance.evaluate_relevance(query, response)

    async def evaluate_context_relevance(self, query: str, chunk: str) -> JudgeResult:
        """As the judge does that scores relevance."""
        return await self._relevance.evaluate_context_relevance(query, chunk)

    def is_unsure(self, verdict: ClaimVerdict) -> bool:
        """As the judge says that decided."""
        judge = self.first if verdict.decided_by == self._names[0] else self.second
        return judge.is_unsure(verdict)

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


def _numbered(position: int, verdict: ClaimVerdict) -> ClaimVerdict:
    return verdict.model_copy(
        update={"index": position, "usage": _COUNTED_ELSEWHERE, "tokens_used": 0}
    )


# --- Routing ----------------------------------------------------------------------------------

_RANGE = 2.0**64


@dataclass(frozen=True)
class Routes:
    """What becomes of claims, by their position.

    Attributes:
        accepted: The first judge's verdict stands.
        audited: It would stand, and the next judge is asked all the same.
        escalated: The next judge decides.
    """

    accepted: list[int] = field(default_factory=list)
    audited: list[int] = field(default_factory=list)
    escalated: list[int] = field(default_factory=list)

    @property
    def asked(self) -> list[int]:
        """Claims for the next judge, in order."""
        return sorted((*self.audited, *self.escalated))


class Router:
    """Sorts claims; what becomes of one depends on it, its context and the seed alone.

    Args:
        screening: Which verdicts are accepted.
        audit: Share of the accepted ones to ask the next judge about, 0 to 1.
        seed: Another one draws another share.
    """

    def __init__(self, screening: Screening, *, audit: float, seed: int) -> None:
        self.screening, self.audit, self.seed = screening, audit, seed

    def sort(
        self,
        claims: Sequence[str],
        context: Sequence[str],
        verdicts: Mapping[int, ClaimVerdict],
    ) -> Routes:
        """Sort claims by the first judge's verdicts; a claim without one is escalated."""
        routes = Routes()
        without_context = not any(chunk.strip() for chunk in context)
        read = digest_of(*context)
        for position, claim in enumerate(claims):
            verdict = verdicts.get(position)
            if verdict is None:
                routes.escalated.append(position)
            elif without_context and verdict.verdict == "NOT_ENOUGH_INFO":
                routes.accepted.append(position)  # there is nothing to read: no guess, no audit
            elif not self.screening.accepts(verdict, self._draw("tie", read, claim)):
                routes.escalated.append(position)
            elif self._draw("audit", read, claim) < self.audit:
                routes.audited.append(position)
            else:
                routes.accepted.append(position)
        return routes

    def _draw(self, purpose: str, context: str, claim: str) -> float:
        return int(digest_of(purpose, str(self.seed), context, claim), 16) / _RANGE


# --- Screening: whose word is taken -----------------------------------------------------------

_DIGITS = 4  # decimals a calibrated judge gives its probabilities
_CHANCE = 0.5
_FEW = 20  # labelled claims; what fewer stand for is too small a part to refuse all for


class _Labelled(NamedTuple):
    support: float
    certainty: float
    claims: int
    right: int


@dataclass(frozen=True, kw_only=True)
class Screening:
    """The rule by which verdicts of a calibrated judge are accepted.

    A verdict's certainty is the calibrated probability that it is right: of support for SUPPORTED,
    of no support for the others.

    Attributes:
        below: Claims with a certainty below are escalated.
        share_at: Share of the claims with exactly that certainty that are escalated too; an
            isotonic curve gives many claims the same one.
        band: Instead: claims whose calibrated support is in `[low, high)` are escalated.
        escalated: Share of the labelled claims that would be escalated.
        accuracy: Share of the others that are right, with its 95 % interval; None where all are
            escalated.
    """

    below: float = 1.0
    share_at: float = 1.0
    band: tuple[float, float] | None = None
    escalated: float = 1.0
    accuracy: tuple[float, float, float] | None = None

    @classmethod
    def everything(cls) -> Self:
        """Without a calibration: nothing is accepted."""
        return cls()

    @classmethod
    def by_share(cls, calibration: Calibration, share: float) -> Self:
        """Escalate this share of claims like the labelled ones, the least certain first.

        Raises:
            ConfigurationError: What would be accepted is not shown to be better than a guess.
        """
        wanted = share * calibration.labels
        below, before, here = 1.0, calibration.labels, 0
        passed = 0
        for certainty, claims in _by_certainty(calibration):
            if passed + claims > wanted:
                below, before, here = certainty, passed, claims
                break
            passed += claims
        at = (wanted - before) / here if here else 1.0
        return cls(below=below, share_at=at)._checked(calibration)

    @classmethod
    def by_band(cls, calibration: Calibration, low: float, high: float) -> Self:
        """Escalate the claims whose calibrated support is in `[low, high)`.

        Raises:
            ConfigurationError: What would be accepted is not shown to be better than a guess.
        """
        return cls(band=(low, high))._checked(calibration)

    def accepts(self, verdict: ClaimVerdict, draw: float) -> bool:
        """Whether a calibrated verdict is taken.

        Args:
            verdict: Of the calibrated judge.
            draw: The claim's own number in [0, 1), for claims that are equally certain.
        """
        support, certainty = (
            round(raw_support(verdict), _DIGITS),
            round(verdict.confidence, _DIGITS),
        )
        return draw >= self._chance(support, certainty)

    def _chance(self, support: float, certainty: float) -> float:
        """How likely a claim is escalated."""
        if self.band is not None:
            return float(self.band[0] <= support < self.band[1])
        if certainty == self.below:
            return self.share_at
        return float(certainty < self.below)

    def _checked(self, calibration: Calibration) -> Self:
        accepted = right = 0.0
        for row in _labelled(calibration):
            kept = 1.0 - self._chance(row.support, row.certainty)
            accepted += kept * row.claims
            right += kept * row.right
        escalated = 1.0 - accepted / calibration.labels
        if accepted < 1.0:
            return type(self)(
                below=self.below, share_at=self.share_at, band=self.band, escalated=escalated
            )
        accuracy = min(1.0, right / accepted)
        low, high = wilson(accuracy, n=accepted)
        if low <= _CHANCE and accepted >= _FEW:
            raise ConfigurationError(
                f"calibration {calibration.id}: of the {accepted:.0f} labelled claims this cascade "
                f"would take the first judge's word for, {accuracy:.0%} are right [{low:.0%}, "
                f"{high:.0%}], which may be a guess; escalate more, or label more claims"
            )
        return type(self)(
            below=self.below,
            share_at=self.share_at,
            band=self.band,
            escalated=escalated,
            accuracy=(accuracy, low, high),
        )


def _labelled(calibration: Calibration) -> Iterator[_Labelled]:
    """The labelled claims by their calibrated support, as the calibration keeps them."""
    points = calibration.points
    for point, following in zip(points, (*points[1:], None), strict=True):
        claims = point.claims - (following.claims if following else 0)
        supported = point.supported - (following.supported if following else 0)
        support = round(point.at, _DIGITS)
        if support >= calibration.supported_from:
            yield _Labelled(support, support, claims, supported)
        else:
            yield _Labelled(support, round(1.0 - support, _DIGITS), claims, claims - supported)


def _by_certainty(calibration: Calibration) -> list[tuple[float, int]]:
    """How many labelled claims there are of each certainty, least certain first."""
    counts: dict[float, int] = {}
    for row in _labelled(calibration):
        counts[row.certainty] = counts.get(row.certainty, 0) + row.claims
    return sorted(counts.items())


# --- Agreement --------------------------------------------------------------------------------


_LEAST_AUDITED = 30
"""Audited claims below which a low share says little: of 30, one disagreement is 3 points."""


@dataclass(frozen=True, kw_only=True)
class StageAgreement:
    """How two neighbouring judges of a cascade got on, over the last claims.

    To agree is to call a claim supported, or not supported: which of CONTRADICTED and
    NOT_ENOUGH_INFO it is, screens tell badly.

    Attributes:
        first: The judge that screens.
        second: The judge that decides what is escalated.
        claims: Claims screened.
        escalated_share: Share of them whose decision was left to the second judge, audits apart;
            None where there are none.
        audited: Accepted verdicts that the second judge looked at all the same.
        audited_agreed: Those of them it agreed with.
        escalated: Escalated claims both judged.
        escalated_agreed: Those of them on which they agreed.
    """

    first: str
    second: str
    claims: int = 0
    escalated_share: float | None = None
    audited: int = 0
    audited_agreed: int = 0
    escalated: int = 0
    escalated_agreed: int = 0

    @property
    def accepted_rate(self) -> float | None:
        """Share of accepted verdicts the second judge agrees with; None without audits."""
        return self.audited_agreed / self.audited if self.audited else None

    @property
    def escalated_rate(self) -> float | None:
        """Share of escalated claims on which both agree; None where there are none."""
        return self.escalated_agreed / self.escalated if self.escalated else None

    @property
    def rate(self) -> float | None:
        """Agreement over all claims: audited claims stand for all that were accepted.

        None until every kind of claim there is has been judged twice.
        """
        share = self.escalated_share
        if share is None:
            return None
        parts = ((share, self.escalated_rate), (1.0 - share, self.accepted_rate))
        if any(weight and rate is None for weight, rate in parts):
            return None
        return sum(weight * (rate or 0.0) for weight, rate in parts)


class AgreementWindow:
    """Counts agreement over the last claims; safe on any thread.

    Args:
        first: Name of the judge that screens.
        second: Name of the judge that decides what is escalated.
        size: Claims remembered of each kind.
        least: Agreement on accepted verdicts below which a warning is logged, once for each drop.
    """

    def __init__(self, first: str, second: str, *, size: int, least: float) -> None:
        self._first, self._second, self._least = first, second, least
        self._pid, self._own_lock = os.getpid(), threading.Lock()
        self._routes: deque[bool] = deque(maxlen=size)
        self._audited: deque[bool] = deque(maxlen=size)
        self._escalated: deque[bool] = deque(maxlen=size)
        self._is_low = False

    @property
    def _lock(self) -> threading.Lock:
        if self._pid != os.getpid():  # the parent may have held it at the fork
            self._pid, self._own_lock = os.getpid(), threading.Lock()
        return self._own_lock

    def routed(self, *, escalated: bool) -> None:
        """A claim was screened."""
        with self._lock:
            self._routes.append(escalated)

    def compared(self, *, agreed: bool, audited: bool) -> None:
        """Both judges have judged a claim."""
        with self._lock:
            (self._audited if audited else self._escalated).append(agreed)
            dropped = audited and self._has_dropped()
            rate, seen = self._audited_rate(), len(self._audited)
        if dropped:
            logger.warning(
                "%s agrees with only %.0f%% of the last %d audited verdicts taken from %s "
                "(bound: %.0f%%); calibrate it anew on recent claims, or escalate more",
                self._second,
                100 * rate,
                seen,
                self._first,
                100 * self._least,
            )

    def snapshot(self) -> StageAgreement:
        """The counts now."""
        with self._lock:
            return StageAgreement(
                first=self._first,
                second=self._second,
                claims=len(self._routes),
                escalated_share=sum(self._routes) / len(self._routes) if self._routes else None,
                audited=len(self._audited),
                audited_agreed=sum(self._audited),
                escalated=len(self._escalated),
                escalated_agreed=sum(self._escalated),
            )

    def _has_dropped(self) -> bool:
        """Whether agreement is low now and was not before."""
        if len(self._audited) < min(_LEAST_AUDITED, self._audited.maxlen or _LEAST_AUDITED):
            return False
        was_low, self._is_low = self._is_low, self._audited_rate() < self._least
        return self._is_low and not was_low

    def _audited_rate(self) -> float:
        return sum(self._audited) / len(self._audited) if self._audited else 1.0


# --- Asking, whichever kind of judge it is ----------------------------------------------------


class Answers(NamedTuple):
    """What a judge said.

    Attributes:
        verdicts: By the position of the claim among those asked; some may be missing.
        usage: What asking cost.
    """

    verdicts: dict[int, ClaimVerdict]
    usage: JudgeUsage


async def ask(judge: LLMJudge, claims: Sequence[str], context: Sequence[str]) -> Answers:
    """Ask about all claims, in one call where the judge can.

    Raises:
        JudgeError: The judge failed. Its `usage` holds what earlier calls cost as well.
    """
    if not isinstance(judge, BatchingJudge):
        return await _ask_each(judge, claims, context)
    size = limit_of(judge.max_claims) or len(claims)
    verdicts: dict[int, ClaimVerdict] = {}
    usage = JudgeUsage()
    for start in range(0, len(claims), size):
        try:
            reply = await judge.verify_claims(claims[start : start + size], context)
        except JudgeError as error:
            error.usage = usage + (error.usage or JudgeUsage())
            raise
        usage += reply.spent()
        asked = min(size, len(claims) - start)
        verdicts.update((start + i, verdict) for i, verdict in _undisputed(reply, asked).items())
    return Answers(verdicts, usage)


def limit_of(limit: object) -> int | None:
    """A judge's limit; None where it has none."""
    return limit if isinstance(limit, int) and limit > 0 else None


def _undisputed(reply: VerdictsResult, asked: int) -> dict[int, ClaimVerdict]:
    """Verdicts by claim; one with two different verdicts has none: either would be a guess."""
    found: dict[int, ClaimVerdict] = {}
    disputed: set[int] = set()
    for verdict in reply.verdicts:
        index = verdict.index
        if index is None or not 0 <= index < asked:
            continue
        if found.setdefault(index, verdict).verdict != verdict.verdict:
            disputed.add(index)
    return {index: verdict for index, verdict in found.items() if index not in disputed}


async def _ask_each(judge: LLMJudge, claims: Sequence[str], context: Sequence[str]) -> Answers:
    spent: list[JudgeUsage] = []

    async def one(claim: str) -> ClaimVerdict | None:
        try:
            verdict = await judge.verify_claim(claim, list(context))
        except JudgeResponseError as error:
            spent.append(error.usage or JudgeUsage())
            return None  # one malformed reply is one missing verdict
        spent.append(verdict.spent())
        return verdict

    try:
        replies = await run_all(one(claim) for claim in claims)
    except JudgeError as error:
        error.usage = sum(spent, error.usage or JudgeUsage())
        raise
    answered = {i: reply for i, reply in enumerate(replies) if reply is not None}
    return Answers(answered, sum(spent, JudgeUsage()))


# --- Settings, checked ------------------------------------------------------------------------

_HALF = 0.5


def check_settings(
    *,
    escalate: float | None,
    band: tuple[float, float] | None,
    audit: float,
    window: int,
    least_agreement: float,
    **stages: str,
) -> None:
    """Refuse settings that are out of range.

    Raises:
        ConfigurationError: One is; the message names it.
    """
    if escalate is not None and band is not None:
        raise ConfigurationError("CascadeJudge: give escalate= or band=, not both")
    shares = {"escalate": escalate, "audit": audit, "least_agreement": least_agreement}
    for name, value in shares.items():
        if value is not None and not _is_share(value):
            raise ConfigurationError(f"CascadeJudge: {name} must be within [0, 1], got {value!r}")
    if band is not None and not _is_band(band):
        raise ConfigurationError(
            f"CascadeJudge: band must be (low, high) with 0 <= low < high <= 1, got {band!r}"
        )
    if not isinstance(window, int) or window < 1:
        raise ConfigurationError(f"CascadeJudge: window must be at least 1, got {window!r}")
    for name, stage in stages.items():
        if stage not in ("first", "last"):
            raise ConfigurationError(
                f"CascadeJudge: {name} must be 'first' or 'last', got {stage!r}"
            )


def screen_of(first: LLMJudge, calibration: Calibration | str | Path | None) -> LLMJudge:
    """The first judge, calibrated where there is a calibration.

    Raises:
        ConfigurationError: The calibration was made for another judge.
    """
    return first if calibration is None else CalibratedJudge(first, calibration)


def choose_screening(
    first: LLMJudge, *, escalate: float | None, band: tuple[float, float] | None
) -> Screening:
    """Which of the first judge's verdicts are accepted.

    Raises:
        ConfigurationError: A band without a calibration, or what would be accepted may be a guess.
    """
    if not isinstance(first, CalibratedJudge):
        if band is not None:
            raise ConfigurationError(
                "CascadeJudge: band is about calibrated support, and the first judge has no "
                "calibration; pass calibration= (made by `ragaliq calibrate`)"
            )
        return Screening.everything()
    if band is not None:
        return Screening.by_band(first.curve, *band)
    return Screening.by_share(first.curve, _HALF if escalate is None else escalate)


def stage_names(first: LLMJudge, second: LLMJudge) -> tuple[str, str]:
    """What two judges are called in `decided_by`; with their models where the names are the same.

    Raises:
        ConfigurationError: They cannot be told apart.
    """
    names = judge_name(first), judge_name(second)
    if names[0] != names[1]:
        return names
    with_models = f"{names[0]}:{first.model}", f"{names[1]}:{second.model}"
    if first.model == second.model:
        raise ConfigurationError(
            f"CascadeJudge: two judges are called {names[0]!r} and have the same model, so nobody "
            "could tell who decided; give one another name"
        )
    return with_models


def _is_share(value: Any) -> bool:
    return isinstance(value, (int, float)) and 0.0 <= value <= 1.0


def _is_band(band: Any) -> bool:
    return (
        isinstance(band, (tuple, list))
        and len(band) == 2
        and all(_is_share(bound) for bound in band)
        and band[0] < band[1]
    )
