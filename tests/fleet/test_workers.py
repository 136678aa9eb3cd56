"""From the application through each broker and a worker into the store."""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import time
from collections import Counter
from contextlib import closing

import aio_pika
import pytest
from oteltap import OtelTapHttpProtobufReceiver, OtelTapHttpProtobufReceiverSettings
from redis import Redis
from worker_fleet import WorkerFleet, eventually, offer

from free_ports import free_port
from ragaliq import RAGTestCase, RunInfo, SpanTarget, read_records
from ragaliq.errors import BrokerUnavailableError
from ragaliq.worker import dead_letters
from ragaliq.worker.brokers import broker_at
from ragaliq.worker.message import JobMessage

TARGET = SpanTarget(trace_id="0af7651916cd43dd8448eb211c80319c", span_id="b7ad6b7169203331")
SECRET = "the patient's name is Quux"


def message(name="case-1", text=SECRET, **changed):
    case = RAGTestCase(
        id=name,
        query=f"{name} {text}",
        context=["Alpha is one."],
        response="Alpha is one.",
        run=RunInfo(run_id=name, ended_at=1.0),
    )
    job = JobMessage.of(case, ["faithfulness"])
    body = json.loads(job.encoded()) | changed
    return json.dumps(body).encode()


async def test_a_run_is_judged_by_a_worker_and_its_spans_are_linked_to_the_applications(
    fleet, enqueueing, broker
):
    port = free_port()
    settings = OtelTapHttpProtobufReceiverSettings(http_port=port)
    async with OtelTapHttpProtobufReceiver(settings) as tap:
        linked = asyncio.create_task(tap.await_trace(lambda span: bool(span.links), 60))
        counted = asyncio.create_task(
            tap.await_metric(lambda metric: metric.name == "ragaliq.job.count", 60)
        )
        heartbeat = fleet.folder / "heartbeat"
        worker = fleet.start(
            *("--heartbeat", str(heartbeat)),
            OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}",
            OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
        )
        monitor = enqueueing()
        offer(monitor, 1, target=TARGET, pipeline="shop")
        assert await asyncio.to_thread(eventually, fleet.evaluated)
        assert monitor.stats().outcomes == {"enqueued": 1}
        assert monitor.stats().executor == broker.kind
        assert await asyncio.to_thread(eventually, heartbeat.exists)
        fleet.signal(worker)
        assert await asyncio.to_thread(worker.wait, 20) == 0
        link = (await linked).links[0]
        assert (link.trace_id.hex(), link.span_id.hex()) == (TARGET.trace_id, TARGET.span_id)
        await counted
    (record,) = read_records(fleet.store)
    assert (record.case_id, record.run.pipeline, record.run.target) == ("case-1", "shop", TARGET)


def test_a_job_that_is_published_twice_is_judged_and_paid_for_once(fleet):
    fleet.publish(message(), message())
    fleet.publish(message("case-2"))
    fleet.start("--concurrency", "2")
    assert eventually(lambda: sorted(fleet.evaluated()) == ["case-1", "case-2"])
    assert sorted(fleet.judged()) == ["case-1", "case-2"]


def test_a_job_that_kills_its_workers_becomes_a_dead_letter_and_the_others_are_done(fleet):
    fleet.publish(*(message(f"case-{number}") for number in range(5)))
    fleet.publish(message("case-9", text="poison"))
    deaths = 0
    options = {"FLEET_MAX_DELIVERIES": "2", "FLEET_DELAY": "0.2"}
    fleet.start("--concurrency", "4", **options)

    def is_over():
        return fleet.is_deserted() or len(fleet.dead_letters()) == 1

    while eventually(is_over) and fleet.is_deserted():
        deaths += 1
        assert deaths < 5
        fleet.start("--concurrency", "4", **options)
    assert eventually(lambda: sorted(fleet.evaluated()) == [f"case-{n}" for n in range(5)])
    assert [(letter.reason, letter.deliveries) for letter in fleet.dead_letters()] == [
        ("crashed", 3)
    ]
    assert deaths in (2, 3)  # the first one may be counted on another queue


def test_unreadable_messages_become_dead_letters_at_once_which_can_be_retried_or_deleted(
    fleet, ragaliq_cli
):
    fleet.publish(
        *(b"", b"\xff\x00\x80", b"[" * 5000, b'{"no": "job"}', message(version=[1, 0])),
        *(message(surprise=SECRET), message(metrics=["politeness"]), message("case-2")),
    )
    worker = fleet.start("--log-level", "info")
    assert eventually(lambda: fleet.evaluated() == ["case-2"])
    assert eventually(lambda: len(fleet.dead_letters()) == 7)
    assert worker.poll() is None
    reasons = Counter(letter.reason for letter in fleet.dead_letters())
    assert reasons == {"malformed": 5, "version": 1, "unknown_metric": 1}
    assert SECRET not in fleet.logs()
    listed = ragaliq_cli("worker", "dead-letters", "list")
    assert "unknown_metric" in listed.stdout
    assert SECRET not in listed.stdout + listed.stderr
    fleet.signal(worker)
    assert worker.wait(20) == 0

    job_id = json.loads(message())["job_id"]
    retried = ragaliq_cli("worker", "dead-letters", "retry", "--job", job_id)
    assert "1 jobs are on the queue again" in retried.stderr
    dropped = ragaliq_cli("worker", "dead-letters", "drop", "--all")
    assert "6 dead letters are deleted" in dropped.stderr
    assert fleet.dead_letters() == []
    fleet.start()  # knows the metric no better
    assert eventually(lambda: len(fleet.dead_letters()) == 1)


async def test_of_the_dead_letters_two_readers_see_all_and_delete_them(fleet, broker):
    queue = broker.url(), "ragaliq"
    await asyncio.to_thread(fleet.publish, *[b"{}"] * 50, to="ragaliq.dead")
    listed = await asyncio.gather(dead_letters.letters(*queue), dead_letters.letters(*queue))
    assert [len(each) for each in listed] == [50, 50]
    dropped = await asyncio.gather(dead_letters.drop(*queue), dead_letters.drop(*queue))
    assert max(dropped) == 50
    assert await dead_letters.letters(*queue) == []


def test_a_redis_entry_is_removed_and_acknowledged_or_neither(tmp_path, redis_server):
    # What is removed alone comes again for ever before Redis 7, as nothing.
    fleet = WorkerFleet(tmp_path, redis_server)
    fleet.publish(message())
    with Redis.from_url(redis_server.url()) as client:
        client.acl_setuser("default", enabled=True, commands=["-xack"])
        fleet.start()
        assert eventually(lambda: "did not take what became of a job" in fleet.logs())
        fleet.end()
        assert client.xlen("ragaliq") == client.xpending("ragaliq", "ragaliq")["pending"] == 1
        client.acl_setuser("default", enabled=True, commands=["+xack"])
        fleet.start()
        assert eventually(lambda: client.xlen("ragaliq") == 0)
        fleet.end()
        assert client.xpending("ragaliq", "ragaliq")["pending"] == 0
    assert fleet.evaluated() == fleet.judged() == ["case-1"]


async def test_a_worker_that_the_broker_refuses_at_its_start_ends_in_a_line(
    tmp_path, rabbit_server
):
    # Declared otherwise than a worker does.
    connection = await aio_pika.connect(rabbit_server.url())
    await (await connection.channel()).declare_queue("ragaliq.retry", durable=True)
    await connection.close()
    fleet = WorkerFleet(tmp_path, rabbit_server)
    worker = fleet.start()
    assert await asyncio.to_thread(worker.wait, 60) == 4
    assert "the broker refused a worker that was starting" in fleet.logs()
    assert "Traceback" not in fleet.logs()


def test_of_dead_letters_whose_queue_lost_its_leader_the_queue_is_named(rabbit_server):
    # RabbitMQ 3.10 forgets which node leads a queue that it made within half a second of a crash.
    def refused(queue):
        asyncio.run(_declare(rabbit_server.url(), queue))
        rabbit_server.kill()
        rabbit_server.start()
        try:
            asyncio.run(dead_letters.letters(rabbit_server.url(), queue))
        except BrokerUnavailableError as error:
            return str(error)

    message = next(filter(None, map(refused, ("q1", "q2", "q3", "q4"))))
    assert "quorum_status q" in message
    assert "is it running" not in message


async def _declare(url, queue):
    broker = broker_at(url, queue=queue)
    await broker.open()
    await broker.native.stop()


async def test_of_the_dead_letters_two_can_retry_one_job_at_the_same_time(fleet, broker):
    queue = broker.url(), "ragaliq"
    letter = {"reason": "crashed", "detail": "", "at": 1.0, "deliveries": 6}
    jobs = [json.dumps(letter | {"body": message().decode()}).encode()] * 50
    await asyncio.to_thread(fleet.publish, b"{}", *jobs, b"{}", to="ragaliq.dead")
    job_id = json.loads(message())["job_id"]
    retried = await asyncio.gather(*(dead_letters.retry(*queue, job_id) for _ in range(2)))
    assert max(number for number, _ in retried) == 50
    assert [letter.job_id for letter in await dead_letters.letters(*queue)] == ["", ""]


def test_after_sigterm_a_worker_finishes_its_jobs_and_puts_back_those_that_take_too_long(fleet):
    fleet.publish(message("case-1"))
    patient = {"FLEET_DEADLINE": "30", "FLEET_TIME_LIMIT": "60"}
    worker = fleet.start("--grace", "20", FLEET_DELAY="1.5", **patient)
    assert eventually(lambda: fleet.logs() or fleet.judged(), within=30)
    assert eventually(lambda: "waiting" in fleet.logs() or worker.poll() is None)
    assert eventually(lambda: fleet.evaluated() == ["case-1"])
    fleet.publish(message("case-2"))
    slow = fleet.start("--grace", "0.2", FLEET_DELAY="60", FLEET_TIME_LIMIT="90")
    fleet.signal(worker)
    assert worker.wait(30) == 0
    while not fleet.evaluated().count("case-2") and slow.poll() is None:
        fleet.signal(slow)
        assert slow.wait(30) == 0
    fleet.start()
    assert eventually(lambda: sorted(fleet.evaluated()) == ["case-1", "case-2"])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("jobs", [200, pytest.param(2000, marks=pytest.mark.soak)])
def test_with_workers_killed_at_random_and_the_broker_restarted_each_job_is_recorded_once(
    fleet, enqueueing, jobs
):
    monitor = enqueueing(max_queue=2 * jobs)
    chance = random.Random(8)
    options = {"FLEET_DELAY": "0.02", "FLEET_TIME_LIMIT": "10"}
    for number in (1, 2):
        fleet.start("--concurrency", "8", **options)
        assert eventually(lambda: fleet.logs().count("waiting for jobs") == number)  # noqa: B023
    time.sleep(2.0)  # a queue made within half a second of a crash is lost to RabbitMQ 3.10
    for number in range(jobs):
        assert offer(monitor, number)

    for done in (jobs // 4, jobs // 2, 3 * jobs // 4):
        assert eventually(lambda done=done: len(fleet.evaluated()) >= done, within=90.0)
        if done == jobs // 2:
            fleet.server.kill()
            fleet.server.start()
        fleet.kill(chance.choice(fleet.workers))
        fleet.start("--concurrency", "8", **options)

    assert eventually(lambda: len(fleet.evaluated()) >= jobs, within=120.0), fleet.logs()
    assert Counter(fleet.evaluated()) == {f"case-{number}": 1 for number in range(jobs)}
    assert monitor.flush(10.0)
    stats = monitor.stats()
    assert (stats.outcomes, stats.started, stats.pending) == ({"enqueued": jobs}, jobs, 0)
    assert fleet.dead_letters() == []
    assert fleet.server.kind == "rabbitmq" or "Traceback" not in fleet.logs()  # aiormq logs its own


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_four_workers_do_nearly_four_times_what_one_does(fleet, enqueueing):
    def rate(workers, jobs):
        before = set(fleet.evaluated())
        for _ in range(workers):
            fleet.start("--concurrency", "4", FLEET_DELAY="0.2")
        assert eventually(lambda: fleet.logs().count("waiting for jobs") == workers)
        monitor = enqueueing(max_queue=jobs)
        for number in range(jobs):
            offer(monitor, f"{workers}-{number}")
        assert eventually(lambda: len(fleet.evaluated()) == len(before) + jobs, within=120.0)
        with closing(sqlite3.connect(fleet.store)) as store:
            query = "SELECT max(created_at) - min(created_at) FROM evaluations WHERE case_id LIKE ?"
            (seconds,) = store.execute(query, (f"case-{workers}-%",)).fetchone()
        fleet.end()
        for log in fleet.folder.glob("worker-*.log"):
            log.unlink()
        fleet.workers.clear()
        return (jobs - 4 * workers) / seconds

    one, four = rate(1, 120), rate(4, 480)
    assert four >= 3.6 * one, f"{four:.1f} jobs a second, {one:.1f} of one worker"
