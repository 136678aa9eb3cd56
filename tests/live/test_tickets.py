"""A ticket that nobody ended is counted when it is let go."""

import gc
import os
import threading
import weakref

import pytest

from ragaliq import Monitor
from ragaliq.testing import ScriptedJudge


class HoldingItself:
    def __init__(self, ticket):
        self.ticket = ticket
        self.itself = self


@pytest.mark.parametrize("closed", [False, True])
def test_a_ticket_that_is_let_go_is_counted_abandoned(monitor_of, closed):
    monitor = monitor_of()
    ticket = monitor.begin("a")
    assert monitor.stats().pending == 1
    if closed:
        monitor.close(1.0)
    del ticket
    assert monitor.stats().incomplete == {"abandoned": 1}
    assert monitor.stats().pending == 0


def test_also_when_the_garbage_collector_finds_it(monitor_of):
    monitor = monitor_of()
    HoldingItself(monitor.begin("a"))
    gc.collect()
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


# Looking after runs that never end: one timer for all, and nothing kept alive by it.


class Follower:
    def __init__(self):
        self.swept = []
        self.is_swept = threading.Event()

    def sweep(self):
        self.swept.append(threading.current_thread())
        self.is_swept.set()


def test_the_soonest_request_sweeps_every_follower_once_on_one_thread(monitor_of):
    monitor, followers = monitor_of(), [Follower() for _ in range(100)]
    assert all(monitor.sweep_later(600.0, each) for each in followers)
    assert monitor.sweep_later(0.05, followers[0])
    for each in followers:
        assert each.is_swept.wait(5.0)
    again = Follower()
    assert monitor.sweep_later(0.01, again)
    assert again.is_swept.wait(5.0)
    assert {len(each.swept) for each in followers} == {1}
    assert len({each.swept[0] for each in [*followers, again]}) == 1


def test_a_timer_keeps_neither_follower_nor_thread():
    before, follower = set(threading.enumerate()), Follower()
    monitor = Monitor(judge=ScriptedJudge())
    assert monitor.sweep_later(600.0, follower)
    gone = weakref.ref(follower)
    del follower
    gc.collect()
    assert gone() is None
    del monitor
    gc.collect()
    for thread in set(threading.enumerate()) - before:
        thread.join(5.0)
        assert not thread.is_alive()


@pytest.mark.parametrize("options", [{"enabled": False}, {}])
def test_a_monitor_that_is_off_or_closed_says_that_nothing_will_be_swept(monitor_of, options):
    monitor = monitor_of(**options)
    monitor.close()
    assert not monitor.sweep_later(1.0, Follower())
    assert not monitor.sweep_later(1.0, Follower())
