"""Where a process judges, it also finds what a run's answer was made from."""

import os
import signal
import threading

import pytest

from ragaliq import Budget, Monitor, Passage, RateLimits
from ragaliq.capture import Found, Message, RunLog
from ragaliq.scoring import execution

TEXTS = ["Refunds take five days.", "The warehouse is in Leeds."]
ANSWER = "Refunds take five days. Parcels travel by zeppelin."


def asked_run(name):
    """A run whose context only its prompt says."""
    log = RunLog(name, question=Found("How long?", "input"), answer=Found(ANSWER, "output"))
    log.began("root", None)
    log.began("search", "root")
    log.retrieved("search", [Passage(text, str(n), 0.5) for n, text in enumerate(TEXTS)])
    log.began("call", "root")
    prompt = "Answer from this:\n" + "\n".join(TEXTS)
    log.model_called("call", [Message("system", (prompt,)), Message("user", ("How long?",))])
    log.replied("call", ANSWER)
    log.metadata = {"tenant": "a"}
    return log


@pytest.fixture
def building(monitor_of):
    """A monitor whose process is at work, and what was reported."""
    reported = []
    monitor = monitor_of(
        judge="local", executor="process", metrics=["faithfulness"], on_result=reported.append
    )
    monitor.submit(asked_run("first"))
    assert monitor.flush(60.0)
    return monitor, reported


def test_case_and_score_are_those_of_the_thread(building, monitor_of):
    _, reported = building
    here = []
    monitor = monitor_of(
        judge="local", executor="thread", metrics=["faithfulness"], on_result=here.append
    )
    monitor.submit(asked_run("first"))
    assert monitor.flush(60.0)
    (there,), (same,) = reported, here
    assert there.case == same.case.model_copy(update={"run": there.run})
    assert there.case.context_texts == TEXTS
    assert [each.results["faithfulness"].score for each in (there, same)] == [0.5, 0.5]


def test_the_application_searches_no_prompt_and_sends_no_case_twice(building, monkeypatch):
    monitor, reported = building
    monkeypatch.setattr(RunLog, "to_case", lambda _: pytest.fail("built in the application"))
    monkeypatch.setattr(
        "ragaliq.scoring.execution.case_data", lambda _: pytest.fail("sent once more")
    )
    for number in range(20):
        monitor.submit(asked_run(str(number)))
    assert monitor.flush(60.0)
    assert monitor.stats().outcomes == {"evaluated": 21}
    assert {each.results["faithfulness"].score for each in reported} == {0.5}


def test_a_case_that_is_redacted_is_judged_only_after_that(monitor_of):
    reported = []
    monitor = monitor_of(
        judge="local",
        executor="process",
        metrics=["faithfulness"],
        on_result=reported.append,
        redact_for_judge=lambda text, kind: text.replace("Parcels", "Refunds"),
    )
    monitor.submit(asked_run("first"))
    assert monitor.flush(60.0)
    claims = [claim.claim for claim in reported[0].results["faithfulness"].claims]
    assert claims == ["Refunds take five days.", "Refunds travel by zeppelin."]


@pytest.mark.parametrize(
    "limit", [None, Budget(usd_per_hour=1.0), RateLimits(requests_per_minute=99)]
)
def test_what_a_limit_may_refuse_is_not_evaluated_before_it_is_asked(
    monitor_of, monkeypatch, limit
):
    measured, evaluate_run = [], execution.ProcessExecutor.evaluate_run

    async def noting(self, log, evaluators, **options):
        measured.append(len(evaluators))
        return await evaluate_run(self, log, evaluators, **options)

    monkeypatch.setattr(execution.ProcessExecutor, "evaluate_run", noting)
    name = "budget" if isinstance(limit, Budget) else "judge_limits"
    monitor = monitor_of(
        judge="local", executor="process", metrics=["faithfulness"], **{name: limit}
    )
    monitor.submit(asked_run("first"))
    assert monitor.flush(60.0)
    assert monitor.stats().outcomes == {"evaluated": 1}
    assert measured == [1 if limit is None else 0]


def test_a_process_that_dies_while_it_builds_costs_no_run(building, child_of, has_ended):
    monitor, reported = building
    pid = child_of(monitor).pid
    os.kill(pid, signal.SIGSTOP)
    monitor.submit(asked_run("again"))
    killing = threading.Timer(0.3, os.kill, (pid, signal.SIGKILL))
    killing.start()
    assert monitor.flush(60.0)
    killing.join()
    assert [each.results["faithfulness"].score for each in reported] == [0.5, 0.5]
    assert monitor.stats().restarts == 1


def test_a_judge_that_hangs_with_a_run_is_a_timeout_of_the_judge(monitor_of, child_of, monkeypatch):
    monkeypatch.setattr(execution, "_GRACE", 0.5)
    monkeypatch.setattr(execution, "_BUILD_WITHIN", 0.5)
    asked = []
    ask = execution.Child.ask

    async def stopped(child, job, **options):
        asked.extend({"run", "case"} & job.keys())
        if job.get("evaluators"):
            os.kill(child.pid, signal.SIGSTOP)
        return await ask(child, job, **options)

    reported = []
    monitor = monitor_of(
        judge="local",
        executor="process",
        metrics=["faithfulness"],
        deadline=0.5,
        on_result=reported.append,
    )
    monkeypatch.setattr(execution.Child, "ask", stopped)
    monitor.submit(asked_run("hanging"))
    assert monitor.flush(60.0)
    (result,) = [each.results["faithfulness"] for each in reported]
    assert result.status == "judge_timeout"
    assert asked == ["run", "run", "case"]


def test_a_run_that_cannot_be_built_there_is_counted(building):
    monitor, _ = building
    log = asked_run("broken")
    log.answer = Found(3, "output")
    assert Monitor.submit(monitor, log) in (True, False)
    assert monitor.flush(60.0)
    assert monitor.stats().incomplete == {"internal_error": 1}
