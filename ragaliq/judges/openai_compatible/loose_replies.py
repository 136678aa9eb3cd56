"""Reading replies of models that were told a form but could not be held to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ragaliq.errors import JudgeError, JudgeResponseError
from ragaliq.judges.parsing import parse_json_reply, parse_verdicts
from ragaliq.judges.wire import (
    ClaimsReply,
    GradedReply,
    ScoreReply,
    VerdictsReply,
    claim_id,
    reply_fields,
)

__all__ = ["read_reply"]

R = TypeVar("R", bound=BaseModel)


def read_reply(text: str, reply: type[R], expected: int | None = None) -> R:
    """Read a reply, in its own form or in another that says the same.

    Args:
        text: What the model said.
        reply: The form it was asked for.
        expected: How many verdicts it was asked for, where that is known.

    Raises:
        JudgeRefusalError: The model declined.
        JudgeResponseError: The reply says nothing that can be used.
    """
    if issubclass(reply, ScoreReply):
        return reply.model_validate(parse_json_reply(text, _LooseScore).model_dump())
    if issubclass(reply, ClaimsReply):
        return reply.model_validate(parse_json_reply(text, _LooseClaims).model_dump())
    failure: JudgeError
    try:
        return parse_json_reply(text, reply)
    except JudgeError as error:
        failure = error
    if issubclass(reply, VerdictsReply):
        return reply.model_validate({"verdicts": _verdicts(text, expected or 0)})
    if issubclass(reply, GradedReply) and (statements := _statements(text)):
        return reply.model_validate({"statements": statements})
    raise failure


class _Loose(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _LooseScore(_Loose):
    # Another scale, such as 8 of 10, must not pass for a 1.
    score: float = Field(ge=0.0, le=1.0, allow_inf_nan=False)
    reasoning: str = ""


def _only_text(item: Any) -> Any:
    """The text of `{"claim": "..."}` and the like."""
    if not isinstance(item, dict):
        return item
    texts = [value for value in item.values() if isinstance(value, str)]
    return texts[0] if len(texts) == 1 else item


class _LooseClaims(_Loose):
    claims: Sequence[Annotated[str, BeforeValidator(_only_text)]]


def _verdicts(text: str, expected: int) -> list[dict[str, Any]]:
    return [
        {"claim_id": claim_id(verdict.index), **reply_fields(verdict)}
        for verdict in parse_verdicts(text, expected)
    ]


def _statements(text: str) -> list[dict[str, Any]]:
    try:
        found = parse_verdicts(text, 0)
    except JudgeResponseError:
        return []
    return [
        {"statement": verdict.statement, **reply_fields(verdict)}
        for verdict in found
        if verdict.statement.strip()
    ]
