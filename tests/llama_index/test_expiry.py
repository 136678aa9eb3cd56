"""Runs that never end are given up, also in a process that has become idle."""

from __future__ import annotations

from llama_index.evaluation.ragaliq.run_state import Run, RunRegistry


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Ticket:
    def __init__(self):
        self.reasons = []

    def discard(self, reason):
        self.reasons.append(reason)


def test_runs_that_are_too_old_are_given_up_by_a_timer_when_no_other_starts():
    clock, timers = Clock(), []

    def sweep_later(delay, registry):
        timers.append((delay, registry))
        return True

    runs = RunRegistry(max_runs=10, max_age=600.0, clock=clock, sweep_later=sweep_later)
    old, young = (Run(name, Ticket(), is_workflow=False) for name in ("old", "young"))
    runs.open(old)
    clock.now = 300.0
    runs.open(young)
    ((delay, registry),) = timers
    assert delay == 600.0

    clock.now = 601.0
    registry.sweep()
    assert (old.ticket.reasons, young.ticket.reasons) == (["expired"], [])

    assert timers[1][0] == 299.0
    clock.now = 901.0
    timers[1][1].sweep()
    assert young.ticket.reasons == ["expired"]
    assert len(timers) == 2


def test_a_run_that_is_opened_while_the_last_one_is_given_up_is_given_up_too():
    clock, timers = Clock(), []

    def sweep_later(delay, registry):
        timers.append(delay)
        return True

    runs = RunRegistry(max_runs=10, max_age=600.0, clock=clock, sweep_later=sweep_later)
    young = Run("young", Ticket(), is_workflow=False)

    class TicketWithSuccessor(Ticket):
        def discard(self, reason):
            super().discard(reason)
            runs.open(young)

    runs.open(Run("old", TicketWithSuccessor(), is_workflow=False))
    clock.now = 601.0
    runs.sweep()
    assert timers == [600.0, 600.0]


def test_a_run_is_swept_that_is_opened_just_after_a_sweep_found_none():
    clock, timers = Clock(), []

    def sweep_later(delay, registry):
        timers.append(delay)
        if len(timers) == 1:
            registry.sweep()  # on another thread, between the question for it and the answer
        return True

    runs = RunRegistry(max_runs=10, max_age=600.0, clock=clock, sweep_later=sweep_later)
    runs.open(Run("young", Ticket(), is_workflow=False))
    assert 600.0 in timers[1:]
