import asyncio
import threading

import pytest

from ragaliq import Monitor, RAGTestCase
from ragaliq.testing import ScriptedJudge


class Held(ScriptedJudge):
    """Answers nothing until it is released."""

    def __init__(self):
        super().__init__()
        self.entered, self.released = threading.Event(), threading.Event()

    async def extract_statements(self, query, response):
        await self._held()
        return await super().extract_statements(query, response)

    async def evaluate_relevance(self, query, response):
        await self._held()
        return await super().evaluate_relevance(query, response)

    async def _held(self):
        self.entered.set()
        await asyncio.to_thread(self.released.wait, 30.0)


@pytest.fixture
def held():
    """A judge that answers nothing until it is released."""
    return Held()


@pytest.fixture
def case():
    return RAGTestCase(query="q", context=["Alpha is one."], response="Alpha is one. Beta is two.")


@pytest.fixture
def monitor_of():
    """Builds monitors and closes them after the test."""
    monitors = []

    def build(**options):
        options.setdefault("judge", ScriptedJudge())
        monitors.append(Monitor(**options))
        return monitors[-1]

    yield build
    for monitor in monitors:
        monitor.close(timeout=1.0)
