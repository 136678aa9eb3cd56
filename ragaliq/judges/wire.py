"""Schemas of prompted judges' replies, and their conversion to verdicts.

The model writes the fields in their order here: the reason comes before the verdict that it should
lead to.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from ragaliq.core.results import JudgeUsage, Verdict
from ragaliq.judges.base import ClaimVerdict

_CLAIM_ID = re.compile(r"\s*c?([0-9]{1,9})\s*", re.IGNORECASE)

# The reply's cost is counted once, on the result that contains these verdicts.
_COUNTED_ELSEWHERE = JudgeUsage()


def _upper(value: Any) -> Any:
    return value.strip().upper().replace(" ", "_") if isinstance(value, str) else value


def _number(value: Any) -> Any:
    # A number in quotes, as small models write it, says the same; Python would read "0_1" as 1.
    # True and false are not a share.
    if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
        raise ValueError("must be a number")
    return value


def _in_range(value: float) -> float:
    # Another scale, such as 8 of 10, must not pass for a 1.
    if not 0.0 <= value <= 1.0:
        raise ValueError("must be from 0 to 1")
    return value


# Not `ge` and `le`, which the subset of JSON schemas that servers agree on does not have.
_Share = Annotated[
    float,
    Field(allow_inf_nan=False, description="0 to 1."),
    BeforeValidator(_number),
    AfterValidator(_in_range),
]
_Verdict = Annotated[Verdict, BeforeValidator(_upper)]
# A model that writes 1 for c1 means c1.
_ClaimId = Annotated[
    str,
    BeforeValidator(lambda value: str(value) if type(value) is int else value),
    Field(description="Such as c1."),
]
_Reason = Annotated[str, Field(description="One short sentence on what decides it.")]
_Evidence = Annotated[str, Field(description="A verbatim quote from one chunk, or empty.")]
_ChunkIds = Annotated[list[int], Field(description="Ids of the chunks it rests on.")]


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ClaimsReply(_Wire):  # noqa: D101  a docstring would travel to the model in the schema
    declined: bool = False
    claims: list[str]


class ClaimReply(_Wire):  # noqa: D101
    claim_id: _ClaimId
    reason: _Reason
    evidence: _Evidence
    chunk_ids: _ChunkIds
    verdict: _Verdict
    confidence: _Share


class VerdictsReply(_Wire):  # noqa: D101
    verdicts: list[ClaimReply]


class StatementReply(_Wire):  # noqa: D101
    statement: str = Field(description="One factual statement of the answer.")
    reason: _Reason
    evidence: _Evidence
    chunk_ids: _ChunkIds
    verdict: _Verdict
    confidence: _Share


class GradedReply(_Wire):  # noqa: D101
    declined: bool = False
    statements: list[StatementReply]


class ScoreReply(_Wire):  # noqa: D101
    reasoning: str = Field(description="One or two sentences.")
    score: _Share


def claim_id(index: int) -> str:
    """The id a claim has in a request; `index` is its 0-based position."""
    return f"c{index + 1}"


def verdict_of(
    reply: ClaimReply | StatementReply, *, chunks: int, claims: int = 0, index: int | None = None
) -> ClaimVerdict:
    """Verdict of a reply.

    It refers to one of `claims` in the request, by its id, or to a statement that the judge found
    itself, at `index`. Unknown chunk ids are dropped.
    """
    statement = ""
    if isinstance(reply, StatementReply):
        statement = reply.statement
    elif match := _CLAIM_ID.fullmatch(reply.claim_id):
        named = int(match.group(1)) - 1
        index = named if 0 <= named < claims else None
    known = (chunk for chunk in reply.chunk_ids if 0 <= chunk < chunks)
    return ClaimVerdict(
        index=index,
        statement=statement,
        verdict=reply.verdict,
        evidence=reply.evidence,
        confidence=reply.confidence,
        supporting_chunk_ids=list(dict.fromkeys(known)),
        reason=reply.reason,
        usage=_COUNTED_ELSEWHERE,
    )


def reply_fields(verdict: ClaimVerdict) -> dict[str, Any]:
    """Fields of a reply with this verdict."""
    return {
        "reason": verdict.reason,
        "evidence": verdict.evidence,
        "chunk_ids": verdict.supporting_chunk_ids,
        "verdict": verdict.verdict,
        "confidence": verdict.confidence,
    }


# --- The form of a reply, as a schema and in words --------------------------------------------

_Schema = dict[str, Any]


@functools.cache
def schema_of(reply: type[BaseModel]) -> _Schema:
    """The JSON schema of a reply, in the subset that servers agree on; not to be changed.

    There are no references and no titles, and an object has all its properties and no others.
    """
    full = reply.model_json_schema()
    schema: _Schema = _plain(full, full.get("$defs", {}))
    return schema


def _plain(part: Any, definitions: _Schema) -> Any:
    if isinstance(part, list):
        return [_plain(item, definitions) for item in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return _plain(definitions[part["$ref"].rpartition("/")[2]], definitions)
    if part.get("type") != "object":
        unneeded = ("title", "default")
        return {
            key: _plain(value, definitions) for key, value in part.items() if key not in unneeded
        }
    properties = {key: _plain(value, definitions) for key, value in part["properties"].items()}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@functools.cache
def form_of(reply: type[BaseModel]) -> str:
    """Form of a reply in words, on one line: `{"score": <number: 0 to 1.>}`."""
    return _written(schema_of(reply))


def _written(part: _Schema) -> str:
    if "enum" in part:
        return " | ".join(map(json.dumps, part["enum"]))
    if part["type"] == "object":
        fields = (f'"{key}": {_written(value)}' for key, value in part["properties"].items())
        return "{" + ", ".join(fields) + "}"
    if part["type"] == "array":
        return f"[{_written(part['items'])}, ...]"
    about = part.get("description", "")
    if part["type"] == "string":
        return json.dumps(f"<{about}>" if about else "<text>", ensure_ascii=False)
    return f"<{part['type']}: {about}>" if about else f"<{part['type']}>"
