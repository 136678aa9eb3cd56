"""A monitor with a handler, and what the tests call in other threads."""

import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from langchain_ragaliq import RagaliqCallbackHandler, detach
from ragaliq import Monitor
from ragaliq.testing import ScriptedJudge

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent / "scenarios"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from both_ways import guard_of, invoke, mode, stream  # noqa: E402, F401


class Triple(NamedTuple):
    question: str
    contexts: list[str]
    answer: str


class Watch:
    """A handler with a monitor that records what reaches it.

    Attributes:
        may_err: Whether the test makes the handler meet what it cannot handle.

    Args:
        handler: Options of the handler.
        **options: Options of the monitor.
    """

    may_err = False

    def __init__(self, *, handler=None, **options):
        self.results = []
        options.setdefault("judge", ScriptedJudge())
        self.monitor = Monitor(on_result=self.results.append, **options)
        self.handler = RagaliqCallbackHandler(self.monitor, **(handler or {}))

    @property
    def config(self):
        return {"callbacks": [self.handler]}

    @property
    def stats(self):
        assert self.monitor.flush(30)
        stats = self.monitor.stats()
        assert stats.started == sum(stats.outcomes.values()) + stats.pending
        assert sum(stats.incomplete.values()) == stats.outcomes.get("incomplete_run", 0)
        return stats

    @property
    def triples(self):
        """What was evaluated, in the order in which it ended."""
        assert self.monitor.flush(30)
        in_order = sorted(self.results, key=lambda result: result.run.ended_at)
        cases = [result.case for result in in_order]
        return [Triple(case.query, case.context_texts, case.response) for case in cases]

    @property
    def only(self):
        """The single run there was."""
        (triple,) = self.triples
        assert self.stats.started == 1
        return triple

    @property
    def incomplete(self):
        """Why runs were not evaluated, with none evaluated beside them."""
        assert self.triples == []
        return dict(self.stats.incomplete)

    def assert_nothing_left(self):
        assert self.handler.errors == 0 or self.may_err
        assert self.handler.open_runs == 0
        assert self.stats.pending == 0


@pytest.fixture
def new_watch():
    """Make watches; at the end each must have nothing left open and no error."""
    made = []

    def new(**options):
        made.append(Watch(**options))
        return made[-1]

    yield new
    detach()
    for watch in made:
        watch.assert_nothing_left()
        watch.monitor.close(5)


@pytest.fixture
def watch(new_watch):
    return new_watch()
