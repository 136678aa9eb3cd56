"""`LocalJudge`: the embedded judge. No key, no network, no download."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from ragaliq.core.concurrency import LONG, off_loop_if_long, pause_if_due
from ragaliq.errors import JudgeInputError
from ragaliq.judges.base import (
    BatchingJudge,
    ClaimsResult,
    ClaimVerdict,
    JudgeResult,
    LLMJudge,
    VerdictsResult,
    digest_of,
)
from ragaliq.judges.language.answers import brief_claim, find_claims
from ragaliq.judges.language.refusals import is_refusal
from ragaliq.judges.local.numbers import UNITS_BY_KIND
from ragaliq.judges.local.relevance import (
    Embed,
    answer_relevance,
    chunk_relevance,
    embedded_relevance,
    result,
)
from ragaliq.judges.local.signs import EXCLUSIVE, OPPOSITES, SMALL_WORDS
from ragaliq.judges.local.verdict import (
    FREE,
    THRESHOLD,
    decide,
    load_parameters,
    parameters_off_loop,
    read_context,
)

# Characters of claims times sentences of context; so many take some three seconds.
_MOST_COMPARED = 1_000_000_000
# The results for these are part of the fingerprint, in addition to the parameters: a change in how
# words are read changes the scores too.
_CONTEXT = (
    "The museum opened in May 1987 and has 3,200 paintings. Entry is free on Sundays.",
    "Ada Keller designed the north wing. It has no workshop and never had one.",
)
_CLAIMS = (
    "The museum opened in 1987.",
    "The museum has 4,100 paintings.",
    "Entry is always free.",
    "The north wing was designed by Ada Keller, an architect from Graz.",
    "The north wing has a workshop.",
    "Visitors may bring dogs.",
)


class WordingJudge(BatchingJudge):
    """Finds claims and scores relevance by wording; subclasses decide claims."""

    # Without relevance: by words alone it is little better than chance.
    default_metrics: tuple[str, ...] = ("faithfulness",)
    embed: Embed | None = None

    def estimate(self) -> LLMJudge:
        """Return the embedded judge under this name: a model takes its time, and costs nothing."""
        free = LocalJudge()
        free.name = self.name
        return free

    async def extract_statements(
        self,
        query: str,
        response: str,
    ) -> ClaimsResult:
        """List the sentences, list items and table rows of an answer that can be checked.

        Claims are verbatim slices of the answer: pronouns stay as they are. An answer of a few
        words is one claim together with the question.
        """
        if brief := brief_claim(query, response):
            return ClaimsResult(claims=[brief], usage=FREE)
        found = await off_loop_if_long(len(response), find_claims, response)
        claims = [response[start:end] for start, end in found]
        return ClaimsResult(claims=claims, usage=FREE)

    async def evaluate_relevance(self, query: str, response: str) -> JudgeResult:
        """Score the answer's relevance to the question; a refusal scores 0.

        Raises:
            JudgeAPIError: The embedding function failed.
            JudgeResponseError: It did not return two vectors.
        """
        if not response.strip():
            return result(0.0, "The answer is empty.")
        if await off_loop_if_long(len(response), is_refusal, response):
            return result(0.0, "The answer declines to answer.")
        if self.embed:
            return await embedded_relevance(self.embed, query, response)
        frequencies = (await parameters_off_loop()).frequencies
        characters = len(query) + len(response)
        return await off_loop_if_long(characters, answer_relevance, query, response, frequencies)

    async def evaluate_context_relevance(self, query: str, chunk: str) -> JudgeResult:
        """Score a chunk's relevance to the question; raises as `evaluate_relevance`."""
        if self.embed:
            return await embedded_relevance(self.embed, query, chunk)
        frequencies = (await parameters_off_loop()).frequencies
        characters = len(query) + len(chunk)
        return await off_loop_if_long(characters, chunk_relevance, query, chunk, frequencies)


class LocalJudge(WordingJudge):
    """Decides by wording: the share of a claim's words, numbers and names in the context.

    A screen, not a verdict: it finds claims whose words are not in the context, and contradictions
    that show in a number, a name or a negation. It does not understand paraphrase, arithmetic or
    who did what to whom. Without a `CalibratedJudge` its confidence is not a probability.
    The documentation page "The embedded judge" shows where it fails, "Benchmarks" its accuracy.

    Every reply is free (`JudgeUsage()`) and the same in every process. Instructions inside the
    judged texts have no effect.

    A judge has no state; any number of threads may share it.

    Args:
        embed: Function for relevance by meaning instead of by words: it converts texts to vectors,
            such as the `encode` of a sentence-embedding model. Called in a thread, with the
            question and one text at a time. Verdicts on claims never use it.
    """

    name = "local"
    kind = "code"
    min_support = THRESHOLD

    def __init__(self, *, embed: Embed | None = None) -> None:
        self.embed = embed
        if embed is not None:
            self.default_metrics = LLMJudge.default_metrics

    @property
    def plan(self) -> dict[str, Any] | None:
        """Judge as plain data; None with an embedding function, and for a subclass."""
        return None if self.embed or type(self) is not LocalJudge else {"judge": "local"}

    def estimate(self) -> LLMJudge:
        """Return the judge itself: it is free, and a cascade asks about what it escalates."""
        return self

    @staticmethod
    @cache
    def fingerprint() -> str:
        """Fingerprint of the parameters, of the lists of words, and of how texts are read.

        The first call reads the parameters from a file: make it off the event loop.
        """
        parameters, context = load_parameters(), read_context(_CONTEXT)
        decided = [decide(claim, context, parameters) for claim in _CLAIMS]
        read = (f"{each.verdict} {each.confidence:.3f}" for each in decided)
        return digest_of(
            parameters.digest, repr((EXCLUSIVE, OPPOSITES, SMALL_WORDS, UNITS_BY_KIND)), *read
        )

    async def verify_claims(self, claims: Sequence[str], context: Sequence[str]) -> VerdictsResult:
        """Decide all claims; an empty context gives NOT_ENOUGH_INFO. The context is read once.

        Raises:
            JudgeInputError: There are more claims and sentences than can be compared in seconds.
        """
        size, parameters = sum(map(len, context)), await parameters_off_loop()
        read = await off_loop_if_long(size, read_context, tuple(context))
        if sum(map(len, claims)) * len(read.texts) > _MOST_COMPARED:
            raise JudgeInputError(
                f"{len(claims):,} claims of {sum(map(len, claims)):,} characters and "
                f"{len(read.texts):,} sentences of context are more than the embedded judge "
                "compares"
            )
        if size > LONG:
            await off_loop_if_long(size, read.prepare, claims)
        verdicts, paused = list[ClaimVerdict](), 0.0
        for index, claim in enumerate(claims):
            paused = await pause_if_due(paused)
            length = size + len(claim)
            verdict = await off_loop_if_long(length, decide, claim, read, parameters, index=index)
            verdicts.append(verdict)
        return VerdictsResult(verdicts=verdicts, usage=FREE)
