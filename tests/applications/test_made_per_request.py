"""Line 13: handlers, guards and monitors that are made for each request share what costs."""

import gc
import os
import subprocess
import threading
import time

import pytest
from langchain_parts import REFUNDS, Finding, model, rag
from rag_parts import QUESTION

from langchain_ragaliq import RagaliqCallbackHandler, RagaliqGuard
from ragaliq import Monitor, RAGTestCase
from ragaliq.testing import ScriptedJudge

CASE = RAGTestCase(query="q", context=["Alpha is one."], response="Alpha is one.")


@pytest.fixture
def threads():
    """The threads that were started since, once those that end have ended."""
    gc.collect()
    before = set(threading.enumerate())

    def since(expected):
        gc.collect()
        started = set(threading.enumerate()) - before
        for thread in started if not expected else ():
            thread.join(5.0)
        return sorted(t.name for t in started if t.is_alive())

    return since


def children():
    found = subprocess.run(
        ["pgrep", "-P", str(os.getpid())], capture_output=True, text=True, check=False
    )
    return set(found.stdout.split())


def test_forty_requests_take_one_thread_and_each_counts_for_itself(threads):
    judge, chain = ScriptedJudge(), rag(Finding(), model(REFUNDS))
    handlers, guards = [], []
    for _ in range(20):
        handlers.append(RagaliqCallbackHandler(judge=judge, metrics=["faithfulness"]))
        chain.invoke(QUESTION, {"callbacks": [handlers[-1]]})
        guards.append(RagaliqGuard(chain, judge=judge))
        guards[-1].invoke(QUESTION)
    monitors = [each.monitor for each in (*handlers, *(guard.guard for guard in guards))]
    assert all(monitor.flush(10.0) for monitor in monitors)
    assert [each.stats().outcomes for each in monitors] == [{"evaluated": 1}] * 40
    assert threads(["ragaliq-worker"]).count("ragaliq-worker") <= 1
    del monitors, handlers, guards
    assert set(threads(["ragaliq-worker"])) <= {"ragaliq-worker", "ragaliq-clock"}


def test_the_embedded_judge_of_equal_monitors_takes_one_process():
    before = children()
    monitors = [Monitor(judge="local", metrics=["faithfulness"], niceness=4) for _ in range(5)]
    for monitor in monitors:
        monitor.submit(CASE)
        assert monitor.flush(60.0)
    assert len(children() - before) == 1
    assert all(monitor.stats().outcomes == {"evaluated": 1} for monitor in monitors)
    for monitor in monitors:
        monitor.close(5.0)
    while children() - before:
        time.sleep(0.01)
