"""With every rule there is, a cap and feedback, in whatever order: the counts add up."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from ragaliq import (
    CaseDraft,
    Monitor,
    OnCondition,
    OnError,
    OnFeedback,
    OnLowScore,
    OnTag,
    Passage,
    Sampling,
)
from ragaliq.testing import ScriptedJudge


def picky(run):
    return len(run.response) > {"Alpha.": 3}[run.response]


RULES = [
    OnError(probability=0.5),
    OnTag("x"),
    OnLowScore(0.5),
    OnCondition(picky, probability=0.3),
    OnFeedback(max_runs=5, max_bytes=3_000),
]
DRAFTS = st.builds(
    CaseDraft,
    id=st.just("a"),
    query=st.just("q"),
    passages=st.sampled_from([(), (Passage("Alpha.", None, 0.1),), (Passage("b" * 500),), "x"]),
    response=st.sampled_from(["Alpha.", "Beta."]),
    tags=st.sampled_from([(), ("x",)]),
    had_errors=st.booleans(),
)


class Accounts(RuleBasedStateMachine):
    tickets = Bundle("tickets")

    @initialize(
        rate=st.sampled_from([0.0, 0.3, 1.0]),
        relevance=st.sampled_from([0.0, 0.5]),
        rules=st.lists(st.sampled_from(RULES), unique_by=id),
        max_per_minute=st.sampled_from([None, 1, 5]),
    )
    def build(self, rate, relevance, rules, max_per_minute):
        self.started = self.open = 0
        self.ended = []
        self.monitor = Monitor(
            judge=ScriptedJudge(),
            sampling=Sampling(
                rate=rate,
                evaluators={"relevance": relevance},
                rules=rules,
                max_per_minute=max_per_minute,
            ),
        )

    @rule(target=tickets)
    def begin(self):
        self.started += 1
        name = f"run-{self.started}"
        ticket = self.monitor.begin(name)
        self.open += ticket is not None
        return name, ticket

    @rule(run=consumes(tickets), draft=DRAFTS)
    def end(self, run, draft):
        name, ticket = run
        if ticket is not None:
            ticket.submit(draft)
            ticket.discard("too late")
            self.open -= 1
            self.ended.append(name)

    @rule(draft=DRAFTS)
    def submit(self, draft):
        self.started += 1
        self.ended.append(f"run-{self.started}")
        self.monitor.submit(draft, run_id=self.ended[-1])

    @rule(number=st.integers(0, 30), value=st.sampled_from([0.0, 1.0, "bad"]))
    def complain(self, number, value):
        self.monitor.feedback(self.ended[number] if number < len(self.ended) else "who", value)

    @rule()
    def flush(self):
        assert self.monitor.flush(10.0)
        stats = self.monitor.stats()
        assert stats.pending == self.open + stats.sampling.get("held", 0)

    @invariant()
    def adds_up(self):
        if hasattr(self, "monitor"):
            stats = self.monitor.stats()
            assert stats.started == self.started == sum(stats.outcomes.values()) + stats.pending
            assert stats.sampling.get("held", 0) <= 5

    def teardown(self):
        if hasattr(self, "monitor"):
            self.monitor.close(10.0)
            stats = self.monitor.stats()
            assert stats.pending == self.open
            assert stats.sampling.get("held", 0) == 0


TestAccounts = Accounts.TestCase
TestAccounts.settings = settings(
    max_examples=15, stateful_step_count=30, deadline=None, print_blob=False
)
