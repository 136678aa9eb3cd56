"""Stand-ins for a prompted judge that write its requests and send none.

`CostCounter` adds up what the requests would cost, `RequestWriter` writes them to a file, and
`ReplyReader` judges with the replies to them that came back from anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ragaliq.core.files import file_errors, owner_only
from ragaliq.core.results import JudgeUsage
from ragaliq.errors import (
    ConfigurationError,
    DatasetError,
    JudgeRefusalError,
    JudgeResponseError,
)
from ragaliq.judges.base import (
    BatchingJudge,
    ClaimsResult,
    ClaimVerdict,
    JudgeResult,
    LLMJudge,
    VerdictsResult,
    long_digest_of,
)
from ragaliq.judges.calibration import CalibratedJudge
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
    schema_of,
)

_CHARACTERS_PER_TOKEN = 4
_SCHEMA_TOKENS = 150
"""About what the schema of a reply adds to a request."""

_LEAST_CACHED = 512
"""Tokens below which a prefix is not cached (current Sonnet)."""


class _Unsent(PromptedJudge):
    """The same prompts, limits, name and prices as a judge's, without its requests."""

    def __init__(self, judge: PromptedJudge) -> None:
        super().__init__(prompts=judge.prompts)
        self.name, self.model, self.provider = judge.name, judge.model, judge.provider
        self.max_context_chars = judge.max_context_chars
        self.max_answer_chars = judge.max_answer_chars
        self.max_claims = judge.max_claims
        self.sure_from = judge.sure_from
        self._judge = judge

    def fingerprint(self) -> str:
        """That of the judge: it decides as the judge does."""
        return self._judge.fingerprint()

    def price(self, usage: JudgeUsage) -> float | None:
        """As the judge's requests cost."""
        return self._judge.price(usage)


# --- Requests and replies in files ------------------------------------------------------------


class RequestWriter(_Unsent):
    """Writes each request as a line of JSON: `id`, `model`, `system`, `messages` and `schema`.

    What the judge would have said is not known. So every claim counts as not covered, and nothing
    that depends on a reply is asked.

    Attributes:
        count: Requests that were written; equal ones are written once.

    Raises:
        DatasetError: The file cannot be written; what it held is replaced.
    """

    def __init__(self, judge: PromptedJudge, path: Path) -> None:
        super().__init__(judge)
        self._path, self._written = path, set[str]()
        self.count = 0
        self._write("", "w")

    async def complete(
        self, prompt: RenderedPrompt, reply: type[BaseModel]
    ) -> tuple[str, JudgeUsage]:
        """Write the request; the reply is one that leads to no further request."""
        text = self._judge.worded(prompt, reply)
        name = _request_id(prompt.system, text)
        if name not in self._written:
            self._written.add(name)
            self.count += 1
            line = {
                "id": name,
                "model": self.model,
                "system": prompt.system,
                "messages": [{"role": "user", "content": text}],
                "schema": schema_of(reply),
            }
            self._write(json.dumps(line, ensure_ascii=False) + "\n", "a")
        undecided = {
            "reason": "",
            "evidence": "",
            "chunk_ids": [],
            "verdict": "NOT_ENOUGH_INFO",
            "confidence": 0.0,
        }
        ids = map(claim_id, range(prompt.expected or 0))
        fields: dict[str, Any] = {
            "claims": [],
            "statements": [],
            "verdicts": [{"claim_id": name, **undecided} for name in ids],
            "reasoning": "",
            "score": 0.0,
        }
        return reply.model_validate(fields).model_dump_json(), JudgeUsage()

    def _write(self, line: str, mode: str) -> None:
        with (
            file_errors(self._path),
            open(self._path, mode, encoding="utf-8", opener=owner_only) as file,
        ):
            file.write(line)


class _ReplyLine(BaseModel):
    """One line of a file of replies; see `reads_replies`."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    id: str
    text: str = ""
    usage: JudgeUsage = Field(default=JudgeUsage(requests=1, cost_usd=None))
    refused: bool = False
    cut_off: bool = False


class _ReplyReader(_Unsent):
    def __init__(self, judge: PromptedJudge, path: Path) -> None:
        super().__init__(judge)
        self.keeps_form = judge.keeps_form
        self._path, self._replies = path, _read_replies(path)

    async def complete(
        self, prompt: RenderedPrompt, reply: type[BaseModel]
    ) -> tuple[str, JudgeUsage]:
        text = self._judge.worded(prompt, reply)
        line = self._replies.get(_request_id(prompt.system, text))
        if line is None:
            raise JudgeResponseError(
                f"{self._path} holds no reply to this request; render the requests again if the "
                "prompts, the model's limits or the data have changed"
            )
        usage = self.priced(line.usage)
        if line.refused:
            raise JudgeRefusalError(f"{self.model} declined to answer", usage=usage)
        if line.cut_off:
            raise JudgeResponseError("the reply was cut off", usage=usage)
        return line.text, usage


def writes_requests(judge: LLMJudge, path: Path) -> RequestWriter:
    """A judge that writes the requests of this one and sends none.

    Raises:
        ConfigurationError: The judge makes no requests of its own.
        DatasetError: The file cannot be written.
    """
    return RequestWriter(_prompted(judge), path)


def reads_replies(judge: LLMJudge, path: Path) -> LLMJudge:
    """This judge, with the replies of a file in the place of its model's.

    Args:
        judge: Whose prompts and calibration are used.
        path: A line of JSON for each reply: `id` of the request, `text`, and where they are known
            `usage` (`input_tokens`, `output_tokens`, `cache_read_tokens`, `cache_write_tokens`),
            `refused` and `cut_off`.

    Raises:
        ConfigurationError: The judge makes no requests of its own.
        DatasetError: The file cannot be read, or a line is not a reply.
    """
    stand_in = _ReplyReader(_prompted(judge), path)
    return (
        CalibratedJudge(stand_in, judge.curve) if isinstance(judge, CalibratedJudge) else stand_in
    )


def _prompted(judge: LLMJudge) -> PromptedJudge:
    inside = judge.judge if isinstance(judge, CalibratedJudge) else judge
    if not isinstance(inside, PromptedJudge):
        raise ConfigurationError(
            f"{judge.name} makes no requests that are known beforehand; use 'claude' or 'openai'"
        )
    return inside


def _request_id(system: str, text: str) -> str:
    return long_digest_of(f"{len(system)} {system}{text}")


def _read_replies(path: Path) -> dict[str, _ReplyLine]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise DatasetError(f"{path}: {reason}") from None
    replies: dict[str, _ReplyLine] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            reply = _ReplyLine.model_validate_json(line)
        except ValidationError:
            raise DatasetError(
                f"{path}, line {number} is not a reply: it needs an id and a text"
            ) from None
        if replies.setdefault(reply.id, reply) != reply:
            raise DatasetError(f"{path}, line {number}: a second, other reply to one request")
    return replies


# --- What the requests would cost ---------------------------------------------------------------


class CostCounter(_Unsent):
    """Adds up what a judge's requests, and replies to them, would cost.

    A stand-in decides what the replies say, so that their number and length are about what a real
    judge's would be.
    """

    def __init__(self, judge: PromptedJudge, stand_in: BatchingJudge) -> None:
        super().__init__(judge)
        self._stand_in = stand_in
        self._cached: set[str] = set()
        self._reply: ContextVar[BaseModel] = ContextVar("ragaliq_stand_in_reply")

    async def complete(
        self,
        prompt: RenderedPrompt,
        reply: type[BaseModel],  # noqa: ARG002
    ) -> tuple[str, JudgeUsage]:
        """Count what the request and the stand-in's reply would cost."""
        said = self._reply.get().model_dump_json()
        total = _SCHEMA_TOKENS + _tokens(prompt.system) + _tokens(prompt.text)
        read = written = 0
        prefix = prompt.system + prompt.shared
        size = _tokens(prefix)
        if self._judge.caches_context and prompt.shared and size >= _LEAST_CACHED:
            read, written = (size, 0) if prefix in self._cached else (0, size)
            self._cached.add(prefix)
        usage = JudgeUsage(
            input_tokens=total - read - written,
            output_tokens=_tokens(said),
            cache_read_tokens=read,
            cache_write_tokens=written,
            requests=1,
        )
        return said, self.priced(usage)

    def is_unsure(self, verdict: ClaimVerdict) -> bool:  # noqa: ARG002
        """Always: what the model would be sure of is not known, so a cascade escalates all."""
        return True

    async def extract_statements(self, query: str, response: str) -> ClaimsResult:
        """Count an extraction."""
        found = await self._stand_in.extract_statements(query, response)
        self._reply.set(ClaimsReply(claims=found.claims))
        return await super().extract_statements(query, response)

    async def verify_claims(self, claims: Sequence[str], context: Sequence[str]) -> VerdictsResult:
        """Count a verification."""
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
        """Count grading in one pass."""
        graded = await self._stand_in.grade_statements(query, response, context)
        replies = [
            StatementReply(statement=item.statement, **reply_fields(item))
            for item in graded.verdicts
        ]
        self._reply.set(GradedReply(statements=replies))
        return await super().grade_statements(query, response, context)

    async def evaluate_relevance(self, query: str, response: str) -> JudgeResult:
        """Count a relevance score."""
        said = await self._stand_in.evaluate_relevance(query, response)
        self._reply.set(ScoreReply(reasoning=said.reasoning, score=said.score))
        return await super().evaluate_relevance(query, response)

    async def evaluate_context_relevance(self, query: str, chunk: str) -> JudgeResult:
        """Count a chunk's relevance score."""
        said = await self._stand_in.evaluate_context_relevance(query, chunk)
        self._reply.set(ScoreReply(reasoning=said.reasoning, score=said.score))
        return await super().evaluate_context_relevance(query, chunk)


def _tokens(text: str) -> int:
    return -(-len(text) // _CHARACTERS_PER_TOKEN)
