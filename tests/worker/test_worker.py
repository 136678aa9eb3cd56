"""What becomes of messages, on a broker in memory."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace

import pytest

from ragaliq import (
    Budget,
    CircuitBreaker,
    JudgeAPIError,
    JudgeUsage,
    RAGTestCase,
    RunInfo,
    SinkError,
)
from ragaliq.testing import ScriptedJudge
from ragaliq.worker import WorkerSettings
from ragaliq.worker.brokers import Broker
from ragaliq.worker.message import JobMessage
from ragaliq.worker.worker import Worker


class InMemory(Broker):
    """Keeps what is published, by queue, and what was acknowledged."""

    def _native(self, url, **options):
        self.queues, self.acknowledged = {}, []

    def subscribe(self, fresh, again):
        pass

    async def publish(self, body, to):
        self.queues.setdefault(to.removeprefix("ragaliq"), []).append(body)

    async def connect(self):
        pass

    async def deliveries(self, message):
        return message.deliveries

    async def done(self, message):
        self.acknowledged.append(message.body)

    async def dead_messages(self):
        return []

    @property
    def reasons(self):
        return [json.loads(body)["reason"] for body in self.queues.get(".dead", [])]


class Kept:
    """A sink in memory, which can be told to fail."""

    name = "kept"

    def __init__(self, *, fails=False):
        self.records, self._fails = {}, fails

    async def write(self, records):
        if self._fails:
            raise SinkError("no", permanent=True)
        self.records |= {record.evaluation_id: record for record in records}

    async def holds(self, evaluation_id):
        return evaluation_id in self.records

    async def aclose(self):
        pass


def message(name="run-1", deliveries=1, **changed):
    run = RunInfo(run_id=name, ended_at=1.0)
    answer = "Alpha is one."
    case = RAGTestCase(id=name, query="q", context=[answer], response=answer, run=run)
    job = JobMessage.of(case, ["faithfulness"])
    body = json.loads(job.encoded()) | changed
    return SimpleNamespace(body=json.dumps(body).encode(), deliveries=deliveries)


@pytest.fixture
async def working():
    made = []

    def build(judge=None, **settings):
        kept = settings.pop("sink", Kept())
        settings.setdefault("backoff", 0.001)
        chosen = WorkerSettings(
            judge=judge or ScriptedJudge(), sinks=[kept], metrics=["faithfulness"], **settings
        )
        made.append(Worker(chosen, InMemory("memory://")))
        return made[-1], made[-1]._broker, kept

    yield build
    for worker in made:
        await worker.aclose()


async def test_when_a_message_is_acknowledged_its_record_is_stored(working):
    worker, broker, kept = working()
    await worker.fresh(message())
    assert [record.case_id for record in kept.records.values()] == ["run-1"]
    assert (len(broker.acknowledged), broker.queues) == (1, {})


async def test_a_judge_that_recovers_is_asked_again_before_anything_is_stored(working):
    judge = ScriptedJudge(failures={"extract_statements": [JudgeAPIError("down"), None]})
    worker, _, kept = working(judge)
    await worker.fresh(message())
    ((metric,),) = (record.results.values() for record in kept.records.values())
    assert (metric.status.value, metric.score) == ("scored", 1.0)


async def test_a_job_that_is_stored_is_not_judged_again(working):
    judge = ScriptedJudge()
    worker, broker, _ = working(judge)
    await worker.fresh(message())
    asked = len(judge.calls)
    await worker.fresh(message())
    await worker.again(message(deliveries=9))
    assert len(judge.calls) == asked
    assert (len(broker.acknowledged), broker.queues) == (3, {})


async def test_two_deliveries_at_the_same_time_are_judged_once(working):
    judge = ScriptedJudge()
    worker, broker, kept = working(judge)
    await asyncio.gather(worker.fresh(message()), worker.again(message(deliveries=2)))
    assert (len(kept.records), len(broker.acknowledged)) == (1, 2)
    assert len([call for call in judge.calls if call.method == "extract_statements"]) == 1


async def test_a_message_whose_worker_died_goes_to_the_retry_queue_unjudged(working):
    judge = ScriptedJudge()
    worker, broker, _ = working(judge)
    again = message(deliveries=2)
    await worker.fresh(again)
    assert (broker.queues, broker.acknowledged, judge.calls) == (
        {".retry": [again.body]},
        [again.body],
        [],
    )


async def test_a_job_that_killed_its_workers_too_often_becomes_a_dead_letter(working):
    judge = ScriptedJudge()
    worker, broker, kept = working(judge, max_deliveries=2)
    await worker.again(message(deliveries=3))
    assert (broker.reasons, judge.calls) == (["crashed"], [])
    await worker.again(message("run-2", deliveries=2))
    assert [record.case_id for record in kept.records.values()] == ["run-2"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "malformed"),
        (b"\xff\x00", "malformed"),
        (b"[" * 100_000, "malformed"),
        (message(version=[1, 0]).body, "version"),
        (message(metrics=["politeness"]).body, "unknown_metric"),
        (message(surprise=1).body, "malformed"),
    ],
    ids=["empty", "no text", "nested", "another version", "another metric", "an unknown field"],
)
async def test_what_cannot_be_read_becomes_a_dead_letter_at_once(working, body, reason):
    worker, broker, kept = working()
    await worker.fresh(SimpleNamespace(body=body, deliveries=1))
    assert (broker.reasons, broker.acknowledged, kept.records) == ([reason], [body], {})


async def test_a_newer_minor_version_is_judged_without_the_fields_this_version_does_not_know(
    working,
):
    worker, _, kept = working()
    await worker.fresh(message(version=[2, 7], tenant="north"))
    assert len(kept.records) == 1


async def test_a_record_that_no_sink_took_is_not_lost(working):
    worker, broker, _ = working(sink=Kept(fails=True))
    await worker.fresh(message())
    assert broker.reasons == ["unrecorded"]


class SlowJudge(ScriptedJudge):
    async def extract_statements(self, query, response):
        await asyncio.sleep(30.0)


async def test_a_job_that_takes_too_long_becomes_a_dead_letter(working):
    worker, broker, _ = working(SlowJudge(), deadline=0.05, time_limit=0.1, attempts=50)
    await worker.fresh(message())
    assert broker.reasons == ["too_slow"]


async def test_a_worker_that_ends_puts_its_jobs_back_and_begins_no_other(working):
    worker, broker, kept = working(SlowJudge())
    taking = asyncio.create_task(worker.fresh(message()))
    await asyncio.sleep(0.05)
    await worker.leave(0.0)
    await taking
    await worker.fresh(message("run-2"))
    assert [json.loads(body)["case"]["id"] for body in broker.queues[""]] == ["run-1", "run-2"]
    assert (len(broker.acknowledged), kept.records) == (2, {})


async def test_what_the_broker_refuses_is_not_acknowledged(working, monkeypatch, caplog):
    worker, broker, _ = working()

    async def refuse(message):
        raise ConnectionError("redis://:hunter2@host")

    monkeypatch.setattr(broker, "done", refuse)
    await worker.fresh(message())
    assert broker.acknowledged == []
    assert "hunter2" not in caplog.text


async def test_while_the_breaker_is_open_jobs_wait_and_are_judged_when_it_closes(working):
    judge = ScriptedJudge(failures={"extract_statements": [JudgeAPIError("down")] * 2 + [None]})
    worker, broker, kept = working(
        judge, attempts=1, backoff=0.02, breaker=CircuitBreaker(failures=2, pause=0.1)
    )
    for name in ("run-1", "run-2", "run-3"):  # the second one opens it
        await worker.fresh(message(name))
    ended = {
        record.case_id: record.results["faithfulness"].status.value
        for record in kept.records.values()
    }
    assert ended == {"run-1": "judge_error", "run-2": "judge_error", "run-3": "scored"}
    assert broker.queues == {}


async def test_where_the_breaker_stays_open_jobs_go_to_the_end_of_the_queue(working):
    judge = ScriptedJudge(failures={"extract_statements": JudgeAPIError("down")})
    worker, broker, kept = working(
        judge, breaker=CircuitBreaker(failures=1, pause=60.0), deadline=0.05, time_limit=0.2
    )
    one = message()
    await worker.fresh(one)
    assert (broker.queues, broker.acknowledged, kept.records) == ({"": [one.body]}, [one.body], {})
    assert len(judge.calls) == 1


async def test_a_job_above_the_budget_is_not_judged_and_the_log_says_so_once(working, caplog):
    judge = ScriptedJudge(usage=JudgeUsage(requests=1, cost_usd=1.0))
    worker, broker, kept = working(judge, budget=Budget(usd_per_day=1.0))
    for name in ("run-1", "run-2", "run-3"):
        await worker.fresh(message(name))
    assert [record.case_id for record in kept.records.values()] == ["run-1"]
    assert (broker.queues, len(broker.acknowledged)) == ({}, 3)
    assert caplog.text.count("the budget is used up") == 1
