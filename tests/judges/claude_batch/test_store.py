"""What the store holds is trusted no further than it must be, and nothing stays in it unseen."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing

import pytest

from ragaliq import JudgeAPIError, evaluate
from ragaliq.judges.claude_batch.ledger import Ledger
from ragaliq.storage import schema
from ragaliq.testing.replies import Reply

ASKED = ("When does it open?", "At nine.")


def change(store, statement, *values) -> None:
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute(statement, values)


@pytest.mark.parametrize(
    "outcome",
    [
        "{",
        "null",
        "[]",
        '{"type": []}',
        '{"type": "succeeded"}',
        '{"type": "errored"}',
        '{"type": "refused", "status": "no"}',
        '{"type": "of a later version"}',
    ],
)
async def test_a_damaged_outcome_is_one_failure_and_no_others(server, judge, store, until, outcome):
    server.holds = True
    waiting = asyncio.ensure_future(judge.evaluate_relevance(*ASKED))
    await until(lambda: server.batches)
    change(store, "UPDATE batch_requests SET state = 'done', outcome = ?", outcome)
    (error,) = await asyncio.gather(waiting, return_exceptions=True)
    assert "malformed" in str(error)

    server.holds = False
    assert (await judge.evaluate_relevance(*ASKED)).score == 0.0


def test_a_store_of_an_earlier_form_takes_what_it_lacks_and_keeps_what_it_has(
    server, judge_at, store, cases
):
    with closing(sqlite3.connect(store)) as connection, connection:
        for step in schema._STEPS[:2]:
            connection.executescript(step)
        connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        connection.execute("PRAGMA user_version = 2")
        connection.execute("INSERT INTO state VALUES ('mine', 'key', '1', 0.0)")

    assert evaluate(cases, judge=judge_at(server)).metrics["relevance"].mean is not None
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute("SELECT key FROM state").fetchall() == [("key",)]


def test_what_is_done_can_be_read_nowhere(server, judge, store, cases):
    evaluate(cases, judge=judge)

    # The log has been emptied, and what was deleted has been overwritten.
    left = b"".join(
        path.read_bytes() for path in store.parent.glob("batches.db*") if path.is_file()
    )
    assert b"batch_requests" in left
    assert b"Parrots" not in left
    assert b"opens at 9" not in left


async def test_a_failed_request_can_be_read_nowhere_either(server, judge, store):
    server.plan("create", Reply(status=400))
    with pytest.raises(JudgeAPIError, match="400"):
        await judge.evaluate_relevance(*ASKED)

    left = b"".join(
        path.read_bytes() for path in store.parent.glob("batches.db*") if path.is_file()
    )
    assert b"At nine." not in left


async def test_many_requests_are_stored_in_portions_between_which_others_run(
    judge, monkeypatch, server
):
    portions, enroll = [], Ledger.enroll
    ran = 0

    def enrolled(ledger, questions):
        portions.append((len(questions), ran))
        return enroll(ledger, questions)

    async def run():
        nonlocal ran
        while True:
            ran += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(Ledger, "enroll", enrolled)
    other = asyncio.ensure_future(run())
    await asyncio.gather(*(judge.evaluate_relevance("q", f"a {n}") for n in range(450)))
    other.cancel()
    assert sum(size for size, _ in portions) == 450
    assert max(size for size, _ in portions) <= 200
    turns = [turn for _, turn in portions]
    assert turns == sorted(set(turns))
