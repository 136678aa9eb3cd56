"""Looking after runs that never end: one timer for all, and nothing kept alive by it."""

from __future__ import annotations

import gc
import threading
import weakref
from threading import Event

from ragaliq import Monitor
from ragaliq.live.lifecycle import Sweeps
from ragaliq.testing import ScriptedJudge


class Timers:
    """What is to be called, in the order in which it was asked for."""

    def __init__(self, *, are_there=True):
        self.are_there = are_there
        self.asked = []

    def call_later(self, delay, callback):
        if self.are_there:
            self.asked.append((delay, callback))
        return self.are_there


class Follower:
    def __init__(self):
        self.swept = 0

    def sweep(self):
        self.swept += 1


def test_many_followers_share_a_timer_and_each_is_swept_once():
    timers, followers = Timers(), [Follower() for _ in range(100)]
    sweeps = Sweeps(timers.call_later)
    assert all(sweeps.add(600.0, each) for each in followers)
    ((delay, sweep),) = timers.asked
    assert delay == 600.0
    sweep()
    sweep()
    assert {each.swept for each in followers} == {1}


def test_who_is_in_more_of_a_hurry_gets_an_earlier_timer():
    timers, patient, hasty = Timers(), Follower(), Follower()
    sweeps = Sweeps(timers.call_later)
    sweeps.add(600.0, patient)
    sweeps.add(1.0, hasty)
    assert [delay for delay, _ in timers.asked] == [600.0, 1.0]
    timers.asked[1][1]()
    assert (patient.swept, hasty.swept) == (1, 1)
    sweeps.add(599.0, patient)
    assert [delay for delay, _ in timers.asked] == [600.0, 1.0, 599.0]


def test_a_timer_keeps_no_follower_alive():
    timers, follower = Timers(), Follower()
    sweeps = Sweeps(timers.call_later)
    sweeps.add(600.0, follower)
    gone = weakref.ref(follower)
    del follower
    gc.collect()
    assert gone() is None
    timers.asked[0][1]()


def test_without_timers_it_says_so():
    follower = Follower()
    sweeps = Sweeps(Timers(are_there=False).call_later)
    assert not sweeps.add(1.0, follower)
    assert not sweeps.add(1.0, follower)


def test_on_a_monitor_it_takes_one_timer_which_keeps_no_thread():
    before, followers, is_there = set(threading.enumerate()), [Follower(), Follower()], Event()
    monitor = Monitor(judge=ScriptedJudge())
    for each in followers:
        assert monitor.sweep_later(600.0, each)
    worker = monitor._engine.worker
    assert worker.call_later(0.0, is_there.set)
    assert is_there.wait(5.0)  # the loop has taken in all that was asked for before
    assert len(worker._thread.loop()._scheduled) == 1
    del monitor, worker
    gc.collect()
    for thread in set(threading.enumerate()) - before:
        thread.join(5.0)
        assert not thread.is_alive()
