"""Whatever becomes of the process that judges, every run is counted once."""

import logging
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from ragaliq import Status
from ragaliq.live.runtime import RUNTIME
from ragaliq.scoring import execution

pytestmark = pytest.mark.slow


def statuses(result):
    return {metric.status for metric in result.results.values()}


def test_a_case_that_kills_the_process_is_a_judges_error_and_not_tried_again(
    judging, claims, child_of
):
    monitor, reported = judging
    child = child_of(monitor)
    os.kill(child.pid, signal.SIGSTOP)  # so that the case is in it when it dies
    monitor.submit(claims)
    in_flight(child, 1)
    os.kill(child.pid, signal.SIGKILL)
    assert monitor.flush(60.0)
    assert statuses(reported[1]) == {Status.JUDGE_ERROR}
    assert {metric.score for metric in reported[1].results.values()} == {None}
    monitor.submit(claims)
    assert monitor.flush(60.0)
    assert Status.SCORED in statuses(reported[2])
    stats = monitor.stats()
    assert (stats.outcomes, stats.restarts) == ({"evaluated": 3}, 1)
    assert stats.evaluations["faithfulness"] == {"scored": 2, "judge_error": 1}


def test_a_loop_that_took_the_process_with_it_costs_no_run(judging, claims):
    monitor, reported = judging
    RUNTIME.thread.stop(5.0)
    monitor.submit(claims)
    assert monitor.flush(60.0)
    assert Status.SCORED in statuses(reported[1])


def in_flight(child, number):
    while len(child._waiting) < number:
        time.sleep(0.001)


def test_a_process_that_dies_idle_costs_no_run(judging, claims, child_of, has_ended, caplog):
    monitor, reported = judging
    for _ in range(2):
        pid = child_of(monitor).pid
        os.kill(pid, signal.SIGKILL)
        assert has_ended(pid)
        monitor.submit(claims)
        assert monitor.flush(60.0)
    assert all(Status.SCORED in statuses(result) for result in reported)
    assert monitor.stats().restarts == 2
    assert [record.levelno for record in caplog.records] == [logging.WARNING]  # said once
    assert "exit code -9" in caplog.text


@contextmanager
def deaf(monitor):
    """Keeps the worker from hearing of anything."""
    is_held, may_go_on = threading.Event(), threading.Event()

    class Holding:
        def sweep(self):
            is_held.set()
            may_go_on.wait(60.0)

    holding = Holding()
    monitor.sweep_later(0.0, holding)
    assert is_held.wait(60.0)
    yield
    may_go_on.set()


def test_no_run_is_given_to_a_process_that_has_just_died(judging, claims, child_of, has_ended):
    monitor, _ = judging
    pid = child_of(monitor).pid
    with deaf(monitor):
        os.kill(pid, signal.SIGKILL)
        assert has_ended(pid)
        for _ in range(40):
            monitor.submit(claims)
    assert monitor.flush(60.0)
    assert monitor.stats().evaluations["faithfulness"] == {"scored": 41}
    assert monitor.stats().restarts == 1


def test_a_run_that_could_not_be_sent_is_given_to_the_next_process(
    judging, claims, child_of, has_ended, caplog
):
    monitor, _ = judging
    child = child_of(monitor)
    with deaf(monitor):
        os.kill(child.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)  # else it may see the end, and end
        child._channel.hang_up()
        for _ in range(40):
            monitor.submit(claims)
    assert monitor.flush(60.0)
    assert has_ended(child.pid)
    assert monitor.stats().evaluations["faithfulness"] == {"scored": 41}
    assert monitor.stats().restarts == 1
    assert "exit code -9" in caplog.text


def test_a_process_that_hangs_is_ended_after_the_deadline(
    monitor_of, claims, child_of, has_ended, monkeypatch
):
    monkeypatch.setattr(execution, "_GRACE", 0.5)
    reported = []
    monitor = monitor_of(judge="local", executor="process", deadline=0.5, on_result=reported.append)
    monitor.submit(claims)
    assert monitor.flush(60.0)
    pid = child_of(monitor).pid
    os.kill(pid, signal.SIGSTOP)
    monitor.submit(claims)
    assert monitor.flush(60.0)
    assert statuses(reported[-1]) == {Status.JUDGE_TIMEOUT}
    assert has_ended(pid)


def test_a_deadline_that_passes_in_the_process_is_a_timeout_there(monitor_of, claims, child_of):
    reported = []
    monitor = monitor_of(
        judge="local", executor="process", deadline=1e-9, on_result=reported.append
    )
    monitor.submit(claims)
    assert monitor.flush(60.0)
    assert Status.JUDGE_TIMEOUT in statuses(reported[0])
    assert child_of(monitor) is not None


@pytest.mark.parametrize(
    "kills", [3, pytest.param(100, marks=[pytest.mark.soak, pytest.mark.timeout(900)])]
)
def test_killed_at_random_every_run_still_has_one_outcome(monitor_of, claims, child_of, kills):
    chance, reported = random.Random(kills), Counter()
    monitor = monitor_of(
        judge="local",
        executor="process",
        metrics=["faithfulness"],
        on_result=lambda result: reported.update([result.case.id]),
    )
    over = threading.Event()

    def killer():
        for _ in range(kills):
            while (child := child_of(monitor)) is None:
                time.sleep(0.002)
            time.sleep(chance.uniform(0.0, 0.05))
            os.kill(child.pid, signal.SIGKILL)
            while child_of(monitor) is child:
                time.sleep(0.002)
        over.set()

    thread = threading.Thread(target=killer)
    thread.start()
    submitted = 0
    while not over.is_set():
        for _ in range(40):
            submitted += monitor.submit(claims.model_copy(update={"id": str(submitted)}))
        assert monitor.flush(60.0)
    thread.join()
    submitted += monitor.submit(claims)
    assert monitor.flush(60.0)
    stats = monitor.stats()
    assert stats.outcomes == {"evaluated": submitted}
    assert set(reported.values()) == {1}
    assert reported.total() == submitted
    counts = stats.evaluations["faithfulness"]
    assert counts["scored"] + counts.get("judge_error", 0) == submitted
    assert counts.get("judge_error", 0) <= 8 * kills  # those in flight, no others
    assert stats.restarts == kills


def test_a_file_of_the_current_folder_takes_the_place_of_no_module(
    monitor_of, claims, monkeypatch, tmp_path
):
    for module in ("json", "pydantic", "rapidfuzz", "ragaliq"):
        (tmp_path / f"{module}.py").write_text("open('imported', 'w')\n")
    monkeypatch.delenv("PYTHONPATH", raising=False)  # the folder of ragaliq is in sys.path only
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])  # as under uvicorn, notebooks, `python -c`
    monitor = monitor_of(judge="local", executor="process")
    assert monitor.submit(claims)
    assert monitor.flush(60.0)
    assert (monitor.stats().executor, monitor.stats().restarts) == ("process", 0)
    assert monitor.stats().outcomes == {"evaluated": 1}
    assert not (tmp_path / "imported").exists()


def forbidden(*_, **__):
    raise PermissionError


# The event loop has made a socket pair of its own by then.
@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ({"subprocess": SimpleNamespace(**vars(subprocess) | {"Popen": forbidden})}, "Permission"),
        ({"socket": SimpleNamespace(**vars(socket) | {"socketpair": forbidden})}, "Permission"),
        ({"_PROGRAM": "import os; os._exit(3)"}, "exit code 3"),
        ({"__version__": "0.0"}, "another version"),
        ({"_PROGRAM": "import time; time.sleep(60)", "_START_WITHIN": 0.1}, "exit code -9"),
    ],
    ids=["no process", "no socket", "it ends at once", "another version", "it never gets ready"],
)
def test_where_nothing_can_be_started_the_thread_judges(
    monitor_of, claims, caplog, monkeypatch, *, broken, why
):
    for name, value in {"_FIRST_PAUSE": 0.0, **broken}.items():
        monkeypatch.setattr(execution, name, value)
    reported = []
    monitor = monitor_of(judge="local", executor="process", on_result=reported.append)
    for _ in range(3):
        monitor.submit(claims)
    assert monitor.flush(60.0)
    assert [result.results["faithfulness"].score for result in reported] == [0.5] * 3
    assert (monitor.stats().executor, monitor.stats().restarts) == ("thread", 0)
    [record] = caplog.records
    assert why in record.getMessage()
