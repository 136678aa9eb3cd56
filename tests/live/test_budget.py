"""What judging may cost: never more than the limit and what is being judged at that moment."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hand_clock import Clock
from ragaliq import Budget, ConfigurationError, JudgeAPIError, JudgeUsage
from ragaliq.scoring.limits.budget import BudgetLedger
from ragaliq.scoring.limits.windows import SLOTS, Window
from ragaliq.testing import ScriptedJudge

HOUR, DAY = 3600.0, 86_400.0


def ledger(**limits):
    clock = Clock(1_000_000.0)
    return BudgetLedger(Budget(**limits), clock=clock), clock


def usd(amount):
    return JudgeUsage(requests=1, cost_usd=amount)


def reserve(book):
    """What `reserve` gives, which never waits in one process."""
    with pytest.raises(StopIteration) as done:
        book.reserve().send(None)
    return done.value.value


def spend(book, usage):
    reserved = reserve(book)
    if reserved is not None:
        book.settle(reserved, usage)
    return reserved is not None


@pytest.mark.parametrize(("limit", "length"), [("tokens_per_hour", HOUR), ("tokens_per_day", DAY)])
def test_what_was_spent_leaves_the_window_when_it_is_old_and_not_before(limit, length):
    book, clock = ledger(**{limit: 100})
    assert spend(book, JudgeUsage(requests=1, input_tokens=60, output_tokens=40))
    clock.now += length - 1
    assert not spend(book, JudgeUsage(requests=1))
    clock.now += 1 + length / 60
    assert spend(book, JudgeUsage(requests=1))


def test_every_limit_must_hold():
    book, clock = ledger(usd_per_hour=1.0, usd_per_day=2.5)
    for _ in range(2):
        assert spend(book, usd(1.0))
        assert not spend(book, usd(1.0))
        clock.now += 2 * HOUR
    assert not spend(book, usd(1.0))
    assert book.lines()["usd_per_hour"].reserved == 0
    clock.now += DAY
    assert spend(book, usd(1.0))


def test_runs_that_are_being_judged_are_reserved_for():
    book, _ = ledger(usd_per_hour=1.0)
    spend(book, usd(0.4))
    first = reserve(book)
    assert first is not None
    assert reserve(book) is None
    book.settle(first, usd(0.0))
    assert reserve(book) is not None


def test_a_run_dearer_than_the_limit_keeps_others_out_no_longer_than_the_window():
    book, clock = ledger(tokens_per_hour=10)
    assert spend(book, JudgeUsage(requests=1, input_tokens=500))
    assert not spend(book, JudgeUsage(requests=1, input_tokens=1))
    clock.now += 2 * HOUR
    assert spend(book, JudgeUsage(requests=1, input_tokens=1))


def test_without_any_known_price_a_limit_in_dollars_counts_as_used_up(caplog):
    book, clock = ledger(usd_per_hour=1.0)
    assert spend(book, usd(None))
    assert not spend(book, usd(None))
    clock.now += 2 * HOUR
    assert spend(book, usd(None))
    assert caplog.text.count("limit tokens instead") == 1


def test_a_run_without_a_price_is_charged_like_the_dearest_recent_one():
    book, _ = ledger(usd_per_hour=1.0)
    for cost in (0.1, 0.4, None):
        assert spend(book, usd(cost))
    assert book.lines()["usd_per_hour"].spent == pytest.approx(0.9, abs=0.03)
    assert not spend(book, usd(None))


@given(
    st.lists(st.tuples(st.floats(0, 50), st.floats(0, 900)), max_size=60),
    st.integers(1, 4),
)
def test_no_hour_costs_more_than_the_limit_and_the_runs_at_the_judge(runs, concurrency):
    book, clock = ledger(usd_per_hour=100.0)
    spent, open_runs = [], []

    def settle():
        reserved, cost = open_runs.pop(0)
        book.settle(reserved, usd(cost))
        spent.append((clock.now, cost, reserved.amounts["usd_per_hour"] / 1e6))

    for cost, seconds in runs:
        clock.now += seconds
        if len(open_runs) == concurrency:
            settle()
        if (reserved := reserve(book)) is not None:
            open_runs.append((reserved, cost))
        recent = [(c, r) for at, c, r in spent if clock.now - at < HOUR]
        beyond = sorted(max(0.0, c - r) for c, r in recent)[-concurrency:]
        # A first run into an empty window is let in, however little is left for it.
        assert sum(c for c, _ in recent) <= 100.0 + sum(beyond) + 1e-4


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"tokens_per_hour": -1},
        {"tokens_per_hour": 1.5},
        {"usd_per_hour": float("nan")},
        {"usd_per_hour": 1e300},
        {"usd_per_day": 1.0, "storage": "nowhere://user:secret@host"},
    ],
)
def test_wrong_limits_are_refused_and_no_password_is_shown(wrong):
    with pytest.raises(ConfigurationError, match=r"[Bb]udget") as refused:
        Budget(**wrong)
    assert "secret" not in str(refused.value)


class TestMonitor:
    def test_runs_over_budget_cost_nothing_and_are_counted(self, monitor_of, case):
        judge = ScriptedJudge(usage=JudgeUsage(requests=1, input_tokens=100, cost_usd=0.01))
        monitor = monitor_of(
            judge=judge,
            metrics=["relevance"],
            budget=Budget(tokens_per_day=350),
            concurrency=1,
        )
        for _ in range(10):
            monitor.submit(case)
        assert monitor.flush(5.0)
        stats = monitor.stats()
        assert stats.outcomes == {"evaluated": 3, "over_budget": 7}
        assert judge.call_counts["evaluate_relevance"] == 3
        assert stats.usage.total_tokens == stats.budget["tokens_per_day"].spent == 300
        assert stats.budget["tokens_per_day"].left == 50

    def test_what_failed_half_way_is_paid_for_too(self, monitor_of, case):
        judge = ScriptedJudge(
            usage=JudgeUsage(requests=1, input_tokens=100),
            failures={"verify_claims": JudgeAPIError("down")},
        )
        monitor = monitor_of(
            judge=judge, metrics=["faithfulness"], budget=Budget(tokens_per_day=1000)
        )
        monitor.submit(case)
        assert monitor.flush(5.0)
        assert monitor.stats().budget["tokens_per_day"].spent == 100

    def test_what_a_run_cost_before_it_was_cut_off_is_paid_for(self, monitor_of, case):
        entered = asyncio.Event()

        class Stuck(ScriptedJudge):
            async def verify_claims(self, claims, context):
                entered.set()
                await asyncio.Event().wait()

        monitor = monitor_of(
            judge=Stuck(usage=JudgeUsage(requests=1, input_tokens=100)),
            metrics=["faithfulness"],
            budget=Budget(tokens_per_day=1000),
        )
        monitor.submit(case)
        while not entered.is_set():
            asyncio.run(asyncio.sleep(0.001))
        assert not monitor.close(0.0)
        line = monitor.stats().budget["tokens_per_day"]
        assert (line.spent, line.reserved) == (100, 0)

    def test_the_embedded_judge_is_free(self, monitor_of, case):
        monitor = monitor_of(judge="local", budget=Budget(usd_per_day=0.01))
        for _ in range(20):
            monitor.submit(case)
        assert monitor.flush(10.0)
        assert monitor.stats().outcomes == {"evaluated": 20}


# A window never counts too little, and says when there is room.


LIMIT, LENGTH = 100, 60.0

STEPS = st.lists(
    st.tuples(st.floats(0, 20), st.integers(1, 60), st.floats(0, 1)), min_size=1, max_size=60
)


@given(STEPS)
def test_no_stretch_of_its_length_holds_more_than_the_limit(steps):
    window, now, taken = Window(LIMIT, LENGTH), 1000.0, []
    for seconds, amount, given_back in steps:
        now += seconds
        if window.wait(amount, now) == 0:
            window.spend(amount, now)
            taken.append([now, amount])
        elif taken:
            at, before = taken[-1]
            back = min(before, int(amount * given_back))
            window.spend(-back, at)
            if window.slot(at) + LENGTH > now:
                taken[-1][1] -= back
        assert sum(spent for at, spent in taken if at > now - LENGTH) <= LIMIT


@given(STEPS)
def test_when_it_says_there_will_be_room_there_is(steps):
    window, now = Window(LIMIT, LENGTH), 1000.0
    for seconds, amount, _ in steps:
        now += seconds
        if (wait := window.wait(amount, now)) > 0:
            assert wait <= LENGTH * (1 + 1 / SLOTS) + 0.001
            now += wait + 1e-6
            assert window.wait(amount, now) == 0
        window.spend(amount, now)


def test_more_than_was_counted_cannot_be_given_back():
    window = Window(LIMIT, LENGTH)
    window.spend(30, 1000.0)
    window.spend(-50, 1000.0)
    window.spend(-50, 1030.0)
    assert window.spent == 0


def test_nothing_costs_nothing_even_when_the_limit_is_exceeded():
    window = Window(LIMIT, LENGTH)
    window.spend(500, 1000.0)
    assert window.wait(0, 1000.0) == 0
    assert window.wait(1, 1000.0) > 0
