"""A sampler without a monitor around it: its engine only writes down what reaches it."""

from __future__ import annotations

import pytest

from ragaliq import CaseDraft, Passage, Sampling
from ragaliq.live.run import Submission
from ragaliq.live.sampling.sampler import Sampler
from ragaliq.live.stats import Tally


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class RecordingEngine:
    """Takes runs as an engine does, and keeps them."""

    def __init__(self):
        self.tally = Tally()
        self.taken = []

    def submit(self, submission):
        self.taken.append(submission.job().run)
        return True


class Traffic:
    """Runs that go through a sampler one after the other.

    Args:
        sampling: What the application says.
        metrics: What is measured.
    """

    def __init__(self, sampling, *, metrics=("faithfulness",)):
        self.clock = Clock()
        self.engine = RecordingEngine()
        self.sampler = Sampler(sampling, general=1.0, metrics=metrics, clock=self.clock)

    def run(self, run_id, *, pipeline="", target=None, **facts):
        """One run; whether it was queued."""
        entry = self.engine.tally.start()
        decision = self.sampler.begin(run_id, pipeline)
        if decision is None:
            entry.end("sampled_out")
            return False
        facts.setdefault("passages", ())
        draft = CaseDraft(id=run_id, query="q", response="r", **facts)
        submission = Submission(
            case=draft,
            run_id=run_id,
            pipeline=pipeline,
            framework="",
            entry=entry,
            target=target,
            session_id=None,
            response_id=None,
            ended_at=0.0,
        )
        return decision.settle(submission, self.engine)

    @property
    def taken(self):
        return {run.run_id: run for run in self.engine.taken}

    @property
    def sampled_out(self):
        return self.engine.tally.snapshot().outcomes.get("sampled_out", 0)


@pytest.fixture
def traffic():
    def build(metrics=("faithfulness",), **sampling):
        return Traffic(Sampling(**sampling), metrics=metrics)

    return build


@pytest.fixture
def scored():
    """Passages with these scores."""
    return lambda *scores: [Passage(f"text {n}", None, s) for n, s in enumerate(scores)]
