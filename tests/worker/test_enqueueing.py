"""What a monitor that enqueues runs takes, refuses and counts; no broker is needed here."""

from __future__ import annotations

import asyncio
import gc

import aio_pika
import pytest

from ragaliq import (
    Budget,
    CircuitBreaker,
    ConfigurationError,
    FaithfulnessEvaluator,
    Guard,
    Monitor,
    RAGTestCase,
    RateLimits,
    Sampling,
)
from ragaliq.errors import BrokerUnavailableError
from ragaliq.testing import ScriptedJudge
from ragaliq.worker import BrokerExecutor, WorkerSettings, worker
from ragaliq.worker.brokers import broker_at
from ragaliq.worker.executor import JobExecutor
from ragaliq.worker.message import read_message
from ragaliq.worker.runs_file import RunsFile

CASE = RAGTestCase(id="case-1", query="q", context=["Alpha is one."], response="Alpha is one.")


class Recorder(JobExecutor):
    """Takes jobs as it is told to."""

    name = "recorder"

    def __init__(self, *failures):
        self.taken = []
        self._failures = list(failures)

    async def publish(self, job_id, message):
        if self._failures and (failure := self._failures.pop(0)):
            raise failure
        self.taken.append(read_message(message))

    async def aclose(self):
        self._failures.clear()


@pytest.fixture
def enqueueing():
    monitors = []

    def build(executor, **options):
        monitors.append(Monitor(executor=executor, **options))
        return monitors[-1]

    yield build
    for monitor in monitors:
        monitor.close(timeout=1.0)


def test_a_run_is_enqueued_whole_and_counted(enqueueing):
    executor = Recorder()
    monitor = enqueueing(executor)
    assert monitor.submit(CASE, pipeline="shop")
    assert monitor.flush(5.0)
    (job,) = executor.taken
    assert job.case.model_copy(update={"run": None}) == CASE
    assert (job.case.run.pipeline, job.metrics) == ("shop", ())  # the workers' own
    stats = monitor.stats()
    assert (stats.outcomes, stats.pending, stats.executor) == ({"enqueued": 1}, 0, "recorder")


def test_metrics_that_sampling_did_not_choose_are_not_asked_for(enqueueing):
    executor = Recorder()
    monitor = enqueueing(
        executor,
        metrics=["faithfulness", "relevance"],
        sampling=Sampling(metrics={"faithfulness": 1.0, "relevance": 0.0}),
    )
    monitor.submit(CASE)
    assert monitor.flush(5.0)
    assert [job.metrics for job in executor.taken] == [("faithfulness",)]


def test_a_failed_attempt_is_counted_and_the_run_enqueued_at_the_next(enqueueing, caplog):
    executor = Recorder(ConnectionError("10.0.0.7 Quux"), TimeoutError())
    monitor = enqueueing(executor)
    monitor.submit(CASE)
    assert monitor.flush(10.0)
    assert len(executor.taken) == 1
    assert (monitor.stats().publish_errors, monitor.stats().outcomes) == (2, {"enqueued": 1})
    assert "Quux" not in caplog.text


def test_an_executor_that_breaks_loses_no_count(enqueueing):
    monitor = enqueueing(Recorder(SystemExit()))
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
        {"metrics": [FaithfulnessEvaluator()]},
    ],
    ids=lambda setting: next(iter(setting)),
)
def test_what_the_workers_decide_is_refused_here(setting):
    with pytest.raises(ConfigurationError, match=next(iter(setting))):
        Monitor(executor=Recorder(), **setting)


def test_nobody_can_wait_for_a_result_that_does_not_come_back(enqueueing):
    monitor = enqueueing(Recorder())
    with pytest.raises(ConfigurationError, match="do not come back"):
        monitor.evaluate(CASE)
    with pytest.raises(ConfigurationError, match="do not come back"):
        asyncio.run(monitor.aevaluate(CASE))
    with pytest.raises(ConfigurationError, match="workers evaluate the monitor"):
        Guard(monitor)
    assert monitor.stats().started == 0
    assert repr(monitor).startswith("Monitor(judge=None")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"response": "x" * 2000}, "too_large"),  # as JSON
        ({"response": "x" * 9000}, "too_large"),  # seen before it is written as JSON
        ({"metadata": {"handle": object()}}, "not_plain_data"),
    ],
)
def test_a_run_that_can_never_be_enqueued_is_counted_with_its_reason(enqueueing, changed, reason):
    # No such broker is asked.
    monitor = enqueueing(BrokerExecutor("redis://127.0.0.1:1/0", max_job_bytes=2000))
    monitor.submit(CASE.model_copy(update=changed))
    assert monitor.flush(5.0)
    stats = monitor.stats()
    assert (stats.outcomes, stats.incomplete) == ({"incomplete_run": 1}, {reason: 1})


@pytest.mark.parametrize("address", ["http://localhost", "localhost:6379", "sqla+sqlite:///x", ""])
def test_an_address_of_no_broker_is_refused_without_being_shown(address, monkeypatch):
    monkeypatch.delenv("RAGALIQ_BROKER_URL", raising=False)
    with pytest.raises(ConfigurationError) as told:
        BrokerExecutor(f"{address}?password=hunter2" if address else None)
    assert "hunter2" not in str(told.value)


def test_an_address_makes_a_monitor_that_enqueues(enqueueing):
    monitor = enqueueing("nats://127.0.0.1:1")
    assert (monitor.stats().executor, monitor.judge) == ("nats", None)
    with pytest.raises(ConfigurationError, match="must begin with"):
        Monitor(executor="mongodb://127.0.0.1/0")
    with pytest.raises(ConfigurationError, match="users and passwords"):
        Monitor(executor="kafka://u:hunter2@127.0.0.1:9092")


def test_the_address_may_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("RAGALIQ_BROKER_URL", "redis://127.0.0.1:1/0")
    assert BrokerExecutor().name == "redis"


def test_settings_that_cannot_work_are_refused():
    with pytest.raises(ConfigurationError, match="time_limit"):
        WorkerSettings(deadline=60.0, time_limit=30.0)
    with pytest.raises(ConfigurationError, match="attempts"):
        WorkerSettings(attempts=0)


def test_runs_that_come_while_a_file_is_read_are_read_too(tmp_path):
    runs = RunsFile(f"sqlite:///{tmp_path / 'runs.db'}")
    asyncio.run(runs.publish("first", b""))
    seen = []
    for some in runs.messages(at_once=1):
        seen += [job for job, _ in some]
        for job, _ in some:
            runs.done(job)
        if len(seen) == 1:
            asyncio.run(runs.publish("second", b""))
    assert seen == ["first", "second"]


@pytest.mark.parametrize("kind", ["", "TRACES_", "METRICS_", "LOGS_"])
async def test_a_worker_that_exports_is_not_warned_that_results_go_nowhere(
    monkeypatch, caplog, kind
):
    async def unreachable():
        raise BrokerUnavailableError("gone")

    monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{kind}ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setattr(worker, "configure_from_environment", lambda name: True)
    broker = broker_at("redis://127.0.0.1:1/0")
    monkeypatch.setattr(broker, "open", unreachable)
    with pytest.raises(BrokerUnavailableError):
        await worker.run_worker(WorkerSettings(judge="local"), broker, grace=0.0)
    assert "nowhere" not in caplog.text


@pytest.mark.parametrize("answer", ["nothing", "a closed connection"])
async def test_attempts_at_a_broker_that_answers_nothing_leave_no_connection_behind(answer):
    accepted = []

    async def accept(reader, writer):
        accepted.append(writer)
        if answer != "nothing":
            writer.close()

    gc.collect()
    gc.disable()  # it would free a connection in whatever thread it runs
    try:
        async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            executor = BrokerExecutor(f"amqp://guest:guest@127.0.0.1:{port}/", timeout=0.3)
            for _ in range(3):
                with pytest.raises((TimeoutError, aio_pika.exceptions.AMQPConnectionError)):
                    await executor.publish("job", b"{}")
            await asyncio.sleep(1.5)  # aio-pika tries again after one second
            assert len(accepted) == 3
            assert not any(isinstance(each, aio_pika.RobustConnection) for each in gc.get_objects())
            for writer in accepted:
                writer.close()
    finally:
        gc.enable()
