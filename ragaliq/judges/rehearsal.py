"""What a judge would be asked and what that would cost, without asking it.

The requests are made exactly as for the judge itself; the replies come from a stand-in, so that
their number and length are about what a real judge's would be.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import TypeVar

from pydantic import BaseModel

from ragaliq.core.results import JudgeUsage
from ragaliq.judges.base import (
    BatchingJudge,
    ClaimsResult,
    JudgeResult,
    VerdictsResult,
)
from ragaliq.judges.prompted import PromptedJudge
from ragaliq.judges.prompting import RenderedPrompt
from ragaliq.judges.wire import (
    ClaimReply,
    ClaimsReply,
    GradedReply,
    ScoreReply,
    StatementReply,
    VerdictsReply,
    claim_id,
    reply_fields,
)

__all__ = ["Rehearsal"]

R = TypeVar("R", bound=BaseModel)

_CHARACTERS_PER_TOKEN = 4
_SCHEMA_TOKENS = 150
"""About what the schema of a reply adds to a request."""

_LEAST_CACHED = 512
"""Tokens below which a prefix is not cached (current Sonnet)."""


class Rehearsal(PromptedJudge):
    """A `PromptedJudge` that writes its requests and sends none.

    Args:
        judge: Whose prompts, model and limits are used.
        stand_in: Decides what the replies say.
    """

    def __init__(self, judge: PromptedJudge, stand_in: BatchingJudge) -> None:
        super().__init__(prompts=judge.prompts)
        self.name, self.model, self.provider = judge.name, judge.model, judge.provider
        self.max_context_chars = judge.max_context_chars
        self.max_answer_chars = judge.max_answer_chars
        self.max_claims = judge.max_claims
        self._caches = judge.caches_context
        self._priced = judge.priced
        self._stand_in = stand_in
        self._cached: set[str] = set()
        self._reply: ContextVar[BaseModel] = ContextVar("ragaliq_rehearsed_reply")

    async def ask(self, prompt: RenderedPrompt, reply: type[R]) -> tuple[R, JudgeUsage]:
        """Count what the request and the stand-in's reply would cost."""
        said = self._reply.get()
        if not isinstance(said, reply):
            raise TypeError(f"{prompt.name} was rehearsed with a {type(said).__name__}")
        return said, self._priced(self._spent(prompt, said.model_dump_json()))

    async def extract_statements(self, query: str, response: str) -> ClaimsResult:
        """Rehearse the extraction."""
        found = await self._stand_in.extract_statements(query, response)
        self._reply.set(ClaimsReply(claims=found.claims))
        return await super().extract_statements(query, response)

    async def verify_claims(self, claims: Sequence[str], context: Sequence[str]) -> VerdictsResult:
        """Rehearse the verification."""
        decided = await self._stand_in.verify_claims(claims, context)
        replies = [
            ClaimReply(claim_id=claim_id(verdict.index), **reply_fields(verdict))
            for verdict in decided.verdicts
            if verdict.index is not None
        ]
        self._reply.set(VerdictsReply(verdicts=replies))
        return await super().verify_claims(claims, context)

    async def grade_statements(
        self, query: str, response: str, context: Sequence[str]
    ) -> VerdictsResult:
        """Rehearse grading in one pass."""
        graded = await self._stand_in.grade_statements(query, response, context)
        replies = [
            StatementReply(statement=item.statement, **reply_fields(item))
            for item in graded.verdicts
        ]
        self._reply.set(GradedReply(statements=replies))
        return await super().grade_statements(query, response, context)

    async def evaluate_relevance(self, query: str, response: str) -> JudgeResult:
        """Rehearse a relevance score."""
        self._reply.set(_score(await self._stand_in.evaluate_relevance(query, response)))
        return await super().evaluate_relevance(query, response)

    async def evaluate_context_relevance(self, query: str, chunk: str) -> JudgeResult:
        """Rehearse a chunk's relevance score."""
        self._reply.set(_score(await self._stand_in.evaluate_context_relevance(query, chunk)))
        return await super().evaluate_context_relevance(query, chunk)

    def _spent(self, prompt: RenderedPrompt, said: str) -> JudgeUsage:
        total = _SCHEMA_TOKENS + _tokens(prompt.system) + _tokens(prompt.text)
        prefix = prompt.system + prompt.shared
        read = written = 0
        if self._caches and prompt.shared and _tokens(prefix) >= _LEAST_CACHED:
            read, written = (_tokens(prefix), 0) if prefix in self._cached else (0, _tokens(prefix))
            self._cached.add(prefix)
        return JudgeUsage(
            input_tokens=total - read - written,
            output_tokens=_tokens(said),
            cache_read_tokens=read,
            cache_write_tokens=written,
            requests=1,
        )


def _score(result: JudgeResult) -> ScoreReply:
    return ScoreReply(reasoning=result.reasoning, score=result.score)


def _tokens(text: str) -> int:
    return -(-len(text) // _CHARACTERS_PER_TOKEN)
