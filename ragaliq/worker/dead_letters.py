"""Dead letters: jobs that failed for good, and messages without a job."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from pydantic import BaseModel, ValidationError

from ragaliq.errors import MessageRefusedError, RagaliqError
from ragaliq.worker.brokers import Broker, broker_at, unavailable
from ragaliq.worker.message import read_message


class DeadLetter(BaseModel):
    """Message that no worker accepts any more, with the reason.

    `at` is Unix time in seconds; `deliveries` is 0 if unknown; `detail` holds no text of a question
    or answer; in `body`, bytes outside UTF-8 are escaped as surrogates.
    """

    reason: str
    detail: str
    at: float
    deliveries: int
    body: str

    @property
    def message(self) -> bytes:
        """Original message."""
        return self.body.encode(errors="surrogateescape")

    @property
    def job_id(self) -> str:
        """Id of the job; empty if there is none."""
        try:
            return read_message(self.message).job_id
        except (MessageRefusedError, UnicodeEncodeError):
            return ""


async def letters(url: str | None, queue: str) -> list[DeadLetter]:
    """Dead letters of a queue, the oldest first; the URL is as in `broker_at`."""
    async with _opened(url, queue, None) as (_, found):
        return [letter for letter, _ in found]


async def retry(url: str | None, queue: str, job_id: str | None = None) -> tuple[int, int]:
    """Return one job or all to the queue; count those returned, and those without a job."""
    async with _opened(url, queue, job_id) as (broker, found):
        jobs = [each for each in found if each[0].job_id]
        for letter, discard in jobs:
            await broker.publish(letter.message, queue)
            await discard()
        return len(jobs), len(found) - len(jobs)


async def drop(url: str | None, queue: str, job_id: str | None = None) -> int:
    """Delete one job, or all letters, for good; return the number."""
    async with _opened(url, queue, job_id) as (_, found):
        for _, discard in found:
            await discard()
        return len(found)


_Found = list[tuple[DeadLetter, Callable[[], Awaitable[Any]]]]


@asynccontextmanager
async def _opened(
    url: str | None, queue: str, job_id: str | None
) -> AsyncIterator[tuple[Broker, _Found]]:
    broker = broker_at(url, queue=queue)
    try:
        messages = await broker.dead_messages()
        found = [(_letter(envelope), discard) for envelope, discard in messages]
        yield broker, [each for each in found if job_id in (None, each[0].job_id)]
    except RagaliqError:
        raise
    except Exception as error:  # noqa: BLE001 - client libraries have errors of every class
        raise unavailable(error) from None
    finally:
        await broker.native.stop()


def _letter(envelope: bytes) -> DeadLetter:
    try:
        return DeadLetter.model_validate(json.loads(envelope))
    except (ValidationError, ValueError, RecursionError):
        body = envelope.decode(errors="surrogateescape")
        return DeadLetter(
            reason="malformed", detail="no dead letter", at=0, deliveries=0, body=body
        )
