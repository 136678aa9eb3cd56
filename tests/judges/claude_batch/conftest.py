from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator

import pytest

from ragaliq import ClaudeBatchJudge, RAGTestCase
from ragaliq.testing import BatchesServer

KEY = "test-key-Zq81"


@pytest.fixture(autouse=True)
def no_credentials_of_the_machine(monkeypatch, tmp_path) -> None:
    for name in list(os.environ):
        if name.startswith(("ANTHROPIC_", "RAGALIQ_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def server() -> Iterator[BatchesServer]:
    with BatchesServer() as running:
        yield running


@pytest.fixture
def store(tmp_path):
    return tmp_path / "batches.db"


@pytest.fixture
def judge_at(store) -> Callable[..., ClaudeBatchJudge]:
    """A judge in a hurry: what takes minutes takes hundredths of a second."""

    def build(server: BatchesServer, **settings) -> ClaudeBatchJudge:
        quick = {"max_wait": 0.03, "poll_interval": 0.02, "resend_after": 0.2, "max_retries": 0}
        given = {"api_key": KEY, "base_url": server.url, "store": store}
        return ClaudeBatchJudge(**(given | quick | settings))

    return build


@pytest.fixture
def judge(server, judge_at) -> ClaudeBatchJudge:
    return judge_at(server)


@pytest.fixture
def cases() -> list[RAGTestCase]:
    return [
        RAGTestCase(
            id=f"case-{number}",
            query=f"When does shop {number} open?",
            context=[f"Shop {number} opens at 9."],
            response=f"Shop {number} opens at 9. Parrots juggle lanterns.",
        )
        for number in range(5)
    ]


@pytest.fixture
def rows(store):
    """What is in the store: the states of all requests."""

    def read() -> list[str]:
        try:
            connection = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
        except sqlite3.OperationalError:
            return []
        try:
            found = connection.execute("SELECT state FROM batch_requests ORDER BY rowid").fetchall()
        except sqlite3.OperationalError:  # the file has just been made
            found = []
        connection.close()
        return [row[0] for row in found]

    return read


@pytest.fixture
def until():
    """Waits for something that happens on the server's threads, or in the file."""

    async def wait(condition: Callable[[], object]) -> None:
        while not condition():  # noqa: ASYNC110 - neither the server nor the file has events
            await asyncio.sleep(0.005)

    return wait
