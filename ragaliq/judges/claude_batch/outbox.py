"""The sender's side of the store: which requests are to be sent, and in which batch each one is."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import NamedTuple
from uuid import uuid4

from ragaliq.judges.claude_batch.ledger import Ledger
from ragaliq.judges.claude_batch.outcomes import Outcome, Result

__all__ = ["Outbox", "Pending", "Submission", "Unsure"]

_HELD = "EXISTS (SELECT 1 FROM batch_holds h WHERE h.request_id = batch_requests.request_id)"
_SENT = (
    "UPDATE batch_requests SET state = 'sent', batch_id = ?, changed_at = ? "
    "WHERE submission = ? AND state = 'sending'"
)
# How often a request is sent that the API could not process for reasons of its own.
_ATTEMPTS = 3


class Pending(NamedTuple):
    """What waits to be sent.

    Attributes:
        requests: How many.
        size: Bytes they take in a batch.
        since: Unix time of the oldest; 0.0 where there is none.
    """

    requests: int
    size: int
    since: float


class Submission(NamedTuple):
    """One batch about to be sent.

    Attributes:
        name: Names it in the store.
        requests: The id of each request with its body, as JSON.
        size: Bytes they take.
    """

    name: str
    requests: list[tuple[str, str]]
    size: int


class Unsure(NamedTuple):
    """A batch of which nobody knows whether the API has it.

    Attributes:
        name: The submission.
        since: Unix time it was about to be sent.
        requests: How many are in it.
    """

    name: str
    since: float
    requests: int


class Outbox:
    """What the one process that sends does to the store. Calls wait for the disk.

    Args:
        ledger: The requests.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._endpoint = ledger.endpoint

    def pending(self) -> Pending:
        """What waits to be sent; nothing that nobody waits for."""
        with self._ledger.transaction() as connection:
            requests, size, since = connection.execute(
                "SELECT count(*), total(size), min(asked_at) FROM batch_requests "  # noqa: S608
                f"WHERE endpoint = ? AND state = 'open' AND {_HELD}",
                (self._endpoint,),
            ).fetchone()
        return Pending(requests, int(size), since or 0.0)

    def begin(self, *, max_requests: int, max_bytes: int) -> Submission | None:
        """Note durably that a batch is about to be sent, the oldest requests first."""
        requests: list[tuple[str, str]] = []
        name, total = uuid4().hex, 0
        with self._ledger.transaction() as connection:
            rows = connection.execute(
                "SELECT request_id, params, size FROM batch_requests "  # noqa: S608
                f"WHERE endpoint = ? AND state = 'open' AND {_HELD} "
                "ORDER BY asked_at, rowid LIMIT ?",
                (self._endpoint, max_requests),
            )
            for request_id, params, size in rows:
                if requests and total + size > max_bytes:
                    break
                requests.append((request_id, params))
                total += size
            connection.executemany(
                "UPDATE batch_requests SET state = 'sending', submission = ?, changed_at = ? "
                "WHERE request_id = ?",
                [(name, time.time(), request_id) for request_id, _ in requests],
            )
        return Submission(name, requests, total) if requests else None

    def sent(self, submission: str, batch_id: str) -> None:
        """The API has it, under this id."""
        self._change(_SENT, (batch_id, time.time(), submission))

    def take_back(self, submission: str) -> None:
        """The API certainly has it not: its requests are to be sent."""
        self._change(
            "UPDATE batch_requests SET state = 'open', submission = NULL, changed_at = ? "
            "WHERE submission = ? AND state = 'sending'",
            (time.time(), submission),
        )

    def found(self, submission: str, batch_id: str, names: set[str]) -> bool:
        """Note that a batch with these requests is the one that was sent, unless it is another."""
        with self._ledger.transaction() as connection:
            rows = connection.execute(
                "SELECT request_id FROM batch_requests WHERE submission = ? AND state = 'sending'",
                (submission,),
            )
            # Some lines of its results may be missing, or malformed.
            if not names or not names <= {row[0] for row in rows}:
                return False
            connection.execute(_SENT, (batch_id, time.time(), submission))
        return True

    def refused(self, submission: str, outcome: Outcome) -> None:
        """The API will not have it: its requests have failed."""
        self._change(
            "UPDATE batch_requests SET state = 'done', params = '', outcome = ?, changed_at = ? "
            "WHERE submission = ? AND state = 'sending'",
            (json.dumps(outcome), time.time(), submission),
        )

    def unsure(self) -> list[Unsure]:
        """Batches that were about to be sent when something, or everything, went wrong."""
        with self._ledger.transaction() as connection:
            rows = connection.execute(
                "SELECT submission, min(changed_at), count(*) FROM batch_requests "
                "WHERE endpoint = ? AND state = 'sending' GROUP BY submission",
                (self._endpoint,),
            ).fetchall()
        return [Unsure(*row) for row in rows]

    def batches(self) -> dict[str, float]:
        """The API's batches with requests somebody waits for, and when each was sent."""
        with self._ledger.transaction() as connection:
            return dict(
                connection.execute(
                    "SELECT batch_id, min(changed_at) FROM batch_requests "  # noqa: S608
                    f"WHERE endpoint = ? AND state = 'sent' AND {_HELD} GROUP BY batch_id",
                    (self._endpoint,),
                )
            )

    def known(self) -> set[str]:
        """Every batch that is in the store."""
        with self._ledger.transaction() as connection:
            rows = connection.execute(
                "SELECT DISTINCT batch_id FROM batch_requests WHERE batch_id IS NOT NULL"
            ).fetchall()
        return {row[0] for row in rows}

    def settle(self, batch_id: str, results: Sequence[Result]) -> None:
        """Store results of a batch; requests whose failure may pass are sent again, a few times."""
        with self._ledger.transaction() as connection:
            for result in results:
                if result.may_pass:
                    connection.execute(
                        "UPDATE batch_requests SET state = 'open', submission = NULL, "
                        "batch_id = NULL, attempts = attempts + 1, changed_at = ? "
                        "WHERE request_id = ? AND batch_id = ? AND state = 'sent' "
                        "AND attempts + 1 < ?",
                        (time.time(), result.request_id, batch_id, _ATTEMPTS),
                    )
                connection.execute(
                    "UPDATE batch_requests SET state = 'done', params = '', outcome = ?, "
                    "changed_at = ? WHERE request_id = ? AND batch_id = ? AND state = 'sent'",
                    (json.dumps(result.outcome), time.time(), result.request_id, batch_id),
                )

    def unsettled(self, batch_id: str) -> int:
        """Requests of a batch without a result so far."""
        with self._ledger.transaction() as connection:
            (count,) = connection.execute(
                "SELECT count(*) FROM batch_requests WHERE batch_id = ? AND state = 'sent'",
                (batch_id,),
            ).fetchone()
        return int(count)

    def give_up(self, batch_id: str, outcome: Outcome) -> None:
        """What has no result in a batch will have none."""
        self._change(
            "UPDATE batch_requests SET state = 'done', params = '', outcome = ?, changed_at = ? "
            "WHERE batch_id = ? AND state = 'sent'",
            (json.dumps(outcome), time.time(), batch_id),
        )

    def cancel_open(self) -> int:
        """Requests that were not sent end as canceled; how many there were."""
        with self._ledger.transaction() as connection:
            return connection.execute(
                "UPDATE batch_requests SET state = 'done', params = '', outcome = ?, "
                "changed_at = ? WHERE endpoint = ? AND state = 'open'",
                (json.dumps({"type": "canceled"}), time.time(), self._endpoint),
            ).rowcount

    def _change(self, statement: str, values: tuple[object, ...]) -> None:
        with self._ledger.transaction() as connection:
            connection.execute(statement, values)
