"""What one process does for all that share a store: send, ask after, fetch."""

from __future__ import annotations

import asyncio
import json
import logging
import time

from ragaliq.errors import JudgeError
from ragaliq.judges.claude_batch.api import (
    BatchApi,
    LaterError,
    NotTakenError,
    RefusedError,
    UnknownBatchError,
    UnsureError,
)
from ragaliq.judges.claude_batch.outbox import Outbox, Submission
from ragaliq.judges.claude_batch.outcomes import Result, read_result, refused_batch, withheld
from ragaliq.judges.claude_batch.schedule import Backoff, Schedule
from ragaliq.judges.claude_batch.searching import Search

__all__ = ["Dispatcher"]

logger = logging.getLogger(__name__)

_TOO_LARGE = 413
_AT_A_TIME = 500
# Times the results of a batch are read to their end before what is missing in them is given up,
# and times it is not found before it is given up: one that is paid for must not be lost by a slip.
_READINGS = 3
_LONGEST_PAUSE = 300.0


class Dispatcher:
    """Sends requests in batches and brings their results into the store.

    Args:
        outbox: The requests.
        api: Where they go.
        schedule: When.
    """

    def __init__(self, outbox: Outbox, api: BatchApi, schedule: Schedule) -> None:
        self._outbox, self._api, self._schedule = outbox, api, schedule
        self._search = Search(outbox, api, schedule)
        self._max_bytes = schedule.max_bytes
        self._not_before = 0.0
        self._refusals = Backoff(min(2.0, schedule.poll_interval), _LONGEST_PAUSE)
        self._looks: dict[str, float] = {}
        self._pauses: dict[str, Backoff] = {}
        self._readings: dict[str, int] = {}
        self._misses: dict[str, int] = {}

    async def work(self) -> float:
        """Do all that is due; seconds until the next thing is.

        Raises:
            JudgeError: The API says no to everything: whoever waits should know.
            StoreError: The store cannot be used.
        """
        await self._send()
        due = [await self._search.go_on(), await self._next_sending()]
        for batch_id, sent_at in (await asyncio.to_thread(self._outbox.batches)).items():
            due.append(await self._look_after(batch_id, sent_at))
        return max(0.0, min(due))

    # --- sending ------------------------------------------------------------------------------

    async def _send(self) -> None:
        while await self._next_sending() <= 0.0:
            submission = await asyncio.to_thread(
                self._outbox.begin,
                max_requests=self._schedule.max_requests,
                max_bytes=min(self._max_bytes, self._schedule.max_bytes),
            )
            if submission is None or not await self._submit(submission):
                return

    async def _next_sending(self) -> float:
        """Seconds until a batch is to be sent."""
        pending, now = await asyncio.to_thread(self._outbox.pending), time.time()
        if not pending.requests:
            return self._schedule.max_wait
        full = pending.requests >= self._schedule.max_requests or pending.size >= self._max_bytes
        # One of the future: the clock was set back meanwhile.
        is_odd = pending.since > now
        due = 0.0 if full or is_odd else pending.since + self._schedule.max_wait - now
        return max(due, self._not_before - time.monotonic())

    async def _submit(self, submission: Submission) -> bool:
        """Send a batch; whether the next one may follow."""
        requests = [(name, json.loads(params)) for name, params in submission.requests]
        try:
            batch_id = await self._api.create(requests)
        except NotTakenError:
            await asyncio.to_thread(self._outbox.take_back, submission.name)
            return self._wait_before_next()
        except RefusedError as error:
            await self._refused(submission, error.status)
            return True
        except UnsureError:
            logger.warning(
                "whether a batch of %d requests was taken is not known; looking for it",
                len(requests),
            )
            self._search.look_soon()
            return self._wait_before_next()
        await asyncio.to_thread(self._outbox.sent, submission.name, batch_id)
        self._refusals.reset()
        logger.info("sent a batch of %d requests: %s", len(requests), batch_id)
        return True

    async def _refused(self, submission: Submission, status: int) -> None:
        if status == _TOO_LARGE and len(submission.requests) > 1:
            self._max_bytes = max(1, submission.size // 2)
            await asyncio.to_thread(self._outbox.take_back, submission.name)
            return
        logger.warning("a batch of %d requests was refused: %d", len(submission.requests), status)
        await asyncio.to_thread(self._outbox.refused, submission.name, refused_batch(status))

    def _wait_before_next(self) -> bool:
        self._not_before = time.monotonic() + self._refusals.pause()
        return False

    # --- what becomes of a batch --------------------------------------------------------------

    async def _look_after(self, batch_id: str, sent_at: float) -> float:
        """Look at a batch if it is time; seconds until the next look."""
        now, first = time.monotonic(), self._schedule.poll_interval
        # One that was sent by an earlier process may have ended long ago.
        due = self._looks.setdefault(batch_id, now + min(first, sent_at + first - time.time()))
        if due > now:
            return due - now
        pauses = self._pauses.setdefault(batch_id, Backoff(first, min(first * 10, _LONGEST_PAUSE)))
        try:
            if (await self._api.state(batch_id)).has_ended:
                await self._fetch(batch_id)
        except UnknownBatchError:
            self._misses[batch_id] = self._misses.get(batch_id, 0) + 1
            logger.warning("the API does not know batch %s", batch_id)
            if self._misses[batch_id] >= _READINGS:
                await asyncio.to_thread(self._outbox.give_up, batch_id, withheld("unknown_batch"))
        except LaterError as error:
            logger.warning("batch %s: %s; asking again", batch_id, error)
        pause = pauses.pause()
        self._looks[batch_id] = time.monotonic() + pause
        return pause

    async def _fetch(self, batch_id: str) -> None:
        """Store a batch's results; what was read before a failure is kept."""
        found: list[Result] = []
        try:
            async for line in self._api.results(batch_id):
                result = read_result(line)
                if result is None:
                    logger.warning("batch %s: a line of the results is malformed", batch_id)
                    continue
                found.append(result)
                if len(found) >= _AT_A_TIME:
                    await asyncio.to_thread(self._outbox.settle, batch_id, found)
                    found = []
        finally:
            # Also when it broke off: what was read need not be read again.
            self._outbox.settle(batch_id, found)
        left = await asyncio.to_thread(self._outbox.unsettled, batch_id)
        self._readings[batch_id] = self._readings.get(batch_id, 0) + 1
        if left and self._readings[batch_id] >= _READINGS:
            logger.warning("batch %s: %d requests have no result", batch_id, left)
            await asyncio.to_thread(self._outbox.give_up, batch_id, withheld("missing"))

    async def cancel(self) -> int:
        """Cancel what is under way; how many requests and batches that concerns.

        Raises:
            JudgeError: The API did not do it.
        """
        canceled = self._outbox.cancel_open()
        failure: JudgeError | None = None
        for batch_id in self._outbox.batches():
            try:
                canceled += self._outbox.unsettled(batch_id)
                await self._api.cancel(batch_id)
            except JudgeError as error:
                failure = error
        if failure is not None:
            raise failure
        return canceled
