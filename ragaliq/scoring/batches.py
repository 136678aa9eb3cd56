"""Claude at half price: the requests of many cases go through Message Batches, in rounds.

A judge whose replies come from a file evaluates each case. Where a reply is missing the request is
noted instead, and the case waits for a later round; what was noted is sent as a batch, and its
results are stored before anything else is done with them. So a case needs as many rounds as it has
questions that depend on each other (two or three), nothing is held in memory while a batch is
processed, and a process that is killed at any moment continues where it was.

Between the moment a batch is sent and the moment its id is stored a process may be killed, or the
API's reply lost. Then the batches that the API lists are searched for ours: requests are sent again
only when none of them holds them.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import anthropic
import httpx2
from anthropic.types import Message
from pydantic import BaseModel

from ragaliq.core.concurrency import pause_before_retry
from ragaliq.core.evaluator import Evaluator
from ragaliq.core.results import JudgeUsage
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import JudgeAPIError, JudgeError, JudgeResponseError, JudgeTimeoutError
from ragaliq.evaluators.case import evaluate_case
from ragaliq.judges.base import LLMJudge, long_digest_of
from ragaliq.judges.claude import DEFAULT_JUDGE_MODEL, ClaudeJudge, is_complete, request_failed
from ragaliq.judges.pricing import BATCH_PRICE
from ragaliq.records.sqlite_file import WriterConnection

if TYPE_CHECKING:
    from ragaliq.judges.prompting import RenderedPrompt


logger = logging.getLogger(__name__)

_TABLE = """
CREATE TABLE IF NOT EXISTS batch_requests (
    digest TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    submission TEXT,
    batch_id TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    changed_at REAL NOT NULL,
    params TEXT NOT NULL,
    outcome TEXT
)
"""
# A request is `open` until it is about to be sent, `sending` until the API has confirmed the batch,
# `sent` until its result is stored, and then `done`.
_PASSING = {"api_error", "overloaded_error", "rate_limit_error", "timeout_error"}
_ATTEMPTS = 3
_CLOCKS = 3600.0  # by how much the API's clock and ours may differ, in seconds
_LONGEST_PAUSE = 300.0

_missing: ContextVar[list[str] | None] = ContextVar("ragaliq_missing_replies", default=None)


class _NoReplyYetError(JudgeError):
    """The reply to a request is not there yet."""


@dataclass(frozen=True, kw_only=True)
class BatchSchedule:
    """How batches are made and waited for.

    Attributes:
        max_requests: Requests in a batch; the API takes 100,000.
        max_bytes: Bytes of requests in a batch; the API takes 256 MB.
        poll_interval: Seconds between two looks at a batch at first; later ones are rarer.
        resend_after: Seconds after which a batch that was perhaps sent is sent again, if the API
            does not list it by then.
    """

    max_requests: int = 10_000
    max_bytes: int = 100_000_000
    poll_interval: float = 30.0
    resend_after: float = 300.0


class BatchRequests:
    """Requests and their replies in a file.

    Args:
        connection: To the file.
    """

    def __init__(self, connection: WriterConnection) -> None:
        self._connection = connection
        with connection.reading() as sql:
            sql.execute(_TABLE)

    def reply(self, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """What came of a request; notes it where nothing has come so far."""
        text = json.dumps(params, sort_keys=True)
        digest = long_digest_of(text)
        with self._connection.transaction() as sql:
            sql.execute(
                "INSERT OR IGNORE INTO batch_requests (digest, state, changed_at, params) "
                "VALUES (?, 'open', ?, ?)",
                (digest, time.time(), text),
            )
            (outcome,) = sql.execute(
                "SELECT outcome FROM batch_requests WHERE digest = ?", (digest,)
            ).fetchone()
        return None if outcome is None else dict(json.loads(outcome))

    def take(self, schedule: BatchSchedule) -> tuple[str, list[tuple[str, dict[str, Any]]]]:
        """Open requests for a batch, now `sending`, by their name in it; and the batch's name."""
        submission, size = uuid4().hex[:20], 0
        taken: list[tuple[str, str, dict[str, Any]]] = []
        with self._connection.transaction() as sql:
            rows = sql.execute("SELECT digest, params FROM batch_requests WHERE state = 'open'")
            for digest, params in rows.fetchmany(schedule.max_requests):
                size += len(params)
                if taken and size > schedule.max_bytes:
                    break
                taken.append((f"{submission}-{digest}"[:64], digest, json.loads(params)))
            sql.executemany(
                "UPDATE batch_requests SET state = 'sending', submission = ?, changed_at = ? "
                "WHERE digest = ?",
                [(submission, time.time(), digest) for _, digest, _ in taken],
            )
        return submission, [(name, params) for name, _, params in taken]

    def set_state(self, submission: str, state: str, batch_id: str | None = None) -> None:
        """Change all requests of a batch that is `sending`."""
        with self._connection.transaction() as sql:
            sql.execute(
                "UPDATE batch_requests SET state = ?, batch_id = ?, changed_at = ? "
                "WHERE submission = ? AND state = 'sending'",
                (state, batch_id, time.time(), submission),
            )

    def settle(self, submission: str, name: str | None, outcome: dict[str, Any]) -> None:
        """Store what came of one request of a batch, or of all that are left where none is named.

        A failure that may pass opens the request again, a few times; it was not paid for.
        """
        passing = outcome["type"] in ("expired", "canceled") or outcome.get("error") in _PASSING
        with self._connection.transaction() as sql:
            where = "submission = ? AND state IN ('sent', 'sending')"
            values: list[Any] = [submission]
            if name is not None:
                where += " AND substr(submission || '-' || digest, 1, 64) = ?"
                values.append(name)
            if passing:
                sql.execute(
                    "UPDATE batch_requests SET state = 'open', submission = NULL, batch_id = NULL, "  # noqa: S608
                    f"attempts = attempts + 1 WHERE {where} AND attempts + 1 < {_ATTEMPTS}",
                    values,
                )
            sql.execute(
                "UPDATE batch_requests SET state = 'done', outcome = ?, changed_at = ? "  # noqa: S608
                f"WHERE {where}",
                [json.dumps(outcome), time.time(), *values],
            )

    def batches(self, state: str) -> list[tuple[str, str | None, float, int]]:
        """Name, API's id, moment and size of each batch in a state."""
        with self._connection.reading() as sql:
            rows = sql.execute(
                "SELECT submission, batch_id, min(changed_at), count(*) FROM batch_requests "
                "WHERE state = ? AND submission IS NOT NULL GROUP BY submission, batch_id",
                (state,),
            ).fetchall()
        return [tuple(row) for row in rows]

    def open(self) -> int:
        """How many requests wait for a batch."""
        with self._connection.reading() as sql:
            row = sql.execute("SELECT count(*) FROM batch_requests WHERE state = 'open'").fetchone()
        return int(row[0])

    def known(self) -> set[str]:
        """The API's ids of all batches so far."""
        with self._connection.reading() as sql:
            query = "SELECT DISTINCT batch_id FROM batch_requests WHERE batch_id IS NOT NULL"
            return {row[0] for row in sql.execute(query)}

    def clear(self) -> None:
        """Delete all requests and replies that are done: every case is stored."""
        with self._connection.transaction() as sql:
            sql.execute("DELETE FROM batch_requests WHERE state = 'done'")
        self._connection.empty_log()


class BatchJudge(ClaudeJudge):
    """Claude with its replies from a file; a request without a reply is noted there.

    Args:
        requests: The file.
        model: The model that judges.
        **settings: See `ClaudeJudge`.
    """

    name = "claude-batch"
    # Requests over one context may run at the same moment: a cache would not be there in time, and
    # writing one costs a quarter more.
    caches_context = False

    def __init__(
        self, requests: BatchRequests, model: str = DEFAULT_JUDGE_MODEL, **settings: Any
    ) -> None:
        super().__init__(model, **settings)
        self._requests = requests

    def priced(self, usage: JudgeUsage) -> JudgeUsage:
        """One request's tokens at the price of a batch, with what that saves."""
        full = self.price(usage)
        if full is None:
            return usage.model_copy(update={"cost_usd": None})
        cost = full * BATCH_PRICE
        return usage.model_copy(update={"cost_usd": cost, "saved_usd": full - cost})

    async def api(self) -> anthropic.AsyncAnthropic:
        """The client of the running loop."""
        return await self._client()

    async def _send(self, prompt: RenderedPrompt, reply: type[BaseModel]) -> Message:
        outcome = await asyncio.to_thread(self._requests.reply, dict(self._params(prompt, reply)))
        if outcome is None:
            missing = _missing.get()
            if missing is not None:
                missing.append(prompt.name)
            raise _NoReplyYetError("the request waits for its batch")
        if outcome["type"] != "succeeded":
            raise _failure_of(outcome)
        try:
            message = Message.construct(**outcome["message"])
        except (TypeError, ValueError, AttributeError, KeyError):
            message = None
        if message is None or not is_complete(message):
            raise JudgeResponseError("a batch's result is not a message; check base_url=")
        return message


async def is_answered(case: RAGTestCase, evaluators: Sequence[Evaluator], judge: LLMJudge) -> bool:
    """Whether the replies for all metrics of a case are there; notes the requests that are not."""
    missing: list[str] = []
    token = _missing.set(missing)
    try:
        await evaluate_case(case, evaluators, judge)
    finally:
        _missing.reset(token)
    return not missing


def _failure_of(outcome: Mapping[str, Any]) -> JudgeError:
    kind = outcome["type"]
    if kind == "expired":
        return JudgeTimeoutError("the batch expired before the request was processed; not billed")
    if kind == "refused":
        return JudgeAPIError(
            f"the Message Batches API refused a batch with HTTP {outcome.get('status')}; check the "
            "model's name, the API key and the account's billing"
        )
    return JudgeAPIError(f"a request in a batch failed: {outcome.get('error', kind)}")


class Batches:
    """Sends what was noted and stores what comes of it.

    Args:
        requests: The file.
        judge: Gives the API's client.
        schedule: How batches are made and waited for.
    """

    def __init__(self, requests: BatchRequests, judge: BatchJudge, schedule: BatchSchedule) -> None:
        self._requests, self._judge, self._schedule = requests, judge, schedule
        self._strangers: set[str] = set()
        self._lost_since: dict[str, float] = {}

    async def round(self) -> None:
        """Send all open requests, and wait until every batch has ended and its results are stored.

        Raises:
            JudgeAPIError: The API may not be asked.
        """
        looks = 0
        while True:
            lost = await self._find_lost()
            if not lost:
                await self._send_open()
            waiting = await self._fetch_ended()
            if not waiting and not lost and not self._requests.open():
                return
            looks += 1
            first = self._schedule.poll_interval
            await asyncio.sleep(pause_before_retry(looks, first=first, longest=_LONGEST_PAUSE))

    async def _send_open(self) -> None:
        while self._requests.open():
            submission, named = await asyncio.to_thread(self._requests.take, self._schedule)
            client = await self._judge.api()
            body: Any = [{"custom_id": name, "params": params} for name, params in named]
            try:
                # Not repeated by the SDK: the first attempt may have made a batch, and a second
                # one would be paid for as well.
                quiet = client.with_options(max_retries=0)
                batch = await quiet.messages.batches.create(requests=body)
            except anthropic.APIStatusError as error:
                if error.status_code in (429, 529):
                    self._requests.set_state(submission, "open")
                    return
                if error.status_code < 500 and error.status_code not in (408, 409):
                    refused = {"type": "refused", "status": error.status_code}
                    self._requests.settle(submission, None, refused)
                    continue
                return  # whether it was made is not known: it is searched for
            except anthropic.APIConnectionError as error:
                if isinstance(error.__cause__, httpx2.ConnectError | httpx2.ConnectTimeout):
                    self._requests.set_state(submission, "open")
                return
            logger.info("batch %s: %d requests", batch.id, len(named))
            self._requests.set_state(submission, "sent", batch.id)

    async def _fetch_ended(self) -> int:
        """Store the results of the batches that have ended; how many have not."""
        waiting = 0
        for submission, batch_id, _, _ in self._requests.batches("sent"):
            client = await self._judge.api()
            try:
                state = await client.messages.batches.retrieve(str(batch_id))
                if state.processing_status != "ended":
                    waiting += 1
                    continue
                async for name, outcome in _results(client, str(batch_id)):
                    await asyncio.to_thread(self._requests.settle, submission, name, outcome)
                self._requests.settle(submission, None, {"type": "missing"})
            except anthropic.NotFoundError:
                self._requests.settle(submission, None, {"type": "unknown_batch"})
            except (anthropic.AnthropicError, httpx2.HTTPError, ValueError) as error:
                self._require_passing(error)
                waiting += 1
        return waiting

    async def _find_lost(self) -> int:
        """Look for batches that were perhaps sent; how many are not found so far."""
        lost = self._requests.batches("sending")
        if not lost:
            return 0
        client, found = await self._judge.api(), 0
        oldest = min(moment for _, _, moment, _ in lost) - _CLOCKS
        try:
            known = self._requests.known() | self._strangers
            async for batch in client.messages.batches.list(limit=100):
                if batch.created_at.timestamp() < oldest:
                    break
                if batch.id in known:
                    continue
                if batch.processing_status != "ended":
                    return len(lost)  # may be ours: its names are seen only when it has ended
                names = {name async for name, _ in _results(client, batch.id)}
                ours = [s for s, *_ in lost if any(name.startswith(s) for name in names)]
                for submission in ours:
                    self._requests.set_state(submission, "sent", batch.id)
                    found += 1
                if not ours:
                    self._strangers.add(batch.id)
        except (anthropic.AnthropicError, httpx2.HTTPError, ValueError) as error:
            self._require_passing(error)
            return len(lost)
        for submission, *_ in self._requests.batches("sending"):
            since = self._lost_since.setdefault(submission, time.monotonic())
            if time.monotonic() - since > self._schedule.resend_after:
                logger.info("a batch was not taken: sent again")
                self._requests.set_state(submission, "open")
                found += 1
        return len(lost) - found

    def _require_passing(self, error: Exception) -> None:
        denied = (400, 401, 402, 403)
        if isinstance(error, anthropic.APIStatusError) and error.status_code in denied:
            raise request_failed(error, self._judge.model, None) from None
        logger.warning("batches could not be asked for (%s); asking again", type(error).__name__)


async def _results(
    client: anthropic.AsyncAnthropic, batch_id: str
) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    # Not by the address in the batch: the key goes to nobody but the one it was given for.
    response = await client.get(
        f"/v1/messages/batches/{batch_id}/results",
        cast_to=httpx2.Response,
        options={"headers": {"Accept": "application/binary"}},
    )
    for line in response.content.split(b"\n"):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            name, result = str(row["custom_id"]), row["result"]
            kind = str(result["type"])
        except (ValueError, TypeError, KeyError, RecursionError):
            continue  # has no result then, which is said of its request
        if kind == "succeeded" and isinstance(result.get("message"), dict):
            yield name, {"type": "succeeded", "message": result["message"]}
        elif kind == "errored":
            yield name, {"type": "errored", "error": _error_type(result.get("error"))}
        else:
            yield name, {"type": kind if kind in ("expired", "canceled") else "malformed"}


def _error_type(error: object) -> str:
    # Either the error itself, or the API's usual body with the error in it. Nothing else a server
    # wrote is kept.
    inner = error.get("error") if isinstance(error, dict) else None
    for part in (inner, error):
        named = part.get("type") if isinstance(part, dict) else None
        if isinstance(named, str) and named.endswith("_error") and named.isascii():
            return named[:64]
    return "unknown_error"
