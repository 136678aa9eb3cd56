"""Monitors made for each request: what costs is shared by its own description, counts are not."""

import gc
import threading
import time
from functools import partial

import pytest

from ragaliq import (
    Budget,
    CircuitBreaker,
    JudgeAPIError,
    JudgeUsage,
    Monitor,
    OnFeedback,
    RAGTestCase,
    Sampling,
)
from ragaliq.testing import ScriptedJudge

CASE = RAGTestCase(query="q", context=["Alpha is one."], response="Alpha is one.")


def outcomes_of_three(make):
    """The outcomes of one run each of three monitors, of which each is gone before the next."""
    outcomes = []
    for _ in range(3):
        monitor = make()
        monitor.submit(CASE)
        assert monitor.flush(10.0)
        outcomes.append(monitor.stats().outcomes)
        del monitor
        gc.collect()
    return outcomes


def test_each_counts_for_itself(monitor_of):
    judge = ScriptedJudge()
    assert outcomes_of_three(partial(Monitor, judge=judge)) == [{"evaluated": 1}] * 3


def test_equal_budgets_are_one_budget_of_the_process():
    judge = ScriptedJudge(usage=JudgeUsage(requests=1, input_tokens=100))
    make = partial(Monitor, judge=judge, metrics=["relevance"])
    found = outcomes_of_three(lambda: make(budget=Budget(tokens_per_day=150)))
    assert found == [{"evaluated": 1}, {"over_budget": 1}, {"over_budget": 1}]
    make(budget=Budget(tokens_per_day=150)).close()


def test_a_budget_begins_anew_when_the_last_monitor_that_has_it_is_closed(monitor_of):
    judge = ScriptedJudge(usage=JudgeUsage(requests=1, input_tokens=100))
    for _ in range(2):
        with monitor_of(judge=judge, metrics=["relevance"], budget=Budget(tokens_per_day=10)) as m:
            m.submit(CASE)
            assert m.flush(10.0)
            assert m.stats().outcomes == {"evaluated": 1}


def test_a_judge_that_fails_is_left_alone_by_all_its_monitors():
    judge = ScriptedJudge(failures={"evaluate_relevance": JudgeAPIError("down")})
    make = partial(Monitor, judge=judge, metrics=["relevance"], breaker=CircuitBreaker(failures=2))
    outcomes_of_three(make)
    assert judge.call_counts["evaluate_relevance"] == 2
    assert make().stats().breaker == "open"
    make().close()


def test_together_they_take_no_more_than_one_may(held):
    make = partial(Monitor, judge=held, metrics=["relevance"], concurrency=1, max_queue=2)
    monitors = [make() for _ in range(5)]
    assert monitors[0].submit(CASE)
    assert held.entered.wait(10.0)
    taken = [monitor.submit(CASE) for monitor in monitors[1:]]
    assert taken == [True, True, False, False]
    held.released.set()
    assert all(monitor.flush(10.0) for monitor in monitors)
    assert [each.stats().outcomes for each in monitors[3:]] == [{"queue_full": 1}] * 2
    for monitor in monitors:
        monitor.close()


def test_feedback_reaches_the_run_whichever_monitor_hears_of_it():
    sampling, judge = Sampling(rate=0.0, rules=[OnFeedback()]), ScriptedJudge()
    first, second = (Monitor(judge=judge, sampling=sampling) for _ in range(2))
    first.submit(CASE, run_id="a")
    assert second.feedback("a", value=False)
    assert first.flush(10.0)
    assert first.stats().outcomes == {"evaluated": 1}
    first.close()
    second.close()


def test_closing_one_drops_its_own_runs_and_the_others_go_on(monitor_of, held):
    leaving, staying = (monitor_of(judge=held, concurrency=1) for _ in range(2))
    for monitor in (staying, leaving, staying):
        monitor.submit(CASE)
    assert not leaving.close(0.0)
    assert not leaving.submit(CASE)
    assert leaving.stats().outcomes == {"shutdown": 2}
    held.released.set()
    assert staying.submit(CASE)
    assert staying.close(10.0)
    assert staying.stats().outcomes == {"evaluated": 3}


def test_runs_of_a_monitor_that_is_gone_are_judged_and_reported(held):
    seen = []
    gone = Monitor(judge=held, on_result=seen.append)
    gone.submit(CASE, run_id="left")
    counts = gone.counters
    del gone
    gc.collect()
    held.released.set()
    until = time.monotonic() + 10.0
    while counts.snapshot().pending and time.monotonic() < until:
        time.sleep(0.01)
    assert counts.snapshot().outcomes == {"evaluated": 1}
    while not seen and time.monotonic() < until:
        time.sleep(0.01)
    assert [each.run.run_id for each in seen] == ["left"]


def test_a_callback_that_evaluates_with_another_monitor_of_the_judge_does_not_wait_for_itself(
    monitor_of,
):
    judge, scores = ScriptedJudge(), []

    def again(result):
        scores.append(other.evaluate(CASE, timeout=5.0).results["faithfulness"].score)

    other = monitor_of(judge=judge, metrics=["faithfulness"])
    monitor = monitor_of(judge=judge, metrics=["faithfulness"], concurrency=1, on_result=again)
    for _ in range(3):
        monitor.submit(CASE)
    assert monitor.flush(10.0)
    assert scores == [1.0] * 3
    assert monitor.stats().callback_timeouts == 0


def test_making_one_starts_no_thread(monitor_of, tmp_path):
    before = threading.active_count()
    for _ in range(50):
        monitor_of(judge="local", sinks=[f"sqlite:///{tmp_path}/e.db"], on_result=print)
    assert threading.active_count() <= before  # the clock of another test may end


@pytest.mark.parametrize("wrong", [{"on_result": "no function"}, {"metrics": ["no such"]}])
def test_one_that_cannot_be_made_keeps_nothing(wrong):
    from ragaliq.live.runtime import RUNTIME

    judge = ScriptedJudge()
    parts = len(RUNTIME._parts)
    with pytest.raises(Exception, match=r"."):
        Monitor(judge=judge, **wrong)
    gc.collect()
    Monitor(judge=ScriptedJudge()).close()
    held = [part for part in RUNTIME._parts.values() if part.value is judge]
    assert len(RUNTIME._parts) <= parts + 2
    assert all(part.users == 0 for part in held)
