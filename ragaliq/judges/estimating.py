"""Estimate of what a prompted judge's requests cost, without sending them."""

from __future__ import annotations

import math

from pydantic import BaseModel

from ragaliq.core.results import JudgeUsage
from ragaliq.judges.base import BatchingJudge
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

_CHARACTERS_PER_TOKEN = 4
_SCHEMA_TOKENS = 150
"""Estimate of what the schema of a reply adds to a request."""

_LEAST_CACHED = 512
"""Tokens below which a prefix is not cached (current Sonnet)."""


def cost_estimator(judge: PromptedJudge, estimating: BatchingJudge) -> PromptedJudge:
    """Return a copy of the judge that sends nothing and reports estimated usage.

    Args:
        judge: The judge whose requests are priced.
        estimating: Writes the replies, so that their number and length are realistic.
    """
    cached: set[str] = set()

    async def count(
        prompt: RenderedPrompt,
        reply: type[BaseModel],  # noqa: ARG001
    ) -> tuple[str, JudgeUsage]:
        said = (await _reply_of(estimating, prompt)).model_dump_json()
        total = _SCHEMA_TOKENS + _tokens(prompt.system) + _tokens(prompt.text)
        read = written = 0
        prefix = prompt.system + prompt.shared
        size = _tokens(prefix)
        if judge.caches_context and prompt.shared and size >= _LEAST_CACHED:
            read, written = (size, 0) if prefix in cached else (0, size)
            cached.add(prefix)
        usage = JudgeUsage(
            input_tokens=total - read - written,
            output_tokens=_tokens(said),
            cache_read_tokens=read,
            cache_write_tokens=written,
            requests=1,
        )
        return said, judge.priced(usage)

    counting = judge.answered_by(count)
    # The model's confidence is unknown: a cascade escalates everything.
    counting.sure_from = math.inf
    return counting


async def _reply_of(estimating: BatchingJudge, prompt: RenderedPrompt) -> BaseModel:
    """Reply of the estimating judge to a prompt, in the form of a model's reply."""
    asked = prompt.asked
    if prompt.name == "extract_statements":
        found = await estimating.extract_statements(asked.question, asked.answer)
        return ClaimsReply(claims=found.claims)
    if prompt.name == "verify_claims":
        decided = await estimating.verify_claims(asked.claims, asked.context)
        verdicts = decided.by_claim(len(asked.claims)).items()
        return VerdictsReply(
            verdicts=[
                ClaimReply(claim_id=claim_id(at), **reply_fields(verdict))
                for at, verdict in verdicts
            ]
        )
    if prompt.name == "grade_statements":
        graded = await estimating.grade_statements(asked.question, asked.answer, asked.context)
        return GradedReply(
            statements=[
                StatementReply(statement=each.statement, **reply_fields(each))
                for each in graded.verdicts
            ]
        )
    if prompt.name in ("relevance", "rubric"):
        scored = await estimating.evaluate_relevance(asked.question, asked.answer)
    else:
        scored = await estimating.evaluate_context_relevance(asked.question, asked.chunk)
    return ScoreReply(reasoning=scored.reasoning, score=scored.score)


def _tokens(text: str) -> int:
    return -(-len(text) // _CHARACTERS_PER_TOKEN)
