"""Jobs that no worker could do, and messages that hold no job."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from ragaliq.errors import MessageRefusedError, RagaliqError
from ragaliq.worker.brokers import (
    Broker,
    BrokerOptions,
    DeadMessage,
    broker_at,
    broker_url,
    unavailable,
)
from ragaliq.worker.message import read_message

__all__ = ["DeadLetter", "DeadLetters", "dead_letter_of"]


@dataclass(frozen=True)
class DeadLetter:
    """A message that no worker takes any more.

    Attributes:
        job_id: The job's id; empty where it holds none.
        reason: Such as `crashed` or `malformed`.
        detail: More about it; never text of a question or answer.
        at: Unix time in seconds.
        deliveries: How often it was given to a worker; 0 where nobody counted.
        body: The message as it was.
    """

    job_id: str
    reason: str
    detail: str
    at: float
    deliveries: int
    body: bytes


def dead_letter_of(body: bytes, *, reason: str, detail: str, deliveries: int) -> bytes:
    """What is put among the dead letters for a message."""
    kept: dict[str, Any] = {
        "reason": reason,
        "detail": detail,
        "at": time.time(),
        "deliveries": deliveries,
    }
    try:
        kept["body"] = body.decode()
    except UnicodeDecodeError:
        kept["body_base64"] = base64.b64encode(body).decode()
    return json.dumps(kept).encode()


class DeadLetters:
    """The dead letters of a queue.

    Args:
        url: The broker's address; by default from `RAGALIQ_BROKER_URL`.
        queue: The queue they came from.

    Raises:
        ConfigurationError: The address is wrong.
    """

    def __init__(self, url: str | None, *, queue: str = "ragaliq") -> None:
        self._url, self._options = broker_url(url), BrokerOptions(queue=queue, grace=0.0)
        broker_at(self._url, self._options)

    async def all(self) -> list[DeadLetter]:
        """All of them, the oldest first.

        Raises:
            BrokerUnavailableError: The broker cannot be reached.
        """
        async with self._messages() as (_, messages):
            return [letter for letter, _ in messages]

    async def retry(self, *, job_id: str | None = None) -> tuple[int, int]:
        """Put jobs back on the queue.

        Args:
            job_id: Only this one; by default all.

        Returns:
            How many were put back, and how many messages hold no job and stay.

        Raises:
            BrokerUnavailableError: The broker cannot be reached.
        """
        done = unreadable = 0
        async with self._messages() as (broker, messages):
            for letter, message in messages:
                if job_id not in (None, letter.job_id):
                    continue
                if not letter.job_id:
                    unreadable += 1
                    continue
                await broker.publish(letter.body, broker.queue)
                await message.discard()
                done += 1
        return done, unreadable

    async def drop(self, *, job_id: str | None = None) -> int:
        """Delete jobs for good; returns how many.

        Args:
            job_id: Only this one; by default all.

        Raises:
            BrokerUnavailableError: The broker cannot be reached.
        """
        dropped = 0
        async with self._messages() as (_, messages):
            for letter, message in messages:
                if job_id in (None, letter.job_id):
                    await message.discard()
                    dropped += 1
        return dropped

    @asynccontextmanager
    async def _messages(self) -> AsyncIterator[tuple[Broker, list[tuple[DeadLetter, DeadMessage]]]]:
        broker = broker_at(self._url, self._options)
        try:
            async with broker.dead_messages() as messages:
                yield broker, [(_letter(message.body), message) for message in messages]
        except RagaliqError:
            raise
        except Exception as error:  # noqa: BLE001 - client libraries have errors of every class
            raise unavailable(error) from None
        finally:
            await broker.stop()


def _letter(envelope: bytes) -> DeadLetter:
    try:
        kept = json.loads(envelope)
        text, encoded = kept.get("body"), kept.get("body_base64")
        body = base64.b64decode(encoded) if text is None else str(text).encode()
        at, deliveries = float(kept["at"]), int(kept["deliveries"])
        reason, detail = str(kept["reason"]), str(kept["detail"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return DeadLetter("", "malformed", "no dead letter", 0.0, 0, envelope)
    try:
        job_id = read_message(body).job_id
    except MessageRefusedError:
        job_id = ""
    return DeadLetter(job_id, reason, detail, at, deliveries, body)
