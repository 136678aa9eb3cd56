"""Runs and queues are read from the monitors, all of them together."""

import gc
import os
import threading
import time

import pytest

from ragaliq import Monitor, RAGTestCase
from ragaliq.telemetry.names import RUN_OUTCOMES
from ragaliq.testing import ScriptedJudge

CASE = RAGTestCase(query="q", context=["Alpha is one."], response="Alpha is one.")


class StoppedJudge(ScriptedJudge):
    """Waits for `go` before it answers anything."""

    def __init__(self, go):
        super().__init__()
        self.go = go
        self.asked = threading.Event()

    async def extract_statements(self, query, response):
        import asyncio

        self.asked.set()
        await asyncio.to_thread(self.go.wait, 30)
        return await super().extract_statements(query, response)


@pytest.fixture
def outcomes(sdk):
    def outcomes():
        metric = sdk.metrics().get("ragaliq.run.count")
        points = metric.data.data_points if metric else []
        found = {point.attributes["ragaliq.run.outcome"]: point.value for point in points}
        return {outcome: runs for outcome, runs in found.items() if runs}

    return outcomes


@pytest.fixture
def queued(sdk):
    def queued():
        (point,) = sdk.metrics()["ragaliq.queue.size"].data.data_points
        return point.value

    return queued


def build(sdk, **options):
    options.setdefault("judge", ScriptedJudge())
    return Monitor(telemetry=sdk.options, metrics=["faithfulness"], **options)


def test_every_outcome_is_read_from_the_beginning_so_that_its_first_run_is_an_increase(sdk):
    with build(sdk):
        points = sdk.metrics()["ragaliq.run.count"].data.data_points
    assert {point.attributes["ragaliq.run.outcome"]: point.value for point in points} == (
        dict.fromkeys(RUN_OUTCOMES, 0)
    )


def test_after_mixed_outcomes_the_metric_and_the_stats_agree(sdk, outcomes):
    monitor = build(sdk, sample_rate=0.5, max_queue=1, concurrency=1)
    for number in range(40):
        monitor.submit(CASE, run_id=f"run {number}")
    for number in range(10):
        handle = monitor.begin(f"other run {number}")
        if handle is not None:
            handle.discard("errored")
    assert monitor.close(10.0)
    for number in range(10):
        monitor.submit(CASE, run_id=f"late {number}")
    counted = monitor.stats().outcomes
    assert {"evaluated", "sampled_out", "incomplete_run", "shutdown"} <= counted.keys()
    assert outcomes() == counted


def test_runs_without_a_case_are_counted_by_reason_and_pipeline(sdk):
    first, second = build(sdk), build(sdk)
    for monitor, pipeline, reason in [
        (first, "support", "content_hidden"),
        (second, "support", "content_hidden"),
        (second, "search", "not_rag"),
    ]:
        monitor.begin("run", pipeline=pipeline).discard(reason)
    for number in range(200):
        second.begin("run", pipeline=f"pipeline {number}").discard("errored")
    first.submit(CASE)
    assert first.close(10.0)
    assert second.close(10.0)
    del first, monitor
    gc.collect()
    points = sdk.metrics()["ragaliq.run.skipped"].data.data_points
    found = {
        tuple(
            point.attributes.get(f"ragaliq.{name}")
            for name in ("run.outcome", "run.reason", "pipeline.name")
        ): point.value
        for point in points
    }
    assert found["incomplete_run", "content_hidden", "support"] == 2
    assert found["not_rag", None, "search"] == 1
    assert found["incomplete_run", "errored", "_OTHER"] == 102
    assert len(found) == 101


def test_several_monitors_add_up_and_a_lost_one_is_not_forgotten(sdk, outcomes):
    monitors = [build(sdk) for _ in range(3)]
    for monitor in monitors:
        monitor.submit(CASE)
        assert monitor.close(10.0)
    assert outcomes() == {"evaluated": 3}
    monitors.clear()
    del monitor
    gc.collect()
    assert outcomes() == {"evaluated": 3}
    survivor = build(sdk)
    survivor.submit(CASE)
    assert survivor.close(10.0)
    assert outcomes() == {"evaluated": 4}


def test_a_monitor_that_is_gone_before_its_run_is_judged_is_counted_whole(sdk, outcomes):
    judge = StoppedJudge(threading.Event())
    gone = build(sdk, judge=judge)
    assert gone.submit(CASE)
    del gone
    gc.collect()
    assert outcomes() == {}
    judge.go.set()
    until = time.monotonic() + 10.0
    while not (found := outcomes()) and time.monotonic() < until:
        time.sleep(0.01)
    assert found == {"evaluated": 1}


def test_the_queues_of_all_monitors_are_read_when_asked(sdk, queued):
    go = threading.Event()
    judges = [StoppedJudge(go), StoppedJudge(go)]
    monitors = [build(sdk, judge=judge, concurrency=1) for judge in judges]
    for judge, monitor in zip(judges, monitors, strict=True):
        monitor.submit(CASE)
        assert judge.asked.wait(10)
        monitor.submit(CASE)
        monitor.submit(CASE)
    assert queued() == 4
    go.set()
    for monitor in monitors:
        assert monitor.close(10.0)
    assert queued() == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_counts_its_own_runs_only(sdk, outcomes):
    monitor = build(sdk)
    monitor.submit(CASE)
    assert monitor.flush(10.0)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        monitor.submit(CASE)
        monitor.submit(CASE)
        monitor.flush(10.0)
        os.write(writing, repr(outcomes()).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    assert os.read(reading, 100).decode() == "{'evaluated': 2}"
    assert outcomes() == {"evaluated": 1}
    os.close(reading)
    monitor.close(1.0)
