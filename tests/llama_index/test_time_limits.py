"""A time limit of the application that strikes while a handler waits ends the waiting.

LlamaIndex drops every exception that a handler raises, so the limit itself does not arrive.
"""

import asyncio
import signal
import threading
import time

import pytest

from llama_index.evaluation.ragaliq import attach
from ragaliq import Monitor
from ragaliq.testing import ScriptedJudge

QUESTION = "How long do refunds take?"


class TimeLimitError(Exception):
    """As Celery's SoftTimeLimitExceeded."""


class Held(ScriptedJudge):
    def __init__(self):
        super().__init__()
        self.released = threading.Event()

    async def extract_statements(self, query, response):
        await asyncio.to_thread(self.released.wait, 30.0)
        return await super().extract_statements(query, response)


def over(*_):
    raise TimeLimitError


@pytest.fixture
def alarm():
    before = signal.signal(signal.SIGALRM, over)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)


def test_a_time_limit_ends_the_waiting_of_inline_mode_and_the_run_is_counted(engine, alarm):
    judge = Held()
    monitor = Monitor(judge=judge, metrics=["faithfulness"], mode="inline", inline_timeout=20.0)
    attach(monitor)
    alarm(1.0)
    began = time.monotonic()
    try:
        assert str(engine().query(QUESTION)) == "Refunds take five days."
        assert time.monotonic() - began < 10.0
    finally:
        judge.released.set()
        assert monitor.close(10.0)
    assert monitor.stats().outcomes == {"evaluated": 1}
