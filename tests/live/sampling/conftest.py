"""A sampler without a judge behind it: its monitor only writes down what reaches it."""

import pytest

from hand_clock import Clock
from ragaliq import Passage, Sampling
from ragaliq.live.run import RunHandle
from ragaliq.live.sampler import Sampler
from ragaliq.live.stats import RunCounters
from ragaliq.telemetry.content import ContentPolicy
from ragaliq.telemetry.emit import Emitter
from run_logs import ended_run


class RecordingMonitor:
    """Takes runs as a monitor does, and keeps them."""

    inline = None
    emitter = Emitter(ContentPolicy())

    def __init__(self, sampler):
        self.sampler, self.counters, self.taken = sampler, RunCounters(), []

    def enqueue(self, run, sampling):
        run.sampling = sampling
        self.taken.append(run.info())
        return True


class Traffic:
    """Runs that go through a sampler one after the other.

    Args:
        sampling: What the application says.
        metrics: What is measured.
    """

    def __init__(self, sampling, *, metrics=("faithfulness",)):
        self.clock = Clock()
        self.sampler = Sampler(sampling, metrics=metrics, clock=self.clock)
        self.monitor = RecordingMonitor(self.sampler)

    def run(self, run_id, *, pipeline="", target=None, passages=(), **facts):
        """One run; whether it was queued."""
        draw = self.sampler.begin(run_id, pipeline)
        if draw is None:
            self.monitor.counters.sampled_out()
            return False
        run = RunHandle(self.monitor, run_id, draw, pipeline=pipeline)
        return run.submit(ended_run("q", passages, "r", **facts), target=target)

    def feedback(self, name, *, value):
        """What a user says; whether a run is evaluated for it."""
        chosen = self.sampler.feedback(name, value)
        return [self.monitor.enqueue(*each) for each in chosen] != []

    @property
    def taken(self):
        return {run.run_id: run for run in self.monitor.taken}

    @property
    def sampled_out(self):
        return self.monitor.counters.snapshot().outcomes.get("sampled_out", 0)


@pytest.fixture
def traffic():
    def build(measured=("faithfulness",), /, **sampling):
        return Traffic(Sampling(**sampling), metrics=measured)

    return build


@pytest.fixture
def scored():
    """Passages with these scores."""
    return lambda *scores: [Passage(f"text {n}", None, s) for n, s in enumerate(scores)]
