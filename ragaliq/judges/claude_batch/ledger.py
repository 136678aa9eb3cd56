"""The store's account of every request: asked, being sent, sent, answered, consumed.

A request is in one of four states. `open`: to be sent. `sending`: a batch with it is being sent, or
was when the process ended, so that nobody knows. `sent`: in a batch of the API. `done`: answered,
or failed for good.

Whoever waits for a request, or has not yet kept what became of its reply, holds it. A reply is
deleted when nobody holds it any more; what a process that has ended held is there for the next one
that asks the same.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ragaliq.errors import DatasetError, StoreError
from ragaliq.judges.claude_batch.outcomes import SUCCEEDED, Outcome, read_outcome
from ragaliq.storage.connection import WriterConnection
from ragaliq.storage.failures import store_error
from ragaliq.storage.owners import Owner

__all__ = ["Answer", "Ledger", "Question"]

# Replies nobody asked for again; the API itself keeps them for 29 days.
_KEPT_FOR = 30 * 86_400.0
# Bytes a batch needs for a request besides its id and its body.
_AROUND = 64
# Of several rows for the same question, the one to wait for is that nearest to its answer.
_NEAREST = """
SELECT request_id, state, outcome,
    NOT EXISTS (SELECT 1 FROM batch_holds h WHERE h.request_id = r.request_id)
FROM batch_requests r
WHERE digest = ? AND endpoint = ? AND NOT EXISTS (
    SELECT 1 FROM batch_holds h WHERE h.request_id = r.request_id AND h.owner = ?)
ORDER BY CASE state WHEN 'done' THEN 0 WHEN 'sent' THEN 1 WHEN 'sending' THEN 2 ELSE 3 END
LIMIT 1
"""
_READY = """
SELECT r.request_id, r.outcome, r.charged_to IS NOT NULL AND r.charged_to != h.owner
FROM batch_holds h JOIN batch_requests r USING (request_id)
WHERE h.owner = ? AND h.delivered = 0 AND r.state = 'done'
LIMIT 2000
"""


class Question(NamedTuple):
    """A request to be made.

    Attributes:
        digest: Names its content; see `digest_of_params`.
        params: The request's body, as JSON.
    """

    digest: str
    params: str


class Answer(NamedTuple):
    """What became of a request.

    Attributes:
        request_id: Which one.
        outcome: The reply, or why there is none.
        is_shared: Whether its cost is in another owner's accounts.
    """

    request_id: str
    outcome: Outcome
    is_shared: bool


class Ledger:
    """The requests to one address in one store, seen by one owner. Calls wait for the disk.

    Args:
        path: The store's file.
        endpoint: Names the address of the API.
        owner: Who asks.

    Every method raises `StoreError` when the store cannot be used.
    """

    def __init__(self, path: Path, *, endpoint: str, owner: Owner) -> None:
        self.path, self.endpoint, self.owner = path, endpoint, owner
        self._connection = WriterConnection(path, busy_timeout=10.0)

    def enroll(self, questions: Sequence[Question]) -> list[str]:
        """Note requests durably; those that are under way or answered are not made again.

        A question this owner holds already is another request: who asks twice wants two answers.

        Returns:
            The id of each, in order.
        """
        with self.transaction() as connection:
            self._bury(connection)
            return [self._enrolled(connection, question) for question in questions]

    def _enrolled(self, connection: sqlite3.Connection, question: Question) -> str:
        me, now = self.owner.name, time.time()
        row = connection.execute(_NEAREST, (question.digest, self.endpoint, me)).fetchone()
        if row is None:
            request_id = self._inserted(connection, question, now)
        else:
            request_id, state, outcome, is_orphan = row
            failed = state == "done" and read_outcome(outcome)["type"] != SUCCEEDED
            if failed and is_orphan:  # nobody heard of the failure: asked again, it is tried again
                connection.execute(
                    "UPDATE batch_requests SET state = 'open', params = ?, outcome = NULL, "
                    "batch_id = NULL, attempts = 0, asked_at = ? WHERE request_id = ?",
                    (question.params, now, request_id),
                )
        connection.execute(
            "INSERT INTO batch_holds (request_id, owner) VALUES (?, ?)", (request_id, me)
        )
        return str(request_id)

    def _inserted(self, connection: sqlite3.Connection, question: Question, now: float) -> str:
        request_id = self._new_id(connection, question.digest)
        size = len(question.params.encode()) + len(request_id) + _AROUND
        connection.execute(
            "INSERT INTO batch_requests (request_id, digest, endpoint, state, params, size, "
            "asked_at, changed_at) VALUES (?, ?, ?, 'open', ?, ?, ?, ?)",
            (request_id, question.digest, self.endpoint, question.params, size, now, now),
        )
        return request_id

    def _new_id(self, connection: sqlite3.Connection, digest: str) -> str:
        taken = {
            row[0]
            for row in connection.execute(
                "SELECT request_id FROM batch_requests WHERE digest = ?", (digest,)
            )
        }
        number = 0
        while (request_id := f"{digest}-{number}") in taken:
            number += 1
        return request_id

    def take(self) -> list[Answer]:
        """The answers this owner waits for and has not had yet."""
        me = self.owner.name
        with self.transaction() as connection:
            rows = connection.execute(_READY, (me,)).fetchall()
            answers = [Answer(row[0], read_outcome(row[1]), bool(row[2])) for row in rows]
            connection.executemany(
                "UPDATE batch_holds SET delivered = 1 WHERE request_id = ? AND owner = ?",
                [(answer.request_id, me) for answer in answers],
            )
            connection.executemany(
                "UPDATE batch_requests SET charged_to = ? WHERE request_id = ?",
                [(me, answer.request_id) for answer in answers if not answer.is_shared],
            )
            failed = [a.request_id for a in answers if a.outcome["type"] != SUCCEEDED]
            self._let_go(connection, failed)
        if failed:
            self._clear()
        return answers

    def release(self, request_ids: Sequence[str]) -> None:
        """What became of these is kept elsewhere: delete them, unless others hold them too."""
        with self.transaction() as connection:
            self._let_go(connection, request_ids)
        self._clear()

    def abandon(self, request_ids: Sequence[str]) -> None:
        """Nobody here waits for these any more; those not sent yet need not be."""
        me = self.owner.name
        with self.transaction() as connection:
            for request_id in request_ids:
                connection.execute(
                    "DELETE FROM batch_holds WHERE request_id = ? AND owner = ?", (request_id, me)
                )
                connection.execute(
                    "UPDATE batch_requests SET charged_to = NULL "
                    "WHERE request_id = ? AND charged_to = ?",
                    (request_id, me),
                )
            self._drop_unwanted(connection)

    def cleaned(self) -> None:
        """Let go of what owners that have ended held, and of what is too old."""
        with self.transaction() as connection:
            self._bury(connection)
            self._drop_unwanted(connection)
            connection.execute(
                "DELETE FROM batch_requests WHERE changed_at < ? AND NOT EXISTS (SELECT 1 "
                "FROM batch_holds h WHERE h.request_id = batch_requests.request_id)",
                (time.time() - _KEPT_FOR,),
            )

    def _clear(self) -> None:
        """Once nothing is under way, no text is left anywhere."""
        with self.transaction() as connection:
            (is_left,) = connection.execute(
                "SELECT EXISTS(SELECT 1 FROM batch_requests)"
            ).fetchone()
        if not is_left:
            self._connection.empty_log()

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One transaction of the store, with its failures in words."""
        try:
            with self._connection.transaction() as connection:
                yield connection
        except (sqlite3.Error, OSError, DatasetError, StoreError) as error:
            raise store_error(error, self.path) from error

    def _bury(self, connection: sqlite3.Connection) -> None:
        owners = [row[0] for row in connection.execute("SELECT DISTINCT owner FROM batch_holds")]
        for name in self.owner.gone(owners):
            # What they had in their accounts is lost with them, unless they had let go of it.
            connection.execute(
                "UPDATE batch_requests SET charged_to = NULL WHERE charged_to = ?1 AND request_id "
                "IN (SELECT request_id FROM batch_holds WHERE owner = ?1)",
                (name,),
            )
            connection.execute("DELETE FROM batch_holds WHERE owner = ?", (name,))

    def _drop_unwanted(self, connection: sqlite3.Connection) -> None:
        connection.execute(
            "DELETE FROM batch_requests WHERE endpoint = ? AND state = 'open' AND NOT EXISTS ("
            "SELECT 1 FROM batch_holds h WHERE h.request_id = batch_requests.request_id)",
            (self.endpoint,),
        )

    def _let_go(self, connection: sqlite3.Connection, request_ids: Sequence[str]) -> None:
        me = self.owner.name
        mine: list[tuple[Any, ...]] = [(request_id,) for request_id in request_ids]
        connection.executemany(
            "DELETE FROM batch_holds WHERE request_id = ? AND owner = ?",
            [(*key, me) for key in mine],
        )
        connection.executemany(
            "DELETE FROM batch_requests WHERE request_id = ? AND NOT EXISTS ("
            "SELECT 1 FROM batch_holds h WHERE h.request_id = batch_requests.request_id)",
            mine,
        )
