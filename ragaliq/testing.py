"""Judges for tests of an application: they decide as the test says, else by wording."""

from __future__ import annotations

import asyncio
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragaliq.core.results import JudgeUsage, Verdict
from ragaliq.judges.base import (
    BatchingJudge,
    ClaimsResult,
    ClaimVerdict,
    JudgeResult,
    LLMJudge,
    VerdictsResult,
)

__all__ = ["JudgeCall", "PlainScriptedJudge", "ScriptedJudge"]


# --- By wording -------------------------------------------------------------------------------

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_WORD = re.compile(r"\w+")
_SHORT = 3


def _sentences(text: str) -> list[str]:
    """Sentences of a text, in order; good enough for tests only."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


def _verdict_by_wording(claim: str, context: Sequence[str]) -> ClaimVerdict:
    """SUPPORTED by the first chunk that holds every word, with its closest sentence as evidence."""
    wanted = _words(claim)
    for position, chunk in enumerate(context):
        if wanted and wanted <= _words(chunk):
            return ClaimVerdict(
                verdict="SUPPORTED",
                evidence=max(_sentences(chunk), key=lambda part: len(wanted & _words(part))),
                confidence=0.9,
                supporting_chunk_ids=[position],
                reason="One chunk holds every word of the claim.",
            )
    return ClaimVerdict(
        verdict="NOT_ENOUGH_INFO",
        confidence=0.9,
        reason="No chunk holds every word of the claim.",
    )


def _shared_words(wanted: str, text: str) -> float:
    """Share of the words of `wanted` that occur in `text`, 0 to 1; 0 if there are none."""
    words = _words(wanted)
    return len(words & _words(text)) / len(words) if words else 0.0


def _words(text: str) -> set[str]:
    """Words that carry meaning: longer ones, and numbers of any length."""
    found = (word.casefold() for word in _WORD.findall(text))
    return {word for word in found if len(word) > _SHORT or not word.isalpha()}


# --- The judges -------------------------------------------------------------------------------

ClaimsScript = Sequence[str] | Callable[[str, str], Sequence[str]]
VerdictScript = Verdict | ClaimVerdict
VerdictsScript = (
    VerdictScript
    | Mapping[str, VerdictScript]
    | Callable[[str, Sequence[str]], VerdictScript | None]
)
ScoreScript = float | Callable[[str, str], float]
FailureScript = BaseException | Sequence[BaseException | None]


@dataclass(frozen=True, slots=True)
class JudgeCall:
    """Call of a scripted judge: the method's name, and its arguments by name."""

    method: str
    arguments: Mapping[str, Any]


class PlainScriptedJudge(LLMJudge):
    """Judge with only the three methods that every judge has.

    Args:
        claims: The claims of any answer, or a function of question and answer; when None, every
            sentence is a claim.
        verdicts: One verdict for all claims, verdicts by claim, or a function of claim and
            context. A claim without a verdict, and every claim when None, is decided by wording:
            SUPPORTED where one chunk holds all its words, else NOT_ENOUGH_INFO.
        relevance: The relevance score, or a function of question and answer; when None, the share
            of the question's words found in the answer.
        usage: Usage that each call reports.
        failures: By method name, the error that each call raises; or a list of one item per call,
            None for a call that succeeds, as do the calls after the last item.
        delay: Seconds each call takes.
    """

    name = "scripted"

    def __init__(
        self,
        *,
        claims: ClaimsScript | None = None,
        verdicts: VerdictsScript | None = None,
        relevance: ScoreScript | None = None,
        usage: JudgeUsage = JudgeUsage(requests=1),
        failures: Mapping[str, FailureScript] | None = None,
        delay: float = 0.0,
    ) -> None:
        self._claims = claims
        self._verdicts = verdicts
        self._relevance = relevance
        self._usage = usage
        self._failures = {name: _per_call(script) for name, script in (failures or {}).items()}
        self._delay = delay
        self._lock = threading.Lock()
        self._calls: list[JudgeCall] = []

    @property
    def calls(self) -> list[JudgeCall]:
        """Every call so far, in order."""
        with self._lock:
            return list(self._calls)

    @property
    def call_counts(self) -> Counter[str]:
        """Number of calls of each method."""
        return Counter(call.method for call in self.calls)

    async def extract_claims(self, response: str) -> ClaimsResult:
        """The scripted claims; the question is the empty string."""
        await self._called("extract_claims", response=response)
        return ClaimsResult(claims=self._claims_of("", response), usage=self._usage)

    async def verify_claim(self, claim: str, context: list[str]) -> ClaimVerdict:
        """The scripted verdict."""
        await self._called("verify_claim", claim=claim, context=context)
        return ClaimVerdict(**self._decision(claim, context), usage=self._usage)

    async def evaluate_relevance(self, query: str, response: str) -> JudgeResult:
        """The scripted score."""
        await self._called("evaluate_relevance", query=query, response=response)
        return JudgeResult(
            score=self._score(query, response), reasoning="scripted", usage=self._usage
        )

    async def _called(self, method: str, **arguments: Any) -> None:
        with self._lock:
            self._calls.append(JudgeCall(method, arguments))
            failure = next(self._failures.get(method, iter(())), None)
        if self._delay:
            await asyncio.sleep(self._delay)
        if failure is not None:
            raise failure

    def _claims_of(self, query: str, response: str) -> list[str]:
        script = _sentences(response) if self._claims is None else self._claims
        return list(script(query, response) if callable(script) else script)

    def _decision(self, claim: str, context: Sequence[str]) -> dict[str, Any]:
        script = self._verdicts
        if isinstance(script, Mapping):
            script = script.get(claim)
        elif callable(script):
            script = script(claim, context)
        if isinstance(script, str):
            script = ClaimVerdict(verdict=script)
        verdict = script or _verdict_by_wording(claim, context)
        return verdict.model_dump(exclude={"index", "statement", "tokens_used", "usage"})

    def _score(self, query: str, response: str) -> float:
        script = _shared_words if self._relevance is None else self._relevance
        return script(query, response) if callable(script) else script


class ScriptedJudge(PlainScriptedJudge, BatchingJudge):
    """Scripted judge that handles all claims in one call; arguments as `PlainScriptedJudge`."""

    async def extract_statements(self, query: str, response: str) -> ClaimsResult:
        """The scripted claims."""
        await self._called("extract_statements", query=query, response=response)
        return ClaimsResult(claims=self._claims_of(query, response), usage=self._usage)

    async def verify_claims(self, claims: Sequence[str], context: Sequence[str]) -> VerdictsResult:
        """The scripted verdicts, one for each claim."""
        await self._called("verify_claims", claims=claims, context=context)
        verdicts = [
            ClaimVerdict(index=index, usage=JudgeUsage(), **self._decision(claim, context))
            for index, claim in enumerate(claims)
        ]
        return VerdictsResult(verdicts=verdicts, usage=self._usage)

    async def grade_statements(
        self, query: str, response: str, context: Sequence[str]
    ) -> VerdictsResult:
        """The scripted claims with their scripted verdicts."""
        await self._called("grade_statements", query=query, response=response, context=context)
        statements = [
            ClaimVerdict(
                index=index,
                statement=claim,
                usage=JudgeUsage(),
                **self._decision(claim, context),
            )
            for index, claim in enumerate(self._claims_of(query, response))
        ]
        return VerdictsResult(verdicts=statements, usage=self._usage)


def _per_call(script: FailureScript) -> Iterator[BaseException | None]:
    if isinstance(script, BaseException):
        while True:
            yield script
    yield from script
