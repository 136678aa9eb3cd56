"""Whatever is done to a monitor, in whatever order and from however many threads, it adds up."""

import asyncio
import itertools
import threading

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
)

from ragaliq import (
    Budget,
    CircuitBreaker,
    JudgeAPIError,
    JudgeRefusalError,
    JudgeUsage,
    Monitor,
    OnCondition,
    OnError,
    OnFeedback,
    OnLowScore,
    OnTag,
    Passage,
    RAGTestCase,
    Sampling,
)
from ragaliq.testing import ScriptedJudge
from run_logs import ended_run

CASES = [
    RAGTestCase(query="q", context=["Alpha is one."], response="Alpha is one."),
    RAGTestCase(query="q", response="Alpha is one."),
]


class OutOfBounds(BaseException):
    """Not even an Exception."""


MOODS = [
    None,
    JudgeRefusalError,
    JudgeAPIError,
    ValueError,
    OutOfBounds,
    SystemExit,
    asyncio.CancelledError,
]


class Moody(ScriptedJudge):
    """Replies or raises, in turn."""

    def __init__(self, moods):
        super().__init__(usage=JudgeUsage(requests=1, input_tokens=10))
        self.moods = itertools.cycle(moods)

    async def extract_statements(self, query, response):
        await asyncio.sleep(0)
        if (mood := next(self.moods)) is not None:
            raise mood
        return await super().extract_statements(query, response)


def together(*calls):
    """Make calls at the same time, each in a thread of its own; returns what they return."""
    barrier, results = threading.Barrier(len(calls)), []

    def make(call):
        barrier.wait(5.0)
        results.append(call())

    threads = [threading.Thread(target=make, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10.0)
    return results


def picky(run):
    return len(run.response) > {"Alpha is one.": 3}[run.response]


RULES = [
    OnError(probability=0.5),
    OnTag("x"),
    OnLowScore(0.5),
    OnCondition(picky, probability=0.3),
    OnFeedback(max_runs=5, max_bytes=3_000),
]
LOGS = st.builds(
    ended_run,
    query=st.just("q"),
    passages=st.sampled_from([(), (Passage("Alpha.", None, 0.1),), ("b" * 500,), ([3],)]),
    response=st.sampled_from(["Alpha is one.", "Beta."]),
    tags=st.sampled_from([(), ("x",)]),
    had_errors=st.booleans(),
)
SAMPLINGS = st.builds(
    Sampling,
    rate=st.sampled_from([0.0, 0.3, 1.0]),
    metrics=st.sampled_from([{}, {"faithfulness": 0.5}]),
    rules=st.lists(st.sampled_from(RULES), unique_by=id),
    max_per_minute=st.sampled_from([None, 1, 5]),
)


class Accounts(RuleBasedStateMachine):
    handles = Bundle("handles")

    @initialize(
        moods=st.lists(st.sampled_from(MOODS), min_size=1, max_size=4),
        sampling=st.just(Sampling()) | SAMPLINGS,
        bounds=st.fixed_dictionaries(
            {
                "concurrency": st.integers(1, 3),
                "max_queue": st.integers(1, 8),
                "max_queue_bytes": st.sampled_from([400, 2**20]),
                "breaker": st.sampled_from([None, CircuitBreaker(failures=2, pause=0.001)]),
                "budget": st.sampled_from([None, Budget(tokens_per_hour=60)]),
            }
        ),
    )
    def build(self, moods, sampling, bounds):
        self.started = self.open = self.number = 0
        self.reported, self.bytes = [], bounds["max_queue_bytes"]
        self.monitor = Monitor(
            judge=Moody(moods),
            metrics=["faithfulness"],
            sampling=sampling,
            on_result=self.reported.append,
            **bounds,
        )

    @property
    def held(self):
        return self.monitor.stats().sampling.get("held", 0)

    def name(self):
        self.number += 1
        return f"run-{self.number}"

    @rule(target=handles)
    def begin(self):
        self.started += 1
        handle = self.monitor.begin(self.name())
        self.open += handle is not None
        return handle

    @rule(handle=consumes(handles), case=st.sampled_from([*CASES, None, "no case"]) | LOGS)
    def end(self, handle, case):
        if handle is not None:
            handle.submit(case)
            handle.discard("too late")
            assert not handle.submit(case)
            self.open -= 1

    @rule(handle=consumes(handles), case=st.sampled_from(CASES))
    def end_at_once_from_many_threads(self, handle, case):
        if handle is not None:
            calls = [lambda: handle.submit(case), lambda: handle.discard("raced")] * 3
            assert sum(map(bool, together(*calls))) <= 1
            self.open -= 1

    @rule(handle=consumes(handles))
    def discard(self, handle):
        if handle is not None:
            handle.discard("truncated")
            self.open -= 1

    @rule(case=st.sampled_from([*CASES, None]) | LOGS)
    def submit(self, case):
        self.started += 1
        self.monitor.submit(case, run_id=self.name())

    @rule(number=st.integers(0, 30), value=st.sampled_from([0.0, 1.0, "bad"]))
    def complain(self, number, value):
        self.monitor.feedback(f"run-{number}", value)

    def submissions(self, case):
        self.started += 6
        names = [self.name() for _ in range(6)]
        return [lambda name=name: self.monitor.submit(case, run_id=name) for name in names]

    @rule(case=st.sampled_from(CASES))
    def submit_from_many_threads(self, case):
        together(*self.submissions(case))

    @precondition(lambda self: self.number > 20)
    @rule(case=st.sampled_from(CASES))
    def close_while_many_threads_submit(self, case):
        together(*self.submissions(case), lambda: self.monitor.close(0.0))

    @rule()
    def flush(self):
        assert self.monitor.flush(10.0)
        assert self.monitor.stats().pending == self.open + self.held

    @precondition(lambda self: self.number > 20)
    @rule(timeout=st.sampled_from([0.0, 5.0]))
    def close(self, timeout):
        self.monitor.close(timeout)
        assert self.monitor.stats().pending == self.open

    @invariant()
    def adds_up(self):
        if hasattr(self, "monitor"):
            stats = self.monitor.stats()
            assert stats.started == self.started == sum(stats.outcomes.values()) + stats.pending
            assert stats.pending >= self.open
            assert stats.queued_bytes <= self.bytes
            assert stats.sampling.get("held", 0) <= 5
            assert sum(stats.incomplete.values()) == stats.outcomes.get("incomplete_run", 0)

    def teardown(self):
        if hasattr(self, "monitor"):
            self.monitor.close(10.0)
            stats = self.monitor.stats()
            judged = stats.outcomes.get("evaluated", 0) + stats.outcomes.get("no_context", 0)
            assert sum(stats.evaluations.get("faithfulness", {}).values()) == judged
            assert len(self.reported) <= judged  # a close may come between count and report
            assert (stats.pending, self.held) == (self.open, 0)


TestAccounts = Accounts.TestCase
TestAccounts.settings = settings(
    max_examples=25, stateful_step_count=20, deadline=None, print_blob=False
)
