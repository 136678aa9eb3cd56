"""Claude as a judge that is in no hurry: requests go through the Message Batches API."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any, Literal

import anthropic
from anthropic.types import Message
from pydantic import BaseModel

from ragaliq.core.keeping import current_keeping
from ragaliq.core.naming import naming
from ragaliq.core.results import JudgeUsage
from ragaliq.errors import ConfigurationError, JudgeResponseError
from ragaliq.judges.claude.judge import DEFAULT_JUDGE_MODEL, ClaudeJudge, is_complete
from ragaliq.judges.claude_batch.api import BatchApi
from ragaliq.judges.claude_batch.gatherer import Gatherer
from ragaliq.judges.claude_batch.ledger import Answer, Ledger
from ragaliq.judges.claude_batch.outcomes import SUCCEEDED, failure_of
from ragaliq.judges.claude_batch.schedule import Schedule
from ragaliq.judges.digest import digest_of
from ragaliq.judges.pricing import BATCH_PRICE
from ragaliq.storage.location import Location, parse_location, parse_options
from ragaliq.storage.owners import Owner

if TYPE_CHECKING:
    from ragaliq.judges.prompting import PromptSource, RenderedPrompt

__all__ = ["ClaudeBatchJudge"]

BATCH_STORE = "RAGALIQ_BATCH_STORE"
"""The variable that names the file."""

_DEFAULTS = Schedule()
_NOTHING = {
    "input_tokens": 0,
    "output_tokens": 0,
    "cache_read_input_tokens": 0,
    "cache_creation_input_tokens": 0,
}


class ClaudeBatchJudge(ClaudeJudge):
    """Asks Claude in batches, at half the price and with replies in minutes to hours.

    Requests, the batches they are in and replies not yet made use of are in a file. A restart
    neither loses nor pays for anything twice: the same request asked again is found where it is.
    Several processes may share the file; one of them sends for all.

    The file holds the application's texts until they are judged; only its owner may read it.

    Args:
        model: The model that judges.
        store: The file: `sqlite:///path` or a path; by default from `RAGALIQ_BATCH_STORE`. May be a
            store of results too. An address may end in settings that win over the arguments below,
            such as `?max_wait=5&poll_interval=10`.
        api_key: As in `ClaudeJudge`.
        base_url: As in `ClaudeJudge`.
        client: As in `ClaudeJudge`.
        timeout: Seconds to wait for the answer to one request about batches.
        max_tokens: As in `ClaudeJudge`.
        max_retries: How often the SDK repeats a failed look at a batch; sending is never repeated
            blindly.
        effort: As in `ClaudeJudge`.
        prompts: As in `ClaudeJudge`.
        max_requests: Requests that are sent as soon as they are there; at most 100,000.
        max_bytes: Bytes of requests that are sent as soon as they are there; at most 256 MB.
        max_wait: Seconds a request waits for company.
        poll_interval: Seconds between two looks at a batch at first; later ones are rarer.
        max_age: Seconds to wait for one reply.
        resend_after: Seconds after which a batch that was perhaps sent is sent again, if the API
            does not list it by then.
        cases_in_flight: Cases judged at the same time, so that batches fill.

    Raises:
        ConfigurationError: A setting is wrong, or there is no API key or no file.
    """

    name = "claude-batch"
    # Requests over one context are in one batch and may run at the same moment: that a cache would
    # be there in time is not certain, and writing one costs a quarter more.
    caches_context = False

    def __init__(
        self,
        model: str = DEFAULT_JUDGE_MODEL,
        *,
        store: Location | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        client: anthropic.AsyncAnthropic | None = None,
        timeout: float = 60.0,
        max_tokens: int = 16_000,
        max_retries: int | None = None,
        effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None,
        prompts: PromptSource | None = None,
        max_requests: int = _DEFAULTS.max_requests,
        max_bytes: int = _DEFAULTS.max_bytes,
        max_wait: float = _DEFAULTS.max_wait,
        poll_interval: float = _DEFAULTS.poll_interval,
        max_age: float = _DEFAULTS.max_age,
        resend_after: float = _DEFAULTS.resend_after,
        cases_in_flight: int = 2000,
    ) -> None:
        super().__init__(
            model,
            api_key=api_key,
            base_url=base_url,
            client=client,
            timeout=timeout,
            max_tokens=max_tokens,
            max_retries=max_retries,
            effort=effort,
            prompts=prompts,
        )
        location = _batch_store() if store is None else store
        with naming(BATCH_STORE if store is None else None):
            self._path = self.store = parse_location(location)
            options = parse_options(location, *Schedule.names())
        self._schedule = schedule = Schedule.of(
            options,
            max_requests=max_requests,
            max_bytes=max_bytes,
            max_wait=max_wait,
            poll_interval=poll_interval,
            max_age=max_age,
            resend_after=resend_after,
        )
        if cases_in_flight < 1:
            raise ConfigurationError(
                f"ClaudeBatchJudge: cases_in_flight must be positive, got {cases_in_flight}"
            )
        self.patience, self.cases_in_flight = schedule.max_age, cases_in_flight
        self._lock = threading.Lock()
        self._gatherers: dict[asyncio.AbstractEventLoop, Gatherer] = {}

    def __repr__(self) -> str:
        return f"ClaudeBatchJudge(model={self.model!r}, store={str(self._path)!r})"

    async def cancel_pending(self) -> int:
        """Cancel every request of the store that is under way; those processed already are paid.

        Whoever waits for one is told so as soon as the API has ended the batch.

        Returns:
            How many requests were canceled or may be.

        Raises:
            JudgeError: The API did not do it.
        """
        return await (await self._gatherer()).cancel()

    async def aclose(self) -> None:
        """Stop waiting on this event loop, and close its connections; nothing pending is lost."""
        with self._lock:
            gatherer = self._gatherers.pop(asyncio.get_running_loop(), None)
        if gatherer is not None:
            await gatherer.aclose()
        await super().aclose()

    def priced(self, usage: JudgeUsage) -> JudgeUsage:
        """One request's tokens at the price of a batch, with what that saves."""
        full = self.price(usage)
        if full is None:
            return usage.model_copy(update={"cost_usd": None})
        cost = full * BATCH_PRICE
        return usage.model_copy(update={"cost_usd": cost, "saved_usd": full - cost})

    async def _send(self, prompt: RenderedPrompt, reply: type[BaseModel]) -> Message:
        gatherer = await self._gatherer()
        answer = await gatherer.ask(dict(self._params(prompt, reply)))
        if answer.outcome["type"] != SUCCEEDED:
            raise failure_of(answer.outcome, self.model)
        kept = current_keeping()
        if kept is not None:
            kept.note(gatherer, answer.request_id)
        else:
            gatherer.release([answer.request_id])
        return _message(answer)

    async def _gatherer(self) -> Gatherer:
        loop = asyncio.get_running_loop()
        client = await self._client()
        with self._lock:
            for closed in [other for other in self._gatherers if other.is_closed()]:
                self._gatherers.pop(closed).forget()
            gatherer = self._gatherers.get(loop)
            if gatherer is None:
                ledger = Ledger(
                    self._path, endpoint=digest_of(str(client.base_url)), owner=Owner(self._path)
                )
                api = BatchApi(self._client, model=self.model)
                gatherer = self._gatherers[loop] = Gatherer(ledger, api, self._schedule)
        return gatherer


def _batch_store() -> str:
    store = os.environ.get(BATCH_STORE, "").strip()
    if not store:
        raise ConfigurationError(
            "the judge claude-batch needs a file for what is under way: set "
            f"{BATCH_STORE}, such as sqlite:///batches.db, or use ClaudeBatchJudge(store=...)"
        )
    return store


def _message(answer: Answer) -> Message:
    fields: dict[str, Any] = answer.outcome["message"]
    if answer.is_shared:  # paid for by another process, and in its accounts
        fields = {**fields, "usage": _NOTHING}
    try:
        message = Message.construct(**fields)
    except (TypeError, ValueError, AttributeError):
        message = None
    if message is None or not is_complete(message):
        raise JudgeResponseError("a batch's result is no message; check base_url=")
    return message
