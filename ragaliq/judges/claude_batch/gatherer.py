"""Waiting for replies: one per event loop, and one pump that runs while somebody waits."""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, attach, set_value

from ragaliq.errors import JudgeAPIError, JudgeError, JudgeTimeoutError, StoreError
from ragaliq.judges.claude_batch.api import BatchApi
from ragaliq.judges.claude_batch.dispatcher import Dispatcher
from ragaliq.judges.claude_batch.ledger import Answer, Ledger, Question
from ragaliq.judges.claude_batch.outbox import Outbox
from ragaliq.judges.claude_batch.schedule import Schedule
from ragaliq.judges.digest import long_digest_of
from ragaliq.storage.owners import Lock, lock_folder, try_lock

__all__ = ["Gatherer"]

logger = logging.getLogger(__name__)

# Seconds for further requests to come, so that many asked at once are stored at once.
_COMPANY = 0.02
# Requests stored at once: the event loop waits for them.
_AT_ONCE = 200
# Seconds between two looks at what other processes brought into the store.
_TICK = 0.5
_CLEANING = 30.0


@dataclass(slots=True, eq=False)
class _Waiter:
    question: Question
    reply: asyncio.Future[Answer]
    until: float
    request_id: str = ""


class Gatherer:
    """Brings requests together and replies back, on the event loop it is made on.

    Args:
        ledger: Where requests and replies are.
        api: Where batches go.
        schedule: When.
    """

    def __init__(self, ledger: Ledger, api: BatchApi, schedule: Schedule) -> None:
        self._ledger, self._schedule = ledger, schedule
        self._dispatcher = Dispatcher(Outbox(ledger), api, schedule)
        self._new: list[_Waiter] = []
        self._waiting: dict[str, _Waiter] = {}
        self._abandoned: list[str] = []
        self._changed = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None
        self._lead: Lock | None = None
        self._cleaned_at = 0.0

    async def ask(self, params: Mapping[str, Any]) -> Answer:
        """Have a request answered in some batch.

        Raises:
            JudgeTimeoutError: It took longer than `max_age`; the request stays where it is.
            JudgeAPIError: The store cannot be used, or the API will have nothing to do with us.
        """
        text = json.dumps(params, sort_keys=True, separators=(",", ":"))
        loop = asyncio.get_running_loop()
        waiter = _Waiter(
            Question(long_digest_of(text), text),
            loop.create_future(),
            time.monotonic() + self._schedule.max_age,
        )
        self._new.append(waiter)
        self._changed.set()
        if self._pump is None:
            # In a context of its own: what it does is done for many, and not inside the span or
            # the accounts of the one that happened to ask first.
            self._pump = loop.create_task(self._run(), context=contextvars.Context())
        try:
            return await waiter.reply
        except asyncio.CancelledError:
            self._forget(waiter)
            raise

    async def cancel(self) -> int:
        """Cancel what is under way; see `Dispatcher.cancel`."""
        await asyncio.to_thread(self._ledger.cleaned)
        canceled = await self._dispatcher.cancel()
        self._changed.set()
        return canceled

    def release(self, request_ids: Sequence[str]) -> None:
        """Their replies are kept elsewhere; never raises."""
        try:
            self._ledger.release(request_ids)
        except StoreError as error:
            logger.warning("replies that are not needed any more stay in the store: %s", error)

    def abandon(self, request_ids: Sequence[str]) -> None:
        """What became of their replies is not known: they are there for whoever asks again."""
        self._abandoned += request_ids
        if self._pump is None:
            self._give_back()
        else:
            self._changed.set()

    async def aclose(self) -> None:
        """End the pump, let go of the store, and be gone as its owner."""
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)
        self._fail(
            JudgeAPIError("the batch judge was closed; what is under way stays in the store")
        )
        self._ledger.owner.close()
        self._ledger.close()

    def forget(self) -> None:
        """Its event loop is closed: nobody waits here any more."""
        self._ledger.owner.close()
        self._ledger.close()

    def _forget(self, waiter: _Waiter) -> None:
        if waiter in self._new:
            self._new.remove(waiter)
        elif self._waiting.pop(waiter.request_id, None) is not None or not waiter.reply.cancelled():
            self.abandon([waiter.request_id])

    # --- the pump -----------------------------------------------------------------------------

    async def _run(self) -> None:
        # Looks at a batch are nobody's requests: instrumentations leave them out.
        attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, value=True))
        try:
            while self._new or self._waiting or self._abandoned:
                await self._enroll()
                pause = await self._dispatcher.work() if self._leads() else _TICK
                await self._deliver()
                await self._rest(pause)
        except (JudgeError, StoreError) as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - those who wait must be told, whatever it is
            # Its message might quote what was asked.
            logger.error("the batch judge stopped: %s", type(error).__name__)  # noqa: TRY400
            self._fail(JudgeAPIError(f"the batch judge stopped: {type(error).__name__}"))
        finally:
            self._pump = None
            if self._lead is not None:
                self._lead.release()
                self._lead = None
            if self._abandoned:
                self._give_back()

    async def _enroll(self) -> None:
        if self._new:
            await asyncio.sleep(_COMPANY)
        self._changed.clear()
        if self._abandoned:
            self._give_back()
        while self._new:
            # Not on a thread: whoever is cancelled meanwhile could not be told what became of its
            # request.
            new = self._new[:_AT_ONCE]
            ids = self._ledger.enroll([waiter.question for waiter in new])
            del self._new[:_AT_ONCE]
            for waiter, request_id in zip(new, ids, strict=True):
                waiter.request_id = request_id
                self._waiting[request_id] = waiter
            await asyncio.sleep(0)

    def _leads(self) -> bool:
        """Whether this is the one that sends for all that share the store."""
        if self._lead is None:
            name = f"sender-{self._ledger.endpoint}"
            try:
                self._lead = try_lock(lock_folder(self._ledger.path) / name)
            except OSError as error:
                raise StoreError(
                    f"{lock_folder(self._ledger.path)}: {error.strerror or type(error).__name__}"
                ) from None
        if self._lead is not None and time.monotonic() - self._cleaned_at > _CLEANING:
            self._ledger.cleaned()
            self._cleaned_at = time.monotonic()
        return self._lead is not None

    async def _deliver(self) -> None:
        answers = await asyncio.to_thread(self._ledger.take)
        while answers:
            # Before these are handed over: with the last ones the pump ends at once, or whoever
            # closes the event loop next would find it still at work.
            following = await asyncio.to_thread(self._ledger.take)
            for answer in answers:
                waiter = self._waiting.pop(answer.request_id, None)
                if waiter is not None and not waiter.reply.done():
                    waiter.reply.set_result(answer)
                else:  # whoever waited has gone meanwhile
                    self._abandoned.append(answer.request_id)
            answers = following
        now = time.monotonic()
        for waiter in [waiter for waiter in self._waiting.values() if waiter.until <= now]:
            del self._waiting[waiter.request_id]
            self._abandoned.append(waiter.request_id)
            if not waiter.reply.done():
                waiter.reply.set_exception(
                    JudgeTimeoutError(
                        f"no batch brought a reply within {self._schedule.max_age:g} s; the "
                        "request stays in the store, and asked again it is not sent again"
                    )
                )

    async def _rest(self, pause: float) -> None:
        if not self._waiting:
            return
        until = min(waiter.until for waiter in self._waiting.values()) - time.monotonic()
        # Others bring requests, and replies, without saying so.
        seconds = max(0.0, min(pause, until, _TICK))
        try:
            async with asyncio.timeout(max(seconds, 0.005)):
                await self._changed.wait()
        except TimeoutError:
            return

    def _fail(self, error: JudgeError | StoreError) -> None:
        waiters = [*self._new, *self._waiting.values()]
        self._abandoned += self._waiting
        self._new, self._waiting = [], {}
        for waiter in waiters:
            if not waiter.reply.done():
                waiter.reply.set_exception(_told(error))

    def _give_back(self) -> None:
        abandoned, self._abandoned = self._abandoned, []
        try:
            self._ledger.abandon(abandoned)
        except StoreError as error:
            logger.warning("requests nobody waits for stay in the store: %s", error)


def _told(error: JudgeError | StoreError) -> JudgeError:
    """An error for one of many that wait: they must not share one, which collects tracebacks."""
    if isinstance(error, JudgeError):
        return type(error)(str(error))
    return JudgeAPIError(f"the store of the batch judge cannot be used: {error}")
