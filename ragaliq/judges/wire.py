"""What a prompted judge is asked to reply with, and how that becomes the judge's results.

The order of the fields is the order the model writes them in: the reason comes before the verdict
it is to lead to.
"""

from __future__ import annotations

import copy
import functools
import json
import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from ragaliq.core.results import JudgeUsage, Verdict
from ragaliq.judges.base import ClaimVerdict

__all__ = [
    "ClaimReply",
    "ClaimsReply",
    "GradedReply",
    "ScoreReply",
    "StatementReply",
    "VerdictsReply",
    "claim_id",
    "form_of",
    "numbered_verdict",
    "reply_fields",
    "schema_of",
    "statement_verdict",
]


_CLAIM_ID = re.compile(r"c?([0-9]{1,9})", re.IGNORECASE)

# The reply's cost is accounted for once, on the result that holds these verdicts.
_COUNTED_ELSEWHERE = JudgeUsage()


def _clamped(value: float) -> float:
    return min(1.0, max(0.0, value))


def _upper(value: Any) -> Any:
    return value.strip().upper().replace(" ", "_") if isinstance(value, str) else value


_Share = Annotated[float, Field(allow_inf_nan=False), AfterValidator(_clamped)]
_Verdict = Annotated[Verdict, BeforeValidator(_upper)]


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ClaimsReply(_Wire):  # noqa: D101  a docstring would travel to the model in the schema
    claims: list[str] = Field(description="The claims, in the order of the answer.")


class ClaimReply(_Wire):  # noqa: D101
    claim_id: str = Field(description="The id of the claim, such as c1.")
    reason: str = Field(description="One short sentence on what decides the matter.")
    evidence: str = Field(description="A verbatim quote from one chunk, or empty.")
    chunk_ids: list[int] = Field(description="The ids of the chunks the verdict rests on.")
    verdict: _Verdict
    confidence: _Share = Field(description="0 to 1.")


class VerdictsReply(_Wire):  # noqa: D101
    verdicts: list[ClaimReply] = Field(description="One verdict per claim.")


class StatementReply(_Wire):  # noqa: D101
    statement: str = Field(description="One factual statement of the answer.")
    reason: str = Field(description="One short sentence on what decides the matter.")
    evidence: str = Field(description="A verbatim quote from one chunk, or empty.")
    chunk_ids: list[int] = Field(description="The ids of the chunks the verdict rests on.")
    verdict: _Verdict
    confidence: _Share = Field(description="0 to 1.")


class GradedReply(_Wire):  # noqa: D101
    statements: list[StatementReply] = Field(description="In the order of the answer.")


class ScoreReply(_Wire):  # noqa: D101
    reasoning: str = Field(description="One or two sentences.")
    score: _Share = Field(description="0 to 1.")


def claim_id(index: int) -> str:
    """The id a claim has in a request; `index` is its 0-based position."""
    return f"c{index + 1}"


def numbered_verdict(reply: ClaimReply, claims: int, chunks: int) -> ClaimVerdict:
    """The verdict for the claim the reply names.

    Args:
        reply: One verdict.
        claims: How many claims were asked; any other id is no claim's.
        chunks: How many chunks there were; ids of others are dropped.
    """
    match = _CLAIM_ID.fullmatch(reply.claim_id.strip())
    index = int(match.group(1)) - 1 if match else -1
    return ClaimVerdict(index=index if 0 <= index < claims else None, **_decision(reply, chunks))


def statement_verdict(reply: StatementReply, index: int, chunks: int) -> ClaimVerdict:
    """The verdict for a statement the judge found itself."""
    return ClaimVerdict(index=index, statement=reply.statement, **_decision(reply, chunks))


def reply_fields(verdict: ClaimVerdict) -> dict[str, Any]:
    """The fields of the reply that would have given this verdict."""
    return {
        "reason": verdict.reason,
        "evidence": verdict.evidence,
        "chunk_ids": verdict.supporting_chunk_ids,
        "verdict": verdict.verdict,
        "confidence": verdict.confidence,
    }


def _decision(reply: ClaimReply | StatementReply, chunks: int) -> dict[str, Any]:
    known = (chunk for chunk in reply.chunk_ids if 0 <= chunk < chunks)
    return {
        "verdict": reply.verdict,
        "evidence": reply.evidence,
        "confidence": reply.confidence,
        "supporting_chunk_ids": list(dict.fromkeys(known)),
        "reason": reply.reason,
        "usage": _COUNTED_ELSEWHERE,
    }


# --- The form of a reply, as a schema and in words --------------------------------------------

_Schema = dict[str, Any]


def schema_of(reply: type[BaseModel]) -> _Schema:
    """The JSON schema of a reply, in the subset that servers agree on.

    There are no references and no titles, and an object has all its properties and no others.
    """
    return copy.deepcopy(_schema(reply))


@functools.cache
def form_of(reply: type[BaseModel]) -> str:
    """A reply as it is to look, on one line: `{"score": <number: 0 to 1.>}`."""
    return _written(_schema(reply))


@functools.cache
def _schema(reply: type[BaseModel]) -> _Schema:
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
        return {key: _plain(value, definitions) for key, value in part.items() if key != "title"}
    properties = {key: _plain(value, definitions) for key, value in part["properties"].items()}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


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
