"""Applications as people write them, one file for each line of the list they were collected in.

A file's number is that of its line. What has no number came later.
"""

import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
for folder in (TESTS / "applications", TESTS / "langchain", TESTS / "records"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from both_ways import guard_of, invoke, mode, stream  # noqa: E402, F401

from langchain_ragaliq import RagaliqCallbackHandler  # noqa: E402
from llama_index.evaluation.ragaliq import attach, detach  # noqa: E402
from ragaliq import Monitor  # noqa: E402
from ragaliq.testing import ScriptedJudge  # noqa: E402
from recording_monitor import RecordingMonitor  # noqa: E402


class Watch:
    def __init__(self):
        self.results = []
        self.monitor = Monitor(judge=ScriptedJudge(), on_result=self.results.append)
        self.handler = RagaliqCallbackHandler(self.monitor)
        self.config = {"callbacks": [self.handler]}

    @property
    def cases(self):
        assert self.monitor.flush(30)
        assert self.handler.errors == 0
        return [e.case for e in sorted(self.results, key=lambda e: e.run.ended_at)]

    @property
    def only(self):
        (case,) = self.cases
        return case

    @property
    def contexts(self):
        return [case.context_texts for case in self.cases]


@pytest.fixture
def watch():
    made = Watch()
    yield made
    made.monitor.close(5)


@pytest.fixture
def runs(loop_of_synchronous_calls):
    """A monitor that is attached to LlamaIndex."""
    monitor = RecordingMonitor()
    handler = attach(monitor)
    yield monitor
    assert (handler.errors, handler.runs_in_progress) == (0, 0)
    detach()
    monitor.close(1.0)
