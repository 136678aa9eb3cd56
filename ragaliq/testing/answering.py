"""Answers structured requests by reading the prompt and asking another judge."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable

from ragaliq.judges.base import BatchingJudge, ClaimVerdict, LLMJudge
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

__all__ = ["PromptReader", "UnknownFormError", "answer"]

_SECTION = re.compile(
    r"<(?P<tag>question|answer|context|claims|chunk)(?P<number>(?:-\d+)?)>\n"
    r"(?P<text>.*?)\n</(?P=tag)(?P=number)>",
    re.DOTALL,
)


class UnknownFormError(Exception):
    """The request asks for something no judge of ours is asked for."""


class PromptReader:
    """The application's texts, taken back out of a prompt.

    Args:
        text: The request's text, with sections as `ragaliq.judges.prompting` writes them.
    """

    def __init__(self, text: str) -> None:
        self._sections: dict[str, tuple[str, str]] = {}
        for match in _SECTION.finditer(text):
            self._sections.setdefault(match["tag"], (match["number"], match["text"]))

    def __contains__(self, tag: str) -> bool:
        return tag in self._sections

    def text(self, tag: str) -> str:
        """One text; empty where the prompt has no such section."""
        return self._sections.get(tag, ("", ""))[1]

    def texts(self, tag: str, item_tag: str) -> list[str]:
        """The texts of a list."""
        number, body = self._sections.get(tag, ("", ""))
        item = re.compile(
            rf'<{item_tag}{number} id="\w+">\n(.*?)\n</{item_tag}{number}>', re.DOTALL
        )
        return item.findall(body)


async def answer(text: str, form: frozenset[str] | None, judge: LLMJudge) -> str:
    """The reply's text, in the form the request asks for.

    Args:
        text: A request made from ragaliq's prompts, or any other without a form.
        form: The fields of the reply; None where the request asks for no form.
        judge: Who decides.

    Raises:
        UnknownFormError: The form is none of ragaliq's.
        JudgeError: The judge failed.
    """
    if form is None:
        return "OK."
    try:
        reply = _FORMS[form]
    except KeyError:
        raise UnknownFormError(
            f"no answer for a schema with {sorted(form)}; use respond="
        ) from None
    return await reply(PromptReader(text), judge)


async def _claims(prompt: PromptReader, judge: LLMJudge) -> str:
    if isinstance(judge, BatchingJudge):
        found = await judge.extract_statements(prompt.text("question"), prompt.text("answer"))
    else:
        found = await judge.extract_claims(prompt.text("answer"))
    return ClaimsReply(claims=found.claims).model_dump_json()


async def _verdicts(prompt: PromptReader, judge: LLMJudge) -> str:
    claims = prompt.texts("claims", "claim")
    context = prompt.texts("context", "chunk")
    decided: Iterable[tuple[int | None, ClaimVerdict]]
    if isinstance(judge, BatchingJudge):
        verdicts = (await judge.verify_claims(claims, context)).verdicts
        decided = ((verdict.index, verdict) for verdict in verdicts)
    else:
        decided = enumerate([await judge.verify_claim(claim, context) for claim in claims])
    items = [
        ClaimReply(claim_id="" if index is None else claim_id(index), **reply_fields(verdict))
        for index, verdict in decided
    ]
    return VerdictsReply(verdicts=items).model_dump_json()


async def _graded(prompt: PromptReader, judge: LLMJudge) -> str:
    question, response = prompt.text("question"), prompt.text("answer")
    context = prompt.texts("context", "chunk")
    graded: list[tuple[str, ClaimVerdict]]
    if isinstance(judge, BatchingJudge):
        found = await judge.grade_statements(question, response, context)
        graded = [(item.statement, item) for item in found.verdicts]
    else:
        claims = (await judge.extract_claims(response)).claims
        graded = [(claim, await judge.verify_claim(claim, context)) for claim in claims]
    items = [StatementReply(statement=text, **reply_fields(verdict)) for text, verdict in graded]
    return GradedReply(statements=items).model_dump_json()


async def _score(prompt: PromptReader, judge: LLMJudge) -> str:
    question = prompt.text("question")
    if "chunk" in prompt:
        result = await judge.evaluate_context_relevance(question, prompt.text("chunk"))
    else:
        result = await judge.evaluate_relevance(question, prompt.text("answer"))
    return ScoreReply(score=result.score, reasoning=result.reasoning).model_dump_json()


_FORMS: dict[frozenset[str], Callable[[PromptReader, LLMJudge], Awaitable[str]]] = {
    frozenset(ClaimsReply.model_fields): _claims,
    frozenset(VerdictsReply.model_fields): _verdicts,
    frozenset(GradedReply.model_fields): _graded,
    frozenset(ScoreReply.model_fields): _score,
}
