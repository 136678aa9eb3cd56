"""Watching the process that judges."""

import os
import select
import sys

import pytest

from ragaliq import RAGTestCase

if sys.platform != "linux":
    collect_ignore_glob = ["test_process_*.py"]  # they look into /proc


@pytest.fixture
def child_of():
    """Gives a monitor's running child, or None."""

    def running(monitor):
        child = monitor._scorer._processes[0]._child
        return child if child is not None and child.is_alive else None

    return running


@pytest.fixture
def has_ended():
    """Waits for the end of a process, whoever's child it is."""

    def waited(pid, seconds=10.0):
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return True
        try:
            return bool(select.select([handle], [], [], seconds)[0])
        finally:
            os.close(handle)

    return waited


@pytest.fixture
def claims():
    return RAGTestCase(
        id="claims",
        query="How long do refunds take?",
        context=["Refunds take five days.", "The warehouse is in Leeds."],
        response="Refunds take five days. Parcels travel by zeppelin.",
    )


@pytest.fixture
def judging(monitor_of, claims):
    """A monitor whose child has judged one case, and what was reported."""
    reported = []
    monitor = monitor_of(judge="local", executor="process", on_result=reported.append)
    monitor.submit(claims)
    assert monitor.flush(60.0)
    assert [result.results["faithfulness"].score for result in reported] == [0.5]
    return monitor, reported
