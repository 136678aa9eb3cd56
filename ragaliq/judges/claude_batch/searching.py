"""Finding batches of which nobody noted that the API took them.

Between the moment a batch is sent and the moment its id is stored the process may be killed, or
the API's reply lost. The API lists batches, but what is in one is to be seen only in its results.
So every batch of the right size and age that is not in the store is a candidate: when it has
ended, the ids in its results say whether it is ours. If it is, its id is noted, and it is like any
other. Requests are sent again only when no candidate is left.
"""

from __future__ import annotations

import asyncio
import logging
import time

from ragaliq.judges.claude_batch.api import BatchApi, BatchState, LaterError, UnknownBatchError
from ragaliq.judges.claude_batch.outbox import Outbox, Unsure
from ragaliq.judges.claude_batch.outcomes import read_result
from ragaliq.judges.claude_batch.schedule import Backoff, Schedule

__all__ = ["Search"]

logger = logging.getLogger(__name__)

# By how much the API's clock and ours may differ, in seconds.
_CLOCKS = 3600.0
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
        self._missed: dict[str, float] = {}
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
        now = time.monotonic()
        # By when it was first missed here: the clock may have been set since it was sent.
        self._missed = {unsure.name: self._missed.get(unsure.name, now) for unsure in lost}
        if not lost:
            return _LONGEST_PAUSE
        if (wait := self._next - now) > 0.0:
            return wait
        try:
            await self._look(lost)
        except LaterError as error:
            logger.warning("batches could not be listed: %s; asking again", error)
        pause = min(self._pauses.pause(), _LONGEST_PAUSE)
        self._next = time.monotonic() + pause
        return pause

    async def _look(self, lost: list[Unsure]) -> None:
        # Asked before anything else, since a batch may appear while candidates are looked into.
        asked_at = time.monotonic()
        made = await self._api.made_since(min(unsure.since for unsure in lost) - _CLOCKS)
        known = await asyncio.to_thread(self._outbox.known)
        strangers = [batch for batch in made if batch.batch_id not in known | self._others]
        for unsure in lost:
            candidates = [batch for batch in strangers if _may_be(batch, unsure)]
            if await self._is_among(candidates, unsure):
                continue
            is_late = asked_at - self._missed[unsure.name] > self._schedule.resend_after
            if is_late and all(batch.batch_id in self._others for batch in candidates):
                logger.info("a batch of %d requests was not taken: sent again", unsure.requests)
                await asyncio.to_thread(self._outbox.take_back, unsure.name)

    async def _is_among(self, candidates: list[BatchState], unsure: Unsure) -> bool:
        """Whether the lost batch is one of these, the newest first; then it is noted which."""
        for batch in candidates:
            if batch.batch_id in self._others:
                continue
            if not batch.has_ended:
                # An older one may hold the same requests, asked and answered before.
                return False
            names = await self._names_in(batch.batch_id)
            if await asyncio.to_thread(self._outbox.found, unsure.name, batch.batch_id, names):
                logger.info("batch %s is the one of %d requests", batch.batch_id, unsure.requests)
                return True
            self._others.add(batch.batch_id)
        return False

    async def _names_in(self, batch_id: str) -> set[str]:
        """The requests a batch has results for."""
        names = set()
        try:
            async for line in self._api.results(batch_id):
                if (result := read_result(line)) is not None:
                    names.add(result.request_id)
        except UnknownBatchError:
            return set()  # archived or deleted: there is nothing in it to be had
        return names


def _may_be(batch: BatchState, unsure: Unsure) -> bool:
    return batch.created_at >= unsure.since - _CLOCKS and batch.size == unsure.requests
