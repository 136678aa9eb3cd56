"""Requests of prompted judges in files: written instead of sent, and replies that are read.

`RequestRecorder` writes the requests to a file, `replay_judge` reads the replies from one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ragaliq.core.files import file_errors, owner_only
from ragaliq.core.results import JudgeUsage
from ragaliq.errors import (
    DatasetError,
    JudgeRefusalError,
    JudgeResponseError,
)
from ragaliq.judges.base import ClaimVerdict, LLMJudge, long_digest_of
from ragaliq.judges.prompted import PromptedJudge
from ragaliq.judges.prompting import RenderedPrompt
from ragaliq.judges.wire import claim_id, reply_fields, schema_of


class RequestRecorder:
    """Writes each request as a line of JSON: `id`, `model`, `system`, `messages` and `schema`.

    The replies are unknown, so every claim counts as not covered, and requests that depend on a
    reply are not written.

    Args:
        judge: The judge that makes the requests.
        path: The file; it is overwritten.

    Attributes:
        judge: The same judge, which writes its requests and sends none.
        count: Requests that were written; equal ones are written once.

    Raises:
        ConfigurationError: The judge makes no requests of its own.
        DatasetError: The file cannot be written.
    """

    def __init__(self, judge: LLMJudge, path: Path) -> None:
        self.judge = judge.answered_by(self._send)
        self._path, self._written = path, set[str]()
        self._error: DatasetError | None = None
        self._write("", "w")

    @property
    def count(self) -> int:
        """Number of requests written; raises the error that stopped the writing."""
        if self._error is not None:
            raise self._error
        return len(self._written)

    async def _send(
        self, asked: PromptedJudge, prompt: RenderedPrompt, reply: type[BaseModel]
    ) -> tuple[str, JudgeUsage]:
        """Write the request; return a reply that leads to no further request."""
        text = asked.worded(prompt, reply)
        name = _request_id(prompt.system, text)
        if name not in self._written:
            line = {
                "id": name,
                "model": asked.model,
                "system": prompt.system,
                "messages": [{"role": "user", "content": text}],
                "schema": schema_of(reply),
            }
            try:
                self._write(json.dumps(line, ensure_ascii=False) + "\n", "a")
            except DatasetError as error:
                # The scorer turns it into a failed result and continues.
                self._error = self._error or error
                raise
            self._written.add(name)
        undecided = reply_fields(ClaimVerdict(verdict="NOT_ENOUGH_INFO", confidence=0.0))
        ids = map(claim_id, range(len(prompt.asked.claims)))
        fields = {
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
    """One line of a file of replies; see `replay_judge`."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    id: str
    text: str | None = None
    usage: JudgeUsage = Field(default=JudgeUsage(requests=1, cost_usd=None))
    refused: bool = False
    cut_off: bool = False

    @model_validator(mode="after")
    def _has_a_text(self) -> Self:
        if self.text is None and not self.refused and not self.cut_off:
            raise ValueError("no text")
        return self


def replay_judge(judge: LLMJudge, path: Path) -> LLMJudge:
    """Return a copy of the judge that takes its model's replies from a file.

    Args:
        judge: The judge whose prompts and calibration are used.
        path: A line of JSON for each reply: `id` of the request, `text`, and where they are known
            `usage` (`input_tokens`, `output_tokens`, `cache_read_tokens`, `cache_write_tokens`),
            `refused` and `cut_off`.

    Raises:
        ConfigurationError: The judge makes no requests of its own.
        DatasetError: The file cannot be read, or a line is not a reply.
    """
    replies = _read_replies(path)

    async def find(
        asked: PromptedJudge, prompt: RenderedPrompt, reply: type[BaseModel]
    ) -> tuple[str, JudgeUsage]:
        line = replies.get(_request_id(prompt.system, asked.worded(prompt, reply)))
        if line is None:
            raise JudgeResponseError(
                f"{path} holds no reply to this request; render the requests again if the "
                "prompts, the model's limits or the data have changed"
            )
        usage = asked.priced(line.usage)
        if line.refused:
            raise JudgeRefusalError(f"{asked.model} declined to answer", usage=usage)
        if line.cut_off:
            raise JudgeResponseError("the reply was cut off", usage=usage)
        return line.text or "", usage

    return judge.answered_by(find)


def _request_id(system: str, text: str) -> str:
    return long_digest_of(f"{len(system)} {system}{text}")


def _read_replies(path: Path) -> dict[str, _ReplyLine]:
    with file_errors(path):
        lines = path.read_bytes().splitlines()
    replies: dict[str, _ReplyLine] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            reply = _ReplyLine.model_validate_json(line)
        except ValidationError:
            raise DatasetError(
                f"{path}, line {number} is not a reply: it needs an id and a text, the model's "
                'whole reply ({"id": "...", "text": "..."}), or "refused": true or "cut_off": true'
            ) from None
        if replies.setdefault(reply.id, reply) != reply:
            raise DatasetError(f"{path}, line {number}: a second, other reply to one request")
    return replies
