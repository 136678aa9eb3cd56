"""Kafka, of which no server is at hand: against FastStream's test broker."""

from __future__ import annotations

import json

from faststream.kafka import TestKafkaBroker

from ragaliq import RAGTestCase, RunInfo
from ragaliq.testing import ScriptedJudge
from ragaliq.worker import WorkerSettings
from ragaliq.worker.brokers import broker_at
from ragaliq.worker.message import JobMessage
from ragaliq.worker.worker import Worker


async def test_a_job_on_a_topic_is_judged_and_what_cannot_be_read_goes_to_the_dead_letters(
    tmp_path,
):
    broker = broker_at("kafka://127.0.0.1:1")
    store, dead = f"sqlite:///{tmp_path}/store.db", []
    worker = Worker(
        WorkerSettings(judge=ScriptedJudge(), metrics=["faithfulness"], sinks=[store]), broker
    )
    broker.subscribe(worker.fresh, worker.again)

    @broker.native.subscriber("ragaliq.dead")
    async def keep(message):
        dead.append(json.loads(message.body)["reason"])

    run = RunInfo(run_id="run-1", ended_at=1.0)
    case = RAGTestCase(query="q", context=["Alpha is one."], response="Alpha is one.", run=run)
    job = JobMessage.of(case, ["faithfulness"])
    async with TestKafkaBroker(broker.native):
        await broker.publish(job.encoded(), broker.queue)
        await broker.publish(b"{", broker.queue)
    await worker.aclose()

    from ragaliq import read_records

    assert [record.run.run_id for record in read_records(tmp_path / "store.db")] == ["run-1"]
    assert dead == ["malformed"]
