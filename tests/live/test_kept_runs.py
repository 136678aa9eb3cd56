"""Live runs that wait for a batch survive a restart of the application."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest

from ragaliq import ClaudeBatchJudge, ConfigurationError, Guard, Monitor, RAGTestCase
from ragaliq.core.run import SpanTarget
from ragaliq.live.job import Submission
from ragaliq.live.kept_runs import KeptRuns, _submission
from ragaliq.live.sampling.choice import Choice
from ragaliq.storage.state import StateArea
from ragaliq.testing import BatchesServer

RUNS = 20

APPLICATION = """
import sys, time
from ragaliq import ClaudeBatchJudge, Monitor, RAGTestCase
url, store = sys.argv[1:]
judge = ClaudeBatchJudge(
    api_key="k", base_url=url, store=store, max_wait=0.2, poll_interval=0.1
)
monitor = Monitor(judge=judge)
for number in range(20):
    monitor.submit(
        RAGTestCase(
            query=f"When does shop {number} open?",
            context=[f"Shop {number} opens at 9."],
            response=f"Shop {number} opens at 9.",
        ),
        run_id=f"run-{number}",
        pipeline="shops",
    )
time.sleep(600)
"""


@pytest.fixture
def server():
    with BatchesServer() as running:
        yield running


@pytest.fixture
def judge_at(tmp_path):
    def build(server, **settings):
        quick = {"max_wait": 0.05, "poll_interval": 0.05, "store": tmp_path / "batches.db"}
        return ClaudeBatchJudge(api_key="k", base_url=server.url, **(quick | settings))

    return build


class Results:
    """Collects live results and tells when there are enough."""

    def __init__(self, wanted):
        self.runs, self._wanted, self.complete = {}, wanted, threading.Event()

    def __call__(self, result):
        self.runs[result.run.run_id] = result
        if len(self.runs) >= self._wanted:
            self.complete.set()


def case(number=1):
    return RAGTestCase(
        query=f"When does shop {number} open?",
        context=[f"Shop {number} opens at 9."],
        response=f"Shop {number} opens at 9.",
    )


def left(store):
    area = StateArea(store, namespace="live_runs")
    try:
        return area.items()
    finally:
        area.close()


@pytest.mark.timeout(120)
def test_a_killed_application_goes_on_with_its_runs_and_pays_once(server, judge_at, tmp_path):
    server.holds = True
    store = tmp_path / "batches.db"
    application = subprocess.Popen([sys.executable, "-c", APPLICATION, server.url, str(store)])
    while not server.batches:
        assert application.poll() is None
        threading.Event().wait(0.02)
    application.send_signal(signal.SIGKILL)
    application.wait()
    assert len(left(store)) == RUNS
    assert store.stat().st_mode & 0o077 == 0

    server.holds = False
    results = Results(RUNS)
    sink = f"sqlite:///{store}"  # one file for everything
    with Monitor(judge=judge_at(server), on_result=results, sinks=[sink]) as monitor:
        assert results.complete.wait(60)
        assert monitor.flush()
        stats = monitor.stats()
    assert (stats.started, stats.outcomes) == (RUNS, {"evaluated": RUNS})
    assert stats.sinks["sqlite"].written == RUNS
    assert set(results.runs) == {f"run-{number}" for number in range(RUNS)}
    assert {result.pipeline for result in results.runs.values()} == {"shops"}
    assert all(result.results["faithfulness"].score == 1.0 for result in results.runs.values())
    assert len(server.paid) == len(set(server.paid)) == 3 * RUNS
    assert left(store) == {}


def test_runs_left_at_the_end_are_counted_there_and_evaluated_by_the_next_one(server, judge_at):
    server.holds = True
    first = Monitor(judge=judge_at(server))
    assert first.submit(case(), run_id="run-1")
    while not server.batches:
        threading.Event().wait(0.02)
    assert first.close(timeout=0.1) is False
    assert first.stats().outcomes == {"shutdown": 1}

    server.holds = False
    results = Results(1)
    with Monitor(judge=judge_at(server), on_result=results):
        assert results.complete.wait(30)
    assert len(server.paid) == 3


def test_another_monitor_leaves_them_alone(server, judge_at):
    server.holds = True
    judge = judge_at(server)
    first = Monitor(judge=judge)
    first.submit(case())
    while not server.batches:
        threading.Event().wait(0.02)
    first.close(timeout=0.1)

    other = Monitor(judge=judge_at(server), evaluators=["context_precision"])
    other.submit(case(2))
    assert other.flush(0.2) is False
    assert other.stats().started == 1
    other.close(timeout=0.1)
    assert len(left(judge.store)) == 2


def test_a_disabled_monitor_leaves_them_alone(server, judge_at):
    server.holds = True
    first = Monitor(judge=judge_at(server))
    first.submit(case())
    while not server.batches:
        threading.Event().wait(0.02)
    first.close(timeout=0.1)

    with Monitor(judge=judge_at(server), enabled=False) as off:
        assert off.stats().started == 0
    assert len(left(first.judge.store)) == 1


def test_a_run_comes_back_as_it_was(tmp_path):
    runs = KeptRuns(tmp_path / "s.db", monitor="m")
    later = KeptRuns(tmp_path / "s.db", monitor="m")
    job = Submission(
        case=case(),
        run_id="r",
        pipeline="p",
        framework="langchain",
        target=SpanTarget(trace_id="a" * 32, span_id="b" * 16, source="ambient"),
        session_id="s",
        response_id="x",
        ended_at=1700000000.5,
        choice=Choice(probability=0.25, metrics={"relevance": 0.5}, reason="rule", rules=("a",)),
    ).job()
    with pytest.raises(KeyboardInterrupt), runs.keeping(job):
        raise KeyboardInterrupt  # as when a process ends
    assert later.left_behind() == []  # its owner is still there
    runs.close()
    taken = later.left_behind()
    assert [_submission(one).job() for one in taken] == [job]
    assert KeptRuns(tmp_path / "s.db", monitor="m").left_behind() == []
    later.close()


def test_what_another_version_wrote_is_left_out_with_a_warning(tmp_path, caplog):
    area = StateArea(tmp_path / "s.db", namespace="live_runs")
    area.put("k", {"owner": "gone", "monitor": "m", "since": time.time(), "job": '{"new": 1}'})
    assert KeptRuns(tmp_path / "s.db", monitor="m").left_behind() == []
    assert "another version" in caplog.text
    assert area.items() == {}


def test_a_monitor_that_keeps_nothing_loads_no_sqlite():
    code = (
        "import sys, ragaliq; ragaliq.Monitor(judge='local').close(); "
        "assert 'sqlite3' not in sys.modules and 'ragaliq.storage.state' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(
    "build",
    [lambda judge: Monitor(judge=judge, mode="inline"), lambda judge: Guard(judge=judge)],
    ids=["inline", "guard"],
)
def test_nobody_can_wait_for_a_batch(server, judge_at, build):
    with pytest.raises(ConfigurationError, match="minutes to hours"):
        build(judge_at(server))


def test_a_deadline_does_not_end_the_waiting(server, judge_at):
    results = Results(1)
    judge = judge_at(server, max_wait=0.3)
    with Monitor(judge=judge, deadline=0.01, on_result=results) as monitor:
        monitor.submit(case())
        assert results.complete.wait(30)
    assert {r.status for r in next(iter(results.runs.values())).results.values()} == {"scored"}


def test_more_runs_are_in_work_than_concurrency_says(server, judge_at):
    results = Results(30)
    with Monitor(judge=judge_at(server), concurrency=1, on_result=results) as monitor:
        for number in range(30):
            monitor.submit(case(number))
        assert results.complete.wait(60)
    assert len(server.batches) < 10
