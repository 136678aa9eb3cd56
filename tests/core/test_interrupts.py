"""A time limit of the application that strikes inside our code reaches the application."""

import os
import signal
from functools import partial

import pytest

from ragaliq import Monitor, RAGTestCase
from ragaliq.core.interrupts import is_from_signal
from ragaliq.testing import ScriptedJudge

CASE = RAGTestCase(query="q", context=["Alpha is one."], response="Alpha is one.")


class TimeLimitError(Exception):
    """As Celery's SoftTimeLimitExceeded."""


def over(*_):
    raise TimeLimitError


class Limits:
    def over(self, *_):
        raise TimeLimitError


@pytest.fixture(
    params=[over, Limits().over, partial(over, "task")], ids=["def", "method", "partial"]
)
def alarm(request):
    before = signal.signal(signal.SIGUSR2, request.param)
    yield lambda: os.kill(os.getpid(), signal.SIGUSR2)
    signal.signal(signal.SIGUSR2, before)


def test_an_error_of_a_signal_handler_is_told_from_others(alarm):
    with pytest.raises(TimeLimitError) as raised:
        alarm()
    assert is_from_signal(raised.value)
    with pytest.raises(ZeroDivisionError) as raised:
        1 / 0  # noqa: B018 - to raise
    assert not is_from_signal(raised.value)


def test_it_is_raised_from_the_start_of_a_run_and_the_run_counted(alarm, monkeypatch):
    monitor = Monitor(judge=ScriptedJudge())
    monkeypatch.setattr(monitor.sampler, "begin", lambda *_: alarm())
    with pytest.raises(TimeLimitError):
        monitor.submit(CASE)
    stats = monitor.stats()
    assert (stats.started, stats.pending) == (1, 0)
    assert stats.incomplete == {"internal_error": 1}
    monitor.close()


def test_it_is_raised_from_the_end_of_a_run_and_the_run_counted(alarm, monkeypatch):
    monitor = Monitor(judge=ScriptedJudge())
    monkeypatch.setattr(monitor, "enqueue", lambda *_: alarm())
    run = monitor.begin("a")
    with pytest.raises(TimeLimitError):
        run.submit(CASE)
    assert monitor.stats().incomplete == {"interrupted": 1}
    assert monitor.stats().pending == 0
    monitor.close()
