"""Claim check that faithfulness, hallucination and the metrics of chunks share.

An answer is split into claims and each claim is decided from the context. Three strategies cost
differently: `batched` two calls, `per_claim` one and one for each claim, `single_pass` one. All
return a `ClaimCheck`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from ragaliq.core.concurrency import off_loop_if_long, pause_if_due, run_all
from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.results import UNCALIBRATED, ClaimDetail, JudgeUsage, Status
from ragaliq.core.spending import paid, spending
from ragaliq.core.test_case import DOCUMENT_NAMES, ContextChunk, RAGTestCase
from ragaliq.errors import JudgeError, JudgeInputError, JudgeResponseError
from ragaliq.evaluators.alignment import EvidenceSource, SearchedText
from ragaliq.evaluators.history import (
    earlier_sources,
    known_context,
    prompt_source,
    question_of,
)
from ragaliq.judges.base import BatchingJudge, ClaimVerdict, LLMJudge, identity_of, limit_of
from ragaliq.judges.language.answers import (
    AROUND,
    SAYS_NOTHING,
    SkippedPart,
    names_document,
    read_answer,
    without,
)
from ragaliq.judges.language.refusals import is_own_decline, is_refusal

Strategy = Literal["batched", "per_claim", "single_pass"]

NAMED_SOURCE = (
    r"[(\[]\s*(?i:sources?|quellen?|fuentes?|fonti?|see|ref(?:erence)?s?)\s*:\s*"
    r"([^()\[\]]{1,200})[)\]]"
)
"""A citation by name, such as `(source: refunds.md)`, as a pattern whose first group names it."""

LONGEST_ANSWER = 1_000_000
"""Characters of an answer whose claims are checked; finding them takes some three seconds."""

_CITED = re.compile(rf"(?<!\s)\s*{NAMED_SOURCE}")


Claims: TypeAlias = Mapping[int, str]
"""Claims by their position in the answer."""

Verdicts: TypeAlias = dict[int, ClaimVerdict]
"""Verdicts by the position of their claim; claims that stayed undecided are not there."""


@dataclass(frozen=True, kw_only=True)
class ClaimCheck:
    """Claims of one answer with their verdicts.

    Attributes:
        case: The case.
        status: `scored`, `partial`, or the reason why there is nothing to score.
        claims: Claims in the answer's order; one without a verdict stayed undecided.
        usage: Usage of the check.
        context_parts: Number of parts that the context was split into because of its length.
        coverage: Share of the answer's assertions that its claims cover, 0 to 1.
        skipped: The parts of the answer that make no claim.
    """

    case: RAGTestCase
    status: Status
    claims: tuple[ClaimDetail, ...] = ()
    usage: JudgeUsage = JudgeUsage()
    context_parts: int = 1
    coverage: float = 1.0
    skipped: tuple[SkippedPart, ...] = ()

    @property
    def decided(self) -> list[ClaimDetail]:
        """Claims with a verdict; the denominator of every claim-based score."""
        return [claim for claim in self.claims if claim.verdict is not None]


def _nothing_to_score(
    case: RAGTestCase, policy: ScoringPolicy, *, with_context: bool
) -> Status | None:
    if len(case.response) > LONGEST_ANSWER:
        raise JudgeInputError(
            f"the answer has {len(case.response):,} characters; claims are checked in answers of "
            f"up to {LONGEST_ANSWER:,}"
        )
    if not case.response.strip():
        return Status.EMPTY_ANSWER
    if not with_context and policy.empty_context == "skip":
        return Status.NO_CONTEXT
    declines = is_refusal if policy.answer_refusal else is_own_decline
    return Status.ANSWER_REFUSED if declines(case.response, policy.declines) else None


async def check_claims(
    case: RAGTestCase,
    judge: LLMJudge,
    *,
    policy: ScoringPolicy,
    strategy: Strategy | None = None,
) -> ClaimCheck:
    """Extract and decide the claims of a case's answer.

    Args:
        case: Question, context and answer.
        judge: The judge.
        policy: Rules for an empty context and missing verdicts.
        strategy: Strategy; by default `batched` if the judge supports it, else `per_claim`.

    Raises:
        JudgeError: The judge failed, or the answer is too long.
        DatasetError: The case has no context and the policy treats that as an error.
    """
    context = known_context(case, policy)
    length = len(case.response)
    if nothing := await _nothing_to_check(case, judge, policy, with_context=any(context)):
        return nothing

    batching = judge if isinstance(judge, BatchingJudge) and strategy != "per_claim" else None
    source = EvidenceSource(case.context_texts, ids=case.chunk_ids)
    verifier = Verifier(judge, source, policy=policy, batched=batching is not None)
    skipped = (await off_loop_if_long(length, read_answer, case.response)).skipped
    prose = without(case.response, (part for part in skipped if part.kind in AROUND))
    answer = split_text(prose, limit_of(judge.max_answer_chars)) if prose else []
    fits = len(verifier.parts) == len(answer) == 1
    question = question_of(case, judge, policy) if case.history else case.query
    # If the policy has an empty context judged, the judge gets it like any other.
    undecidable = not context.chunks and (any(context) or policy.empty_context == "not_enough_info")
    uncited = _drop_citations(case)
    with spending() as spent:
        if batching and strategy == "single_pass" and fits and not undecidable:
            graded = await paid(batching.grade_statements(question, prose, case.context_texts))
            declined = graded.declined
            claims = [verdict.statement for verdict in graded.verdicts]
            given = dict(enumerate(graded.verdicts))
            verdicts = await verifier.look_again(dict(enumerate(claims)), given)
        else:
            claims, declined = [], bool(answer)
            for part in answer:
                if batching:
                    extracted = await paid(batching.extract_statements(question, part))
                else:
                    extracted = await paid(judge.extract_claims(part))
                declined = declined and extracted.declined
                # No context says "(source: refunds.md)" of itself.
                said = (_CITED.sub(uncited, each) for each in extracted.claims)
                claims += [claim for claim in said if claim.strip()]
            if undecidable:
                verdict = ClaimVerdict(
                    verdict="NOT_ENOUGH_INFO", reason="There is no context.", decided_by="policy"
                )
                verdicts = dict.fromkeys(range(len(claims)), verdict)
            else:
                verdicts = await verifier.decide(dict(enumerate(claims)))
        # Prompt and conversation decide what this turn's chunks leave open; `verdicts` is updated.
        elsewhere = await _decide_from_prompt(case, claims, verdicts, verifier)
        elsewhere |= (
            await _decide_from_history(case, claims, verdicts, verifier) if case.history else {}
        )
        status = Status.NO_CLAIMS
        if declined and not claims and policy.answer_refusal:
            status = await _status_of_decline(case, judge, policy)
    if not claims:
        return ClaimCheck(case=case, status=status, usage=spent.usage, skipped=tuple(skipped))
    sources = dict.fromkeys(range(len(claims)), source) | elsewhere
    details = await claim_details(case.response, claims, verdicts, sources, judge)
    status = Status.SCORED if len(verdicts) == len(claims) else Status.PARTIAL
    is_supported = any(claim.verdict == "SUPPORTED" for claim in details)
    if not (context.chunks or context.earlier or is_supported) and policy.empty_context == "skip":
        # If only a prompt is known and it supports nothing, it holds instructions alone.
        status = Status.NO_CONTEXT if case.sources.no_context else status
    return ClaimCheck(
        case=case,
        status=status,
        claims=details,
        usage=spent.usage,
        context_parts=len(verifier.parts),
        coverage=await off_loop_if_long(length, _coverage, case.response, details, skipped, policy),
        skipped=tuple(skipped),
    )


async def _nothing_to_check(
    case: RAGTestCase, judge: LLMJudge, policy: ScoringPolicy, *, with_context: bool
) -> ClaimCheck | None:
    """Check of an answer that is blank, declines or has no context; None for any other."""
    status = await off_loop_if_long(
        len(case.response), _nothing_to_score, case, policy, with_context=with_context
    )
    if status is None:
        return None
    with spending() as spent:
        if status is Status.ANSWER_REFUSED:
            status = await _status_of_decline(case, judge, policy)
    return ClaimCheck(case=case, status=status, usage=spent.usage)


_HELD = 0.7
"""Relevance from which on a context holds the main part of what an answer needs."""


async def _status_of_decline(case: RAGTestCase, judge: LLMJudge, policy: ScoringPolicy) -> Status:
    """Tell an answer that rightly declines from one whose context holds the answer.

    Only judges that are trusted with relevance are asked, once for each part of the context, and
    only if the policy looks for declines. Where the judge fails, nobody knows: the answer declined.
    """
    metrics: object = judge.default_metrics
    is_asked = policy.answer_refusal and case.query.strip() and case.has_context
    if not (is_asked and isinstance(metrics, tuple)):
        return Status.ANSWER_REFUSED
    parts = split_context(case.context_texts, limit_of(judge.max_context_chars))
    try:
        for part in parts if "relevance" in metrics else ():
            text = "\n\n".join(part.texts)
            found = await paid(judge.evaluate_context_relevance(case.query, text))
            if found.score >= _HELD:
                return Status.ANSWER_WITHHELD
    except JudgeError:
        pass
    return Status.ANSWER_REFUSED


def _drop_citations(case: RAGTestCase) -> Callable[[re.Match[str]], str]:
    """Make the function that removes citations which name a known document and say no more."""
    names = {str(each).casefold() for each in case.chunk_ids}
    for chunk in case.context:
        metadata = chunk.metadata if isinstance(chunk, ContextChunk) else {}
        for key in DOCUMENT_NAMES:
            if isinstance(name := metadata.get(key), str) and name.strip():
                folded = name.strip().casefold()
                names |= {folded, folded.replace("\\", "/").rpartition("/")[2]}

    def replacement(citation: re.Match[str]) -> str:
        named = citation[1].strip()
        known = named.casefold() in names or names_document(named, bare=0)
        return "" if known else citation[0]

    return replacement


async def _decide_from_prompt(
    case: RAGTestCase, claims: Sequence[str], verdicts: Verdicts, verifier: Verifier
) -> dict[int, EvidenceSource]:
    """Decide from the rest of the prompt; return the source of each claim decided by it."""
    # The rest of the prompt may support what the chunks contradict: ask about those claims too.
    source = prompt_source(case, verifier.policy)
    unsettled = {i: claims[i] for i, each in verdicts.items() if each.verdict != "SUPPORTED"}
    if source is None or not unsettled:
        return {}
    found: dict[int, EvidenceSource] = {}
    for position, verdict in (await verifier.on(source).decide(unsettled)).items():
        is_news = verdicts[position].verdict == "NOT_ENOUGH_INFO"
        if verdict.verdict == "SUPPORTED" or (verdict.verdict == "CONTRADICTED" and is_news):
            verdicts[position] = verdict
            found[position] = source
    return found


async def _decide_from_history(
    case: RAGTestCase, claims: Sequence[str], verdicts: Verdicts, verifier: Verifier
) -> dict[int, EvidenceSource]:
    found: dict[int, EvidenceSource] = {}
    unsettled = [i for i, each in verdicts.items() if each.verdict == "NOT_ENOUGH_INFO"]
    for source in earlier_sources(case, verifier.policy):
        if not unsettled:
            break
        decided = await verifier.on(source).decide({i: claims[i] for i in unsettled})
        echoes: Verdicts = {}
        if source.answers:
            supported = {i: claims[i] for i in decided if decided[i].verdict == "SUPPORTED"}
            echoes = await verifier.on(EvidenceSource(source.answers)).decide(supported)
        unsettled = []
        for position, verdict in decided.items():
            is_echo = position in echoes and echoes[position].verdict == "SUPPORTED"
            if verdict.verdict == "NOT_ENOUGH_INFO" or is_echo:
                unsettled.append(position)
            # An answer may rightly contradict a user, so a user's statements only count as support.
            elif verdict.verdict == "SUPPORTED" or source.kind != "user":
                verdicts[position] = verdict
                found[position] = source
    return found


# --- Deciding claims --------------------------------------------------------------------------

_CONCURRENT_CLAIMS = 8
"""Claims of one answer that are asked about at the same time, one by one."""

_DOUBT = 0.5
"""Factor on the confidence of a claim whose evidence was not found even on a second look."""

_STRENGTH = {"SUPPORTED": 0, "CONTRADICTED": 1, "NOT_ENOUGH_INFO": 2}


class Verifier:
    """Decides claims from one source of evidence.

    Args:
        judge: The judge.
        source: The context.
        policy: Rules for missing verdicts.
        batched: Ask about many claims in one call, if the judge is a `BatchingJudge`.

    Attributes:
        policy: See above.
        parts: The parts that the context is split into.
    """

    def __init__(
        self, judge: LLMJudge, source: EvidenceSource, *, policy: ScoringPolicy, batched: bool
    ) -> None:
        self._judge, self._source, self.policy = judge, source, policy
        self._batching = judge if batched and isinstance(judge, BatchingJudge) else None
        self._tolerates_missing = policy.missing_verdicts != "error"
        if policy.missing_verdicts == "reask":
            self._tolerates_missing = policy.still_missing == "partial"
        self._slots = asyncio.Semaphore(_CONCURRENT_CLAIMS)
        self.parts = split_context(source.texts, limit_of(judge.max_context_chars))

    def on(self, source: EvidenceSource) -> Verifier:
        """Return a verifier with the same settings for another source."""
        batched = self._batching is not None
        return Verifier(self._judge, source, policy=self.policy, batched=batched)

    async def decide(self, claims: Claims, *, holds_to_quotes: bool = True) -> Verdicts:
        """Decide all claims.

        SUPPORTED by any part of the context wins, else CONTRADICTED by any, else NOT_ENOUGH_INFO. A
        claim that some part left undecided is decided only if another part supports it.

        Args:
            claims: The claims by position.
            holds_to_quotes: Whether to ask again about claims decided by an invented quote.

        Raises:
            JudgeError: The judge failed, or left claims undecided and the policy forbids it.
        """
        if not claims:
            return {}
        if len(self.parts) == 1:
            verdicts = await self._from_part(self.parts[0], claims)
        else:
            parts = await run_all(self._from_part(part, claims) for part in self.parts)
            verdicts = {}
            for claim in claims:
                found = [part[claim] for part in parts if claim in part]
                found.sort(key=lambda verdict: (_STRENGTH[verdict.verdict], -verdict.confidence))
                if found and (len(found) == len(parts) or found[0].verdict == "SUPPORTED"):
                    alike = [verdict for verdict in found if verdict.verdict == found[0].verdict]
                    chunks = dict.fromkeys(i for each in alike for i in each.supporting_chunk_ids)
                    update = {"supporting_chunk_ids": list(chunks)}
                    verdicts[claim] = found[0].model_copy(update=update)
            if not verdicts:
                raise _undecided(len(claims), len(claims))
        # Judges without batching give remarks, not quotes, as evidence: nothing to check.
        if holds_to_quotes and self._batching:
            return await self.look_again(claims, verdicts)
        return verdicts

    async def look_again(self, claims: Claims, verdicts: Verdicts) -> Verdicts:
        """Ask once more about claims that were decided by a quote that is not in the context."""
        doubtful = {
            position: claims[position]
            for position, verdict in verdicts.items()
            if verdict.evidence.strip() and not await self._is_founded(verdict)
        }
        try:
            second = await self.decide(doubtful, holds_to_quotes=False)
        except JudgeError:
            second = {}  # the first answer stands, in doubt
        settled = dict(verdicts)
        for position in doubtful:
            verdict = second.get(position, verdicts[position])
            # A claim that now has no quote at all is as unfounded as before.
            if not await self._is_founded(verdict):
                # The halved confidence is not a calibrated probability any more.
                halved = {"confidence": verdict.confidence * _DOUBT, "calibration": UNCALIBRATED}
                verdict = verdict.model_copy(update=halved)
            settled[position] = verdict
        return settled

    async def _is_founded(self, verdict: ClaimVerdict) -> bool:
        if verdict.verdict == "NOT_ENOUGH_INFO":
            return True
        return bool(await self._source.find(verdict.evidence, verdict.supporting_chunk_ids))

    async def _from_part(self, part: ContextPart, claims: Claims) -> Verdicts:
        """Ask about all claims, then once more about those without a verdict if the policy says so.

        Raises:
            JudgeResponseError: No claim was decided, or some were not and the policy forbids it.
        """
        verdicts: Verdicts = {}
        missing = list(claims)
        for _ in range(2 if self.policy.missing_verdicts == "reask" else 1):
            if self._batching:
                size = limit_of(self._batching.max_claims) or len(missing)
                for start in range(0, len(missing), size):
                    group = missing[start : start + size]
                    asked = [claims[i] for i in group]
                    reply = await paid(self._batching.verify_claims(asked, list(part.texts)))
                    found = reply.by_claim(len(group))
                    verdicts |= {group[index]: verdict for index, verdict in found.items()}
            else:
                replies = await run_all(self._about_one(claims[i], part) for i in missing)
                answered = zip(missing, replies, strict=True)
                verdicts |= {i: reply for i, reply in answered if reply is not None}
            missing = [i for i in missing if i not in verdicts]
            if not missing:
                break
        if missing and (not verdicts or not self._tolerates_missing):
            raise _undecided(len(missing), len(claims))
        # Convert chunk positions in the part to positions in the whole context.
        positions = part.positions
        for claim, verdict in verdicts.items():
            given = verdict.supporting_chunk_ids
            known = [positions[i] for i in given if 0 <= i < len(positions)]
            if known != given:
                verdicts[claim] = verdict.model_copy(update={"supporting_chunk_ids": known})
        return verdicts

    async def _about_one(self, claim: str, part: ContextPart) -> ClaimVerdict | None:
        async with self._slots:
            try:
                return await paid(self._judge.verify_claim(claim, list(part.texts)))
            except JudgeResponseError:
                # If the policy tolerates it, one malformed reply is one missing verdict.
                if self._tolerates_missing:
                    return None
                raise


def _undecided(missing: int, total: int) -> JudgeResponseError:
    return JudgeResponseError(f"the judge gave no verdict for {missing} of {total} claims")


# --- Claim details ----------------------------------------------------------------------------


async def claim_details(
    response: str,
    claims: Sequence[str],
    verdicts: Verdicts,
    sources: Mapping[int, EvidenceSource],
    judge: LLMJudge,
) -> tuple[ClaimDetail, ...]:
    """Describe each claim: its verdict, its place and the places of its evidence.

    Args:
        response: The answer.
        claims: Its claims.
        verdicts: Verdicts by the claim's position.
        sources: Sources of evidence by the claim's position.
        judge: The judge that decided.
    """
    name, answer = identity_of(judge).name, SearchedText(response)
    details, cursor, paused = [], 0, 0.0
    for position, claim in enumerate(claims):
        paused = await pause_if_due(paused)
        span = await off_loop_if_long(len(response), answer.locate, claim, start=cursor)
        cursor = span[1] if span else cursor
        verdict = verdicts.get(position)
        if verdict is None:
            details.append(
                ClaimDetail(
                    claim=claim, verdict=None, confidence=0.0, is_unsure=True, answer_span=span
                )
            )
            continue
        source = sources[position]
        known = (i for i in verdict.supporting_chunk_ids if 0 <= i < len(source.ids))
        chunks = list(dict.fromkeys(known))
        evidence_spans = await source.find(verdict.evidence, chunks)
        # A MagicMock(spec=LLMJudge) answers any call with another mock.
        unsure: object = judge.is_unsure(verdict)
        details.append(
            ClaimDetail(
                claim=claim,
                verdict=verdict.verdict,
                evidence=verdict.evidence,
                confidence=verdict.confidence,
                is_unsure=unsure is True,
                reason=verdict.reason,
                support_source=None if verdict.verdict == "NOT_ENOUGH_INFO" else source.kind,
                supporting_chunk_ids=tuple(source.ids[i] for i in chunks),
                answer_span=span,
                evidence_spans=evidence_spans,
                evidence_verified=bool(evidence_spans),
                decided_by=verdict.decided_by or name,
                calibration=verdict.calibration,
            )
        )
    return tuple(details)


_ADDRESS = re.compile(r"https?://\S+|www\.\S+")


def _coverage(
    answer: str,
    claims: Sequence[ClaimDetail],
    skipped: Sequence[SkippedPart],
    policy: ScoringPolicy,
) -> float:
    """Share of the answer's assertions, in letters and digits, that its claims cover.

    Addresses and skipped parts assert nothing. A reworded claim has no place in the answer; its own
    length counts instead. 1.0 where the policy does not ask.
    """
    if not policy.least_coverage:
        return 1.0
    spans = [match.span() for match in _ADDRESS.finditer(answer)]
    spans += [(part.start, part.end) for part in skipped if part.kind in SAYS_NOTHING]
    pieces, at = list[str](), 0
    for start, end in sorted(spans):
        pieces += [answer[at:start], " " * (end - max(start, at))]
        at = max(at, end)
    answer = "".join([*pieces, answer[at:]])
    covered, end = 0, 0
    for start, stop in sorted(claim.answer_span for claim in claims if claim.answer_span):
        covered += sum(map(str.isalnum, answer[max(start, end) : stop]))
        end = max(end, stop)
    for claim in claims:
        if claim.answer_span is None:
            covered += sum(map(str.isalnum, claim.claim))
    asserted = sum(map(str.isalnum, answer))
    return min(1.0, covered / asserted) if asserted else 1.0


# --- Parts of what is too long for one question -----------------------------------------------

# Boundaries to cut a text at, best first: between paragraphs, lines, sentences, words.
_BOUNDARIES = (
    re.compile(r"\n\s*\n"),
    re.compile(r"\n"),
    re.compile(r"[.!?]\s+|[。！？]\s*"),  # a point inside 3.14 or an address ends no sentence
    re.compile(r"\s"),
)
_LEAST_FILLED = 0.5


class ContextPart(NamedTuple):
    """Chunks, or pieces of chunks, that fit into one question to the judge.

    Attributes:
        texts: The texts that the judge sees.
        positions: For each text, the position of its chunk in the whole context.
    """

    texts: list[str]
    positions: list[int]


def split_context(texts: Sequence[str], limit: int | None) -> list[ContextPart]:
    """Split chunks into parts of at most `limit` characters, in order.

    A chunk that is longer than the limit is cut at paragraph, line, sentence or word boundaries.

    Args:
        texts: The chunks.
        limit: Most characters of a part; None for no limit.

    Returns:
        At least one part; every character of every chunk is in exactly one.
    """
    if limit is None:
        return [ContextPart(list(texts), list(range(len(texts))))]
    parts, size = [ContextPart([], [])], 0
    for position, text in enumerate(texts):
        for piece in split_text(text, limit):
            if parts[-1].texts and size + len(piece) > limit:
                parts.append(ContextPart([], []))
                size = 0
            parts[-1].texts.append(piece)
            parts[-1].positions.append(position)
            size += len(piece)
    return parts


def split_text(text: str, limit: int | None) -> list[str]:
    """Split a text into pieces of at most `limit` characters; their concatenation is the text."""
    pieces, start = [], 0
    while limit is not None and len(text) - start > limit:
        end = start + limit
        earliest = start + int(limit * _LEAST_FILLED)
        for boundary in _BOUNDARIES:
            cuts = [match.end() for match in boundary.finditer(text, earliest, end)]
            if cuts:
                end = cuts[-1]
                break
        pieces.append(text[start:end])
        start = end
    return [*pieces, text[start:]]
