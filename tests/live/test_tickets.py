"""A ticket that nobody ended is counted when it is let go."""

from __future__ import annotations

import gc
import os

import pytest

from ragaliq.testing import ScriptedJudge


class HoldingItself:
    def __init__(self, ticket):
        self.ticket = ticket
        self.itself = self


def test_a_ticket_that_is_let_go_is_counted_abandoned(monitor_of):
    monitor = monitor_of()
    ticket = monitor.begin("a")
    assert monitor.stats().pending == 1
    del ticket
    assert monitor.stats().incomplete == {"abandoned": 1}
    assert monitor.stats().pending == 0


def test_also_when_the_garbage_collector_finds_it(monitor_of):
    monitor = monitor_of()
    HoldingItself(monitor.begin("a"))
    gc.collect()
    assert monitor.stats().incomplete == {"abandoned": 1}


def test_also_after_the_monitor_was_closed(monitor_of):
    monitor = monitor_of()
    ticket = monitor.begin("a")
    monitor.close(1.0)
    del ticket
    assert monitor.stats().incomplete == {"abandoned": 1}


@pytest.mark.parametrize("end", ["submit", "discard", "withdraw"])
def test_one_that_has_ended_is_not(monitor_of, case, end):
    monitor = monitor_of(judge=ScriptedJudge())
    ticket = monitor.begin("a")
    given = {"submit": (case,), "discard": ("errored",), "withdraw": ()}[end]
    getattr(ticket, end)(*given)
    del ticket
    assert monitor.flush(20)
    stats = monitor.stats()
    assert "abandoned" not in stats.incomplete
    assert (stats.pending, stats.started) == (0, end != "withdraw")


def test_what_a_forked_child_lets_go_of_is_its_parents(monitor_of, monkeypatch):
    monitor = monitor_of()
    ticket, parent = monitor.begin("a"), os.getpid()
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: parent + 1)
        del ticket
    assert monitor.stats().outcomes == {}
