"""Monitors made for each request: equal ones share what costs, and each counts for itself."""

import gc

import pytest

from ragaliq import Monitor, RAGTestCase
from ragaliq.live import engine as engines
from ragaliq.testing import ScriptedJudge

CASE = RAGTestCase(query="q", context=["Alpha is one."], response="Alpha is one.")


@pytest.mark.parametrize(
    "other",
    [
        {"sample_rate": 0.5},
        {"metrics": ["relevance"]},
        {"on_result": print},
        {"judge": ScriptedJudge()},
        {"mode": "inline"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_monitors_that_differ_in_anything_share_nothing(monitor_of, other):
    judge = ScriptedJudge()
    one, another = monitor_of(judge=judge), monitor_of(**{"judge": judge, **other})
    assert one._engine is not another._engine


def test_a_changed_environment_makes_another_engine(monitor_of, monkeypatch):
    judge = ScriptedJudge()
    one = monitor_of(judge=judge)
    monkeypatch.setenv("RAGALIQ_CAPTURE_CONTENT", "true")
    assert monitor_of(judge=judge)._engine is not one._engine


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
    after = monitor_of(judge=held, concurrency=1)
    assert after.submit(CASE)
    assert after.flush(10.0)
    assert after.stats().outcomes == {"evaluated": 1}


def test_the_last_one_to_close_waits_for_the_runs_of_those_that_are_gone(monitor_of, held):
    seen = []
    gone = Monitor(judge=held, concurrency=1, on_result=seen.append)
    staying = monitor_of(judge=held, concurrency=1, on_result=gone._engine._on_result)
    staying.submit(CASE, run_id="own")
    gone.submit(CASE, run_id="left")
    counts = gone.tally
    del gone
    gc.collect()
    held.released.set()
    assert staying.close(10.0)
    assert [each.run.run_id for each in seen] == ["own", "left"]
    assert counts.snapshot().outcomes == {"evaluated": 1}


def test_one_that_is_made_while_the_last_other_closes_has_a_thread_of_its_own(
    monitor_of, monkeypatch
):
    judge = ScriptedJudge()
    last = monitor_of(judge=judge)

    def found_too_late(made_with):
        engine = engines.living_engine(made_with)
        last.close()
        return engine

    monkeypatch.setattr("ragaliq.live.monitor.living_engine", found_too_late)
    monitor = monitor_of(judge=judge)
    assert monitor.submit(CASE)
    assert monitor.flush(10.0)
    assert monitor.stats().outcomes == {"evaluated": 1}


def test_a_list_that_is_changed_afterwards_makes_another_engine(monitor_of):
    judge, metrics = ScriptedJudge(), ["faithfulness"]
    monitor_of(judge=judge, metrics=metrics)
    metrics.append("relevance")
    names = [each.name for each in monitor_of(judge=judge, metrics=metrics).metrics]
    assert names == ["faithfulness", "relevance"]
