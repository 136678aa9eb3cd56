"""Claude at half price: the requests of many cases go through Message Batches, in rounds.

A judge that reads its replies from a file evaluates each case. If a reply is missing, the request
is recorded and the case waits for a later round; recorded requests are sent as a batch, whose
results are stored before anything else happens. So a case needs as many rounds as it has dependent
requests (two or three), memory is free while a batch is processed, and a killed process resumes.

A process may be killed, or the API's reply lost, between sending a batch and storing its id. Then
the batches that the API lists are searched for ours: requests are sent again only if none of them
contains them.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextvars import ContextVar
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import anthropic
import httpx2
from pydantic import BaseModel

from ragaliq.core.concurrency import pause_before_retry
from ragaliq.core.results import JudgeUsage
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import JudgeAPIError, JudgeError, JudgeResponseError, JudgeTimeoutError
from ragaliq.evaluators.case import evaluate_case
from ragaliq.evaluators.evaluator import Evaluator
from ragaliq.judges.base import long_digest_of
from ragaliq.judges.claude import DEFAULT_JUDGE_MODEL, ClaudeJudge, is_complete, request_failed
from ragaliq.judges.pricing import BATCH_PRICE
from ragaliq.records.sqlite_file import WriterConnection

if TYPE_CHECKING:
    from ragaliq.judges.prompting import RenderedPrompt

logger = logging.getLogger(__name__)

# A request is `open` until it is about to be sent, `sending` until the API has confirmed the batch,
# `sent` until its result is stored, and then `done`.
_TABLE = """
CREATE TABLE IF NOT EXISTS batch_requests (
    digest TEXT PRIMARY KEY, params TEXT NOT NULL, outcome TEXT,
    state TEXT NOT NULL, changed_at REAL NOT NULL, attempts INTEGER NOT NULL DEFAULT 0,
    submission TEXT, batch_id TEXT
)
"""
# A temporary failure that was not paid for opens the request again, a few times.
_SETTLE = """
UPDATE batch_requests SET outcome = ?, changed_at = ?, attempts = attempts + 1,
    state = CASE WHEN ? AND attempts < 2 THEN 'open' ELSE 'done' END
WHERE submission = ? AND state IN ('sent', 'sending') AND digest BETWEEN ? AND ?
"""
_PASSING = {"api_error", "overloaded_error", "rate_limit_error", "timeout_error"}
# The SDK does not validate replies: a proxy's page is a string without a batch's attributes.
_MAY_PASS = anthropic.AnthropicError, httpx2.HTTPError, ValueError, AttributeError
_CLOCKS = 3600.0  # by how much a batch's time there and here may differ, in seconds
_LONGEST_PAUSE = 300.0

_missing: ContextVar[list[str] | None] = ContextVar("ragaliq_missing_replies", default=None)


class _NoReplyYetError(JudgeError):
    """The reply to a request has not arrived yet."""


class BatchJudge(ClaudeJudge):
    """Claude with replies from a file; a request without one is recorded for sending.

    A batch is limited in requests and bytes (the API accepts 100,000 and 256 MB). It is polled
    every `poll_interval` seconds at first, later less often; one that may have been sent is sent
    again if the API does not list it within `resend_after` seconds.
    """

    name = "claude-batch"
    # Requests over one context may run at the same time: a cache would be too late, and writing it
    # costs a quarter more.
    caches_context = False

    def __init__(
        self,
        connection: WriterConnection,
        model: str | None = None,
        *,
        max_requests: float = 10_000,
        max_bytes: float = 100_000_000,
        poll_interval: float = 30.0,
        resend_after: float = 300.0,
    ) -> None:
        super().__init__(model or DEFAULT_JUDGE_MODEL)
        self._connection = connection
        self._max_requests, self._max_bytes = int(max_requests), max_bytes
        self._poll_interval, self._resend_after = poll_interval, resend_after
        self._seen: set[str] = set()
        self._lost_since: dict[str, float] = {}
        self._sql(_TABLE)

    def _sql(self, statement: str, *values: Any) -> list[Any]:
        with self._connection.transaction() as sql:
            return sql.execute(statement, values).fetchall()

    def priced(self, usage: JudgeUsage) -> JudgeUsage:
        """Usage of one request at the price of a batch, with the saving."""
        full = self.price(usage)
        if full is None:
            return usage.model_copy(update={"cost_usd": None})
        cost = full * BATCH_PRICE
        return usage.model_copy(update={"cost_usd": cost, "saved_usd": full - cost})

    async def is_answered(self, case: RAGTestCase, evaluators: Sequence[Evaluator]) -> bool:
        """Check whether all replies for a case have arrived; record the missing requests."""
        missing: list[str] = []
        token = _missing.set(missing)
        try:
            await evaluate_case(case, evaluators, self)
        finally:
            _missing.reset(token)
        return not missing

    async def _send(self, prompt: RenderedPrompt, reply: type[BaseModel]) -> dict[str, Any]:
        params = json.dumps(dict(self._params(prompt, reply)), sort_keys=True)
        outcome = await asyncio.to_thread(self._outcome, params)
        if outcome is None:
            missing = _missing.get()
            if missing is not None:
                missing.append(prompt.name)
            raise _NoReplyYetError("the request waits for its batch")
        if outcome["type"] != "succeeded":
            raise _failure_of(outcome)
        message = outcome.get("message")
        if is_complete(message):
            return message
        raise JudgeResponseError("a batch's result is not a message; check base_url=")

    def _outcome(self, params: str) -> dict[str, Any] | None:
        digest = long_digest_of(params)
        with self._connection.transaction() as sql:
            sql.execute(
                "INSERT OR IGNORE INTO batch_requests (digest, state, changed_at, params) "
                "VALUES (?, 'open', ?, ?)",
                (digest, time.time(), params),
            )
            row = sql.execute(
                "SELECT outcome FROM batch_requests WHERE digest = ? AND state = 'done'", (digest,)
            ).fetchone()
        return dict(json.loads(row[0])) if row else None

    def clear(self) -> None:
        """Delete all finished requests and replies: every case is stored."""
        self._sql("DELETE FROM batch_requests WHERE state = 'done'")
        self._connection.empty_log()

    async def round(self) -> None:
        """Send all open requests, and wait until every batch has ended and its results are stored.

        Raises:
            JudgeAPIError: The API refuses; unsent requests are deleted.
        """
        for looks in count(1):
            try:
                await self._fetch_ended()
                if not await self._find_lost():
                    await self._send_open()
                if not self._sql("SELECT 1 FROM batch_requests WHERE state != 'done' LIMIT 1"):
                    return
            except _MAY_PASS as error:
                if isinstance(error, anthropic.APIStatusError) and _refuses(error.status_code):
                    # The next process records them again, perhaps for another model.
                    self._sql("DELETE FROM batch_requests WHERE state = 'open'")
                    raise request_failed(error, self.model, None) from None
                kind = type(error).__name__
                logger.warning("batches could not be asked for (%s); asking again", kind)
            first = self._poll_interval
            await asyncio.sleep(pause_before_retry(looks, first=first, longest=_LONGEST_PAUSE))

    async def _send_open(self) -> None:
        while self._sql("SELECT 1 FROM batch_requests WHERE state = 'open' LIMIT 1"):
            submission, requests = await asyncio.to_thread(self._take)
            client = await self._client()
            try:
                # Without the SDK's retries: the first attempt may have created a batch, and a
                # second one would be paid for too.
                quiet = client.with_options(max_retries=0)
                batch = await quiet.messages.batches.create(requests=requests)
            except anthropic.APIStatusError as error:
                if _refuses(error.status_code) or error.status_code in (429, 529):
                    self._set_state(submission, "open")
                raise  # else whether it was made is not known: it is searched for
            except anthropic.APIConnectionError as error:
                if isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout):
                    self._set_state(submission, "open")
                raise
            logger.info("batch %s: %d requests", batch.id, len(requests))
            self._set_state(submission, "sent", batch.id)

    def _take(self) -> tuple[str, list[Any]]:
        """Mark open requests as `sending`; return them with the name of their batch."""
        submission, size = uuid4().hex[:20], 0
        digests, requests = [], list[Any]()
        with self._connection.transaction() as sql:
            rows = sql.execute("SELECT digest, params FROM batch_requests WHERE state = 'open'")
            for digest, params in rows.fetchmany(self._max_requests):
                size += len(params)
                if requests and size > self._max_bytes:
                    break
                digests.append((submission, time.time(), digest))
                requests.append(
                    {"custom_id": f"{submission}-{digest}", "params": json.loads(params)}
                )
            sql.executemany(
                "UPDATE batch_requests SET state = 'sending', submission = ?, changed_at = ? "
                "WHERE digest = ?",
                digests,
            )
        return submission, requests

    def _set_state(self, submission: str, state: str, batch_id: str | None = None) -> None:
        self._sql(
            "UPDATE batch_requests SET state = ?, batch_id = ?, changed_at = ? "
            "WHERE submission = ? AND state = 'sending'",
            *(state, batch_id, time.time(), submission),
        )

    def _settle(self, submission: str, outcome: dict[str, Any], digest: str = "") -> None:
        """Store the outcome of one request of a batch, or of all remaining ones."""
        passing = outcome["type"] in ("expired", "canceled") or outcome.get("error") in _PASSING
        which = (submission, digest, digest or "g")  # beyond all hex digits
        self._sql(_SETTLE, json.dumps(outcome), time.time(), passing, *which)

    async def _fetch_ended(self) -> None:
        """Store the results of the batches that have ended."""
        for submission, batch_id in self._sql(
            "SELECT DISTINCT submission, batch_id FROM batch_requests WHERE state = 'sent'"
        ):
            client = await self._client()
            state = await client.messages.batches.retrieve(batch_id)
            if state.processing_status != "ended":
                continue
            results = [each async for each in _results(client, batch_id)]
            if not results:
                raise ValueError("none of a batch's results can be read")
            for name, outcome in results:
                ours, _, digest = name.partition("-")
                if ours == submission and digest:
                    await asyncio.to_thread(self._settle, submission, outcome, digest)
            self._settle(submission, {"type": "missing"})

    async def _find_lost(self) -> bool:
        """Look for batches that may have been sent; return whether some are not found yet."""
        lost_query = (
            "SELECT submission, min(changed_at) FROM batch_requests WHERE state = 'sending' "
            "GROUP BY submission"
        )
        if not (lost := dict(self._sql(lost_query))):
            return False
        client = await self._client()
        oldest, newest = min(lost.values()) - _CLOCKS, max(lost.values()) + _CLOCKS
        known = self._seen.union(*self._sql("SELECT DISTINCT batch_id FROM batch_requests"))
        async for batch in client.messages.batches.list(limit=100):
            if (created := batch.created_at.timestamp()) < oldest:
                break
            # Limit the search: a busy account always has newer batches.
            if created > newest or batch.id in known:
                continue
            if batch.processing_status != "ended":
                return True  # may be ours: its names are seen only when it has ended
            found = {name.partition("-")[0] async for name, _ in _results(client, batch.id)}
            for submission in found & lost.keys():
                self._set_state(submission, "sent", batch.id)
            self._seen.add(batch.id)
        now = time.monotonic()
        for submission, _ in self._sql(lost_query):
            if now - self._lost_since.setdefault(submission, now) > self._resend_after:
                logger.info("a batch was not taken: sent again")
                self._set_state(submission, "open")
        return bool(self._sql(lost_query))


def _refuses(status: int) -> bool:
    return status < 500 and status not in (408, 409, 429)


def _failure_of(outcome: Mapping[str, Any]) -> JudgeError:
    if (kind := outcome["type"]) == "expired":
        return JudgeTimeoutError("the batch expired before the request was processed; not billed")
    return JudgeAPIError(f"a request in a batch failed: {outcome.get('error', kind)}")


async def _results(
    client: anthropic.AsyncAnthropic, batch_id: str
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    # Not by the address in the batch: the key must only go to its own host.
    response = await client.get(
        f"/v1/messages/batches/{batch_id}/results",
        cast_to=httpx2.Response,
        options={"headers": {"Accept": "application/binary"}},
    )
    for line in response.content.split(b"\n"):
        try:
            row = json.loads(line)
            name, outcome = str(row["custom_id"]), _outcome_of(row["result"])
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue  # has no result then, which is said of its request
        yield name, outcome


def _outcome_of(result: dict[str, Any]) -> dict[str, Any]:
    """Stored part of a result; of an error, only its type."""
    if (kind := result["type"]) == "succeeded":
        return {"type": kind, "message": result["message"]}
    if kind == "errored":
        # Either the error itself, or the API's usual body with the error in it.
        named = str(result["error"].get("error", result["error"])["type"])
        is_type = named.endswith("_error") and named.isascii()
        return {"type": kind, "error": named[:64] if is_type else "unknown_error"}
    return {"type": kind if kind in ("expired", "canceled") else "malformed"}
