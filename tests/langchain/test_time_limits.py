"""A time limit of the application that strikes while a handler waits reaches the application."""

import asyncio
import signal
import threading

import pytest
from rag_parts import QUESTION, rag_chain

from langchain_ragaliq import RagaliqCallbackHandler
from ragaliq.testing import ScriptedJudge


class TimeLimitError(Exception):
    """As Celery's SoftTimeLimitExceeded."""


class Held(ScriptedJudge):
    released = threading.Event()

    async def extract_statements(self, query, response):
        await asyncio.to_thread(self.released.wait, 30.0)
        return await super().extract_statements(query, response)


def over(*_):
    raise TimeLimitError


def test_a_time_limit_ends_the_waiting_of_inline_mode_and_the_run_is_counted():
    before = signal.signal(signal.SIGALRM, over)
    handler = RagaliqCallbackHandler(
        judge=Held(), metrics=["faithfulness"], mode="inline", inline_timeout=20.0
    )
    try:
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        with pytest.raises(TimeLimitError):
            rag_chain().invoke(QUESTION, {"callbacks": [handler]})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        Held.released.set()
    assert handler.errors == 0
    assert handler.monitor.close(10.0)
    assert handler.monitor.stats().outcomes == {"evaluated": 1}
