"""Finding batches of which nobody noted that the API took them.

Between the moment a batch is sent and the moment its id is stored the process may be killed, or
the API's reply lost. The API lists batches, but what is in one is to be seen only in its results.
So every batch of the right size and age that is not in the store is a candidate: when it has
ended, the ids in its results say whether it is ours. Requests are sent again only when no candidate
is left.
"""

from __future__ import annotations

import asyncio
import logging
import time

from ragaliq.judges.claude_batch.api import BatchApi, BatchState, LaterError, UnknownBatchError
from ragaliq.judges.claude_batch.outbox import Outbox, Unsure
from ragaliq.judges.claude_batch.outcomes import Result, read_result
from ragaliq.judges.claude_batch.schedule import Backoff, Schedule

__all__ = ["Search"]

logger = logging.getLogger(__name__)

# By how much the API's clock and ours may differ, in seconds.
_CLOCKS = 300.0
_AT_A_TIME = 500
_LONGEST_PAUSE = 300.0


class Search:
    """Looks for batches that were perhaps sent.

    Args:
        outbox: The requests.
        api: Where the batches would be.
        schedule: When to send again.
    """

    def __init__(self, outbox: Outbox, api: BatchApi, schedule: Schedule) -> None:
        self._outbox, self._api, self._schedule = outbox, api, schedule
        self._others: set[str] = set()
        self._pauses = Backoff(
            min(schedule.poll_interval, schedule.resend_after), schedule.poll_interval * 10
        )
        self._next = 0.0

    def look_soon(self) -> None:
        """There is something to look for."""
        self._pauses.reset()
        self._next = 0.0

    async def go_on(self) -> float:
        """Look if it is time; seconds until the next look.

        Raises:
            JudgeError: The API may not be asked.
        """
        lost = await asyncio.to_thread(self._outbox.unsure)
        if not lost:
            return _LONGEST_PAUSE
        if (wait := self._next - time.time()) > 0.0:
            return wait
        try:
            await self._look(lost)
        except LaterError as error:
            logger.warning("batches could not be listed: %s; asking again", error)
        pause = min(self._pauses.pause(), _LONGEST_PAUSE)
        self._next = time.time() + pause
        return pause

    async def _look(self, lost: list[Unsure]) -> None:
        # Asked before anything else, since a batch may appear while candidates are looked into.
        asked_at = time.time()
        made = await self._api.made_since(min(unsure.since for unsure in lost) - _CLOCKS)
        known = await asyncio.to_thread(self._outbox.known)
        strangers = [batch for batch in made if batch.batch_id not in known | self._others]
        for batch in strangers:
            if batch.has_ended and any(_may_be(batch, unsure) for unsure in lost):
                await self._look_into(batch.batch_id)
        running = [batch for batch in strangers if batch.batch_id not in self._others]
        for unsure in await asyncio.to_thread(self._outbox.unsure):
            is_late = asked_at - unsure.since > self._schedule.resend_after
            if is_late and not any(_may_be(batch, unsure) for batch in running):
                logger.info("a batch of %d requests was not taken: sent again", unsure.requests)
                await asyncio.to_thread(self._outbox.take_back, unsure.name)

    async def _look_into(self, batch_id: str) -> None:
        found: list[Result] = []
        settled = 0
        try:
            async for line in self._api.results(batch_id):
                if (result := read_result(line)) is not None:
                    found.append(result)
                if len(found) >= _AT_A_TIME:
                    settled += await asyncio.to_thread(self._outbox.settle, batch_id, found)
                    found = []
        except UnknownBatchError:
            pass  # archived or deleted: there is nothing in it to be had
        settled += await asyncio.to_thread(self._outbox.settle, batch_id, found)
        self._others.add(batch_id)
        if settled:
            logger.info("batch %s had %d requests of ours", batch_id, settled)


def _may_be(batch: BatchState, unsure: Unsure) -> bool:
    return batch.created_at >= unsure.since - _CLOCKS and batch.size == unsure.requests
