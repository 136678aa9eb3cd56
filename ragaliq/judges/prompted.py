"""Prompted judges: prompts in, structured replies out."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self, TypeVar

from pydantic import BaseModel

from ragaliq.core.results import JudgeUsage
from ragaliq.errors import JudgeResponseError
from ragaliq.judges.base import (
    BatchingJudge,
    ClaimsResult,
    ClaimVerdict,
    JudgeResult,
    VerdictsResult,
    digest_of,
    spent_before,
)
from ragaliq.judges.parsing import find_reply
from ragaliq.judges.pricing import cost_usd
from ragaliq.judges.prompting import (
    PLACEHOLDERS,
    Asked,
    PromptSet,
    PromptSource,
    RenderedPrompt,
    defuse,
    delimit,
    delimit_list,
    restore,
)
from ragaliq.judges.vendors import usage_of
from ragaliq.judges.wire import (
    ClaimReply,
    ClaimsReply,
    GradedReply,
    ScoreReply,
    StatementReply,
    VerdictsReply,
    claim_id,
    form_of,
    reply_fields,
    verdict_of,
)

R = TypeVar("R", bound=BaseModel)

_NOTHING_SPENT = JudgeUsage()


Send = Callable[
    ["PromptedJudge", RenderedPrompt, type[BaseModel]], Coroutine[Any, Any, tuple[str, JudgeUsage]]
]
"""Gets the reply to a judge's request, and its cost, as `PromptedJudge.complete` does."""


class PromptedJudge(BatchingJudge):
    """A judge behind a language model. Subclasses implement `complete`.

    Args:
        prompts: Prompts that replace the built-in ones.

    Attributes:
        provider: Provider of the model, by its name in price lists; None if not known.
        caches_context: Whether requests over one context share a prompt cache.
        keeps_form: Whether a schema constrains the reply. If not, the request describes the form in
            words, and control tokens of chat templates in it are broken up.
        asks_again: Whether a request with a malformed reply is repeated once.
        prompts: The prompts in use.

    Raises:
        ConfigurationError: A prompt is unknown, unreadable, or lacks a placeholder.
    """

    # A language model's confidence orders claims well and is high for most of them.
    sure_from = 0.9
    costs_money = True
    provider: str | None = None
    caches_context: bool = False
    keeps_form: bool = True
    asks_again: bool = True

    def __init__(self, *, prompts: PromptSource | PromptSet | None = None) -> None:
        self.prompts = prompts if isinstance(prompts, PromptSet) else PromptSet(prompts)
        # Import it now, not with the first reply: it reads files, which would block an event loop.
        import genai_prices  # noqa: F401 - `price` needs it

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.model!r})"

    def fingerprint(self) -> str:
        """Fingerprint of the model and all prompts."""
        # By their texts: an edited prompt may keep its version.
        prompts = (f"{name}={text}" for name, text in sorted(self.prompts.texts.items()))
        return digest_of(type(self).__qualname__, self.name, self.model or "", *prompts)

    def price(self, usage: JudgeUsage) -> float | None:
        """List price of one request in US dollars; None if it is not known."""
        return cost_usd(self.model, usage, provider=self.provider) if self.model else None

    def priced(self, usage: JudgeUsage) -> JudgeUsage:
        """Usage of one request with its price; unknown if the reply reports no tokens."""
        is_known = usage.total_tokens > 0 or not usage.requests
        return usage.model_copy(update={"cost_usd": self.price(usage) if is_known else None})

    def spent_on(self, reply: object) -> JudgeUsage:
        """Usage of one request from its reply, with the reported cost, else the list price."""
        usage = usage_of(reply)
        return self.priced(usage) if usage.cost_usd is None else usage

    @abstractmethod
    async def complete(
        self, prompt: RenderedPrompt, reply: type[BaseModel]
    ) -> tuple[str, JudgeUsage]:
        """Send one request, `worded(prompt, reply)` with `prompt.system`.

        Args:
            prompt: What to ask; `prompt.shared` is worth caching, being sent again and again.
            reply: The form of the reply.

        Returns:
            What the model said and what it cost, priced.

        Raises:
            JudgeError: The request brought no reply.
        """

    async def ask(self, prompt: RenderedPrompt, reply: type[R]) -> tuple[R, JudgeUsage]:
        """Ask once, parse the reply, and return it with its usage.

        Parsing is strict: a guess could score an error's text. A request with a malformed reply is
        repeated once, with the problem.

        Raises:
            JudgeError: No reply of this form came; `usage` says what the requests cost.
        """
        text, usage = await self.complete(prompt, reply)
        with spent_before(usage):
            found, fault = find_reply(restore(text), reply)
        if found is None and self.asks_again:
            again = self.prompts.render("reply_again", fault=fault).text
            prompt = replace(prompt, request=f"{prompt.request}\n\n{again}")
            with spent_before(usage):
                text, more = await self.complete(prompt, reply)
            usage += more
            with spent_before(usage):
                found, fault = find_reply(restore(text), reply)
            fault += ", also when it was asked for again" if found is None else ""
        if found is None:
            raise JudgeResponseError(
                f"the reply to {prompt.name} is not of the form asked for: {fault} "
                f"({len(text)} characters)",
                usage=usage,
            )
        return found, usage

    def worded(self, prompt: RenderedPrompt, reply: type[BaseModel]) -> str:
        """The text of the request, as it is sent."""
        if self.keeps_form:
            return prompt.text
        form = self.prompts.render("reply_form", form=form_of(reply)).text
        return f"{defuse(prompt.text)}\n\n{form}"

    def answered_by(self, send: Send) -> Self:
        """Return a copy of the judge that gets its replies from `send` instead of `complete`."""
        other = copy.copy(self)
        other.complete = partial(send, self)  # type: ignore[method-assign]
        other.asks_again = False  # what replies there are is settled
        return other

    def estimate(self) -> Self:
        """Return a copy that sends nothing and reports estimated usage.

        The embedded judge writes the replies, so that their number and length are realistic.
        """
        from ragaliq.judges.local import LocalJudge

        counting = self.answered_by(partial(_estimated, LocalJudge(), set()))
        # The model's confidence is unknown: a cascade escalates everything.
        counting.sure_from = math.inf
        return counting

    def _prompt(self, name: str, asked: Asked) -> RenderedPrompt:
        ids = map(claim_id, range(len(asked.claims)))
        blocks = {
            "context": delimit_list("context", "chunk", range(len(asked.context)), asked.context),
            "claims": delimit_list("claims", "claim", ids, asked.claims),
            # Not delimited as data: the criterion is an instruction.
            "rubric": asked.rubric,
        }
        for tag in PLACEHOLDERS[name] - blocks.keys():
            blocks[tag] = delimit(tag, getattr(asked, tag))
        return replace(self.prompts.render(name, **blocks), asked=asked)

    async def extract_statements(self, query: str, response: str) -> ClaimsResult:
        """List the answer's claims, with pronouns resolved from question and answer."""
        if not response.strip():
            return ClaimsResult(claims=[], usage=_NOTHING_SPENT)
        prompt = self._prompt("extract_statements", Asked(question=query, answer=response))
        reply, usage = await self.ask(prompt, ClaimsReply)
        claims = [claim.strip() for claim in reply.claims if claim.strip()]
        return ClaimsResult(claims=claims, declined=reply.declined and not claims, usage=usage)

    async def verify_claims(self, claims: Sequence[str], context: Sequence[str]) -> VerdictsResult:
        """Decide all claims in one call; an empty context decides them without one.

        The context comes first, so that calls over it can share a cache.
        """
        if not any(text.strip() for text in context):
            undecided = ClaimVerdict(
                verdict="NOT_ENOUGH_INFO", reason="The context is empty.", usage=_NOTHING_SPENT
            )
            verdicts = [undecided.model_copy(update={"index": i}) for i in range(len(claims))]
            return VerdictsResult(verdicts=verdicts, usage=_NOTHING_SPENT)
        if not claims:
            return VerdictsResult(verdicts=[], usage=_NOTHING_SPENT)
        prompt = self._prompt("verify_claims", Asked(context=context, claims=claims))
        reply, usage = await self.ask(prompt, VerdictsReply)
        return VerdictsResult(
            verdicts=[
                verdict_of(item, claims=len(claims), chunks=len(context)) for item in reply.verdicts
            ],
            usage=usage,
        )

    async def grade_statements(
        self, query: str, response: str, context: Sequence[str]
    ) -> VerdictsResult:
        """Find and decide the answer's statements in one call."""
        if not response.strip():
            return VerdictsResult(verdicts=[], usage=_NOTHING_SPENT)
        asked = Asked(question=query, answer=response, context=context)
        prompt = self._prompt("grade_statements", asked)
        # Nothing is sent twice here, and writing to a prompt cache costs more than not using it.
        prompt = replace(prompt, shared="", request=prompt.text)
        reply, usage = await self.ask(prompt, GradedReply)
        statements = [item for item in reply.statements if item.statement.strip()]
        return VerdictsResult(
            verdicts=[
                verdict_of(item, index=index, chunks=len(context))
                for index, item in enumerate(statements)
            ],
            declined=reply.declined and not statements,
            usage=usage,
        )

    async def evaluate_relevance(self, query: str, response: str) -> JudgeResult:
        """Score how well the answer addresses the question."""
        return await self._score("relevance", Asked(question=query, answer=response))

    async def evaluate_context_relevance(self, query: str, chunk: str) -> JudgeResult:
        """Score how useful one chunk is for answering the question."""
        return await self._score("context_relevance", Asked(question=query, chunk=chunk))

    async def evaluate_rubric(self, rubric: str, query: str, response: str) -> JudgeResult:
        """Score how well an answer meets a criterion, which is an instruction and not data."""
        asked = Asked(question=query, answer=response, rubric=rubric)
        return await self._score("rubric", asked)

    async def _score(self, name: str, asked: Asked) -> JudgeResult:
        reply, usage = await self.ask(self._prompt(name, asked), ScoreReply)
        return JudgeResult(score=reply.score, reasoning=reply.reasoning, usage=usage)


# --- Estimates of what requests cost ----------------------------------------------------------

_CHARACTERS_PER_TOKEN = 4
_SCHEMA_TOKENS = 150
"""Estimate of what the schema of a reply adds to a request."""

_LEAST_CACHED = 512
"""Tokens below which a prefix is not cached (current Sonnet)."""


async def _estimated(
    replies: BatchingJudge,
    cached: set[str],
    judge: PromptedJudge,
    prompt: RenderedPrompt,
    reply: type[BaseModel],  # noqa: ARG001
) -> tuple[str, JudgeUsage]:
    said = (await _reply_of(replies, prompt)).model_dump_json()
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
