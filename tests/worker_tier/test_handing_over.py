"""What a monitor that hands runs over takes, refuses and counts; no broker is needed here."""

from __future__ import annotations

import asyncio
import os

import pytest
from celery import Celery

from ragaliq import (
    Budget,
    CeleryExecutor,
    CircuitBreaker,
    ConfigurationError,
    FaithfulnessEvaluator,
    Guard,
    Monitor,
    RAGTestCase,
    RateLimits,
    Sampling,
    WorkerSettings,
)
from ragaliq.live.handing_over import JobExecutor, JobRefusedError
from ragaliq.testing import ScriptedJudge

CASE = RAGTestCase(id="case-1", query="q", context=["Alpha is one."], response="Alpha is one.")


class Recorder(JobExecutor):
    """Takes jobs as it is told to."""

    name = "recorder"

    def __init__(self, *failures):
        self.taken = []
        self._failures = list(failures)

    async def publish(self, job, metrics):
        if self._failures and (failure := self._failures.pop(0)):
            raise failure
        self.taken.append((job, list(metrics)))

    async def aclose(self):
        self._failures.clear()

    def after_fork(self):
        pass


@pytest.fixture
def handing_over():
    monitors = []

    def build(executor, **options):
        monitors.append(Monitor(executor=executor, **options))
        return monitors[-1]

    yield build
    for monitor in monitors:
        monitor.close(timeout=1.0)


def test_a_run_is_handed_over_whole_and_counted(handing_over):
    executor = Recorder()
    monitor = handing_over(executor)
    assert monitor.submit(CASE, pipeline="shop")
    assert monitor.flush(5.0)
    ((job, metrics),) = executor.taken
    assert (job.case, job.run.pipeline, metrics) == (CASE, "shop", ["faithfulness", "relevance"])
    stats = monitor.stats()
    assert (stats.outcomes, stats.pending, stats.executor) == ({"handed_over": 1}, 0, "recorder")


def test_metrics_that_sampling_did_not_choose_are_not_asked_for(handing_over):
    executor = Recorder()
    monitor = handing_over(
        executor, sampling=Sampling(evaluators={"faithfulness": 1.0, "relevance": 0.0})
    )
    monitor.submit(CASE)
    assert monitor.flush(5.0)
    assert [metrics for _, metrics in executor.taken] == [["faithfulness"]]


def test_a_failed_attempt_is_counted_and_the_run_handed_over_at_the_next(handing_over, caplog):
    executor = Recorder(ConnectionError("10.0.0.7 Quux"), TimeoutError())
    monitor = handing_over(executor)
    monitor.submit(CASE)
    assert monitor.flush(10.0)
    assert len(executor.taken) == 1
    assert (monitor.stats().publish_errors, monitor.stats().outcomes) == (2, {"handed_over": 1})
    assert "Quux" not in caplog.text


@pytest.mark.parametrize("reason", ["too_large", "not_plain_data"])
def test_a_run_that_can_never_be_handed_over_is_counted_with_its_reason(handing_over, reason):
    monitor = handing_over(Recorder(JobRefusedError(reason)))
    monitor.submit(CASE)
    assert monitor.flush(5.0)
    stats = monitor.stats()
    assert (stats.outcomes, stats.incomplete) == ({"incomplete_run": 1}, {reason: 1})


def test_an_executor_that_breaks_loses_no_count(handing_over):
    monitor = handing_over(Recorder(SystemExit()))
    monitor.submit(CASE)
    assert monitor.flush(5.0)
    assert monitor.stats().incomplete == {"internal_error": 1}


@pytest.mark.parametrize(
    "setting",
    [
        {"judge": ScriptedJudge()},
        {"budget": Budget(usd_per_day=1.0)},
        {"judge_limits": RateLimits(requests_per_minute=10)},
        {"breaker": CircuitBreaker(failures=9)},
        {"breaker": None},
        {"sinks": ["sqlite:///store.db"]},
        {"on_result": print},
        {"mode": "inline"},
        {"capture_content": True},
        {"redact": lambda text, kind: text},
        {"deadline": 5.0},
        {"concurrency": 3},
        {"evaluators": [FaithfulnessEvaluator()]},
    ],
    ids=lambda setting: next(iter(setting)),
)
def test_what_the_workers_decide_is_refused_here(setting):
    with pytest.raises(ConfigurationError, match=next(iter(setting))):
        Monitor(executor=Recorder(), **setting)


def test_nobody_can_wait_for_a_result_that_does_not_come_back(handing_over):
    monitor = handing_over(Recorder())
    with pytest.raises(ConfigurationError, match="do not come back"):
        monitor.evaluate(CASE)
    with pytest.raises(ConfigurationError, match="do not come back"):
        asyncio.run(monitor.aevaluate(CASE))
    with pytest.raises(ConfigurationError, match="hands runs over"):
        Guard(monitor)
    assert monitor.stats().started == 0
    assert repr(monitor).startswith("Monitor(judge=None")


def test_a_job_above_the_limit_is_refused_before_it_is_sent(handing_over):
    executor = CeleryExecutor("redis://127.0.0.1:1/0", max_job_bytes=300)
    monitor = handing_over(executor)
    monitor.submit(CASE)
    assert monitor.flush(5.0)
    assert monitor.stats().incomplete == {"too_large": 1}


def test_a_job_with_something_that_is_no_json_is_refused(handing_over):
    monitor = handing_over(CeleryExecutor("redis://127.0.0.1:1/0"))
    monitor.submit(CASE.model_copy(update={"metadata": {"handle": object()}}))
    assert monitor.flush(5.0)
    assert monitor.stats().incomplete == {"not_plain_data": 1}


@pytest.mark.parametrize("address", ["http://localhost", "localhost:6379", "sqla+sqlite:///x", ""])
def test_an_address_of_no_broker_is_refused_without_being_shown(address, monkeypatch):
    monkeypatch.delenv("RAGALIQ_BROKER_URL", raising=False)
    with pytest.raises(ConfigurationError) as told:
        CeleryExecutor(f"{address}?password=hunter2" if address else None)
    assert "hunter2" not in str(told.value)


def test_an_application_of_celery_may_stand_for_the_address(handing_over):
    app = Celery("shop", broker="redis://127.0.0.1:1/0", set_as_current=False)
    monitor = handing_over(CeleryExecutor(app, max_job_bytes=10))
    monitor.submit(CASE)
    assert monitor.flush(5.0)
    assert monitor.stats().incomplete == {"too_large": 1}
    with pytest.raises(ConfigurationError, match="not Monitor"):
        CeleryExecutor(monitor)


def test_the_address_may_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("RAGALIQ_BROKER_URL", "redis://127.0.0.1:1/0")
    assert CeleryExecutor().name == "celery"


def test_settings_that_cannot_work_are_refused():
    with pytest.raises(ConfigurationError, match="time_limit"):
        WorkerSettings(deadline=60.0, time_limit=30.0)
    with pytest.raises(ConfigurationError, match="attempts"):
        WorkerSettings(attempts=0)


def test_a_forked_child_hands_over_its_own_runs_only(handing_over):
    executor = Recorder()
    monitor = handing_over(executor)
    monitor.submit(CASE)
    assert monitor.flush(5.0)
    child = os.fork()
    if child == 0:
        monitor.submit(CASE)
        done = monitor.flush(5.0) and monitor.stats().outcomes == {"handed_over": 1}
        os._exit(0 if done else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert monitor.stats().outcomes == {"handed_over": 1}
