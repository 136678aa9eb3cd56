"""From the application through the broker and a worker into the store."""

from __future__ import annotations

import asyncio
import signal
import socket

from oteltap import OtelTapHttpProtobufReceiver, OtelTapHttpProtobufReceiverSettings
from worker_fleet import eventually, offer

from ragaliq import SpanTarget, read_records

TARGET = SpanTarget(trace_id="0af7651916cd43dd8448eb211c80319c", span_id="b7ad6b7169203331")


def test_a_run_is_judged_by_a_worker_and_the_record_says_where_it_came_from(fleet, handing_over):
    fleet.start()
    monitor = handing_over(sample_rate=1.0)
    assert offer(monitor, 1, target=TARGET, pipeline="shop")
    assert monitor.flush(10.0)
    assert monitor.stats().outcomes == {"handed_over": 1}
    assert monitor.stats().executor == "celery"

    assert eventually(fleet.evaluated)
    (record,) = read_records(fleet.store)
    assert (record.case_id, record.run.pipeline, record.run.target) == ("case-1", "shop", TARGET)
    assert record.run.sampling_probability == 1.0
    assert [metric.score for metric in record.results.values()] == [1.0]


def test_the_options_alone_make_a_worker_with_the_embedded_judge(fleet, handing_over):
    worker = fleet.run_worker("--metrics", "faithfulness", "--sink", f"sqlite:///{fleet.store}")
    for number in range(10):
        offer(handing_over(), number)
    assert eventually(lambda: len(fleet.evaluated()) == 10)
    assert {next(iter(record.results.values())).judge for record in read_records(fleet.store)} == {
        "local"
    }
    fleet.signal(worker)
    assert worker.wait(20) == 0


def test_a_job_that_is_delivered_twice_is_judged_and_paid_for_once(fleet, handing_over):
    monitor = handing_over()
    offer(monitor, 1)
    assert monitor.flush(10.0)
    fleet.copy_first_message()
    fleet.start()
    assert eventually(lambda: not fleet.waiting() and not fleet.unacknowledged())
    assert fleet.evaluated() == ["case-1"]
    assert fleet.judged() == ["case-1"]


def test_a_judge_that_is_down_is_asked_again_and_its_last_failure_is_no_score(fleet, handing_over):
    fleet.start()
    offer(handing_over(), 1, "outage")
    assert eventually(fleet.evaluated)
    (record,) = read_records(fleet.store)
    assert [(m.status.value, m.score) for m in record.results.values()] == [("judge_error", None)]
    assert fleet.judged() == ["case-1"] * 3


def test_a_job_that_kills_its_workers_is_set_aside_and_the_others_are_done(fleet, handing_over):
    monitor = handing_over()
    offer(monitor, 0, "poison")
    for number in range(1, 6):
        offer(monitor, number)
    deaths = 0
    options = ("--concurrency", "1", "--visibility-timeout", "1")
    fleet.start(*options, FLEET_MAX_DELIVERIES="2")
    while fleet.waiting("ragaliq.set_aside") == 0:
        assert deaths < 4
        assert eventually(lambda: fleet.is_deserted() or fleet.waiting("ragaliq.set_aside"))
        if fleet.is_deserted():
            deaths += 1
            fleet.start(*options, FLEET_MAX_DELIVERIES="2")
    assert deaths == 2
    assert eventually(lambda: len(fleet.evaluated()) == 5)
    assert sorted(fleet.evaluated()) == [f"case-{number}" for number in range(1, 6)]
    assert eventually(lambda: not fleet.unacknowledged())
    (job,) = fleet.set_aside()
    assert (job.reason, job.deliveries) == ("crashed", 2)


def test_after_sigterm_a_worker_finishes_what_it_has_and_takes_nothing_new(fleet, handing_over):
    worker = fleet.start("--concurrency", "2", FLEET_DELAY="0.5")
    monitor = handing_over()
    for number in range(20):
        offer(monitor, number)
    assert eventually(fleet.judged)
    fleet.signal(worker)
    assert worker.wait(20) == 0
    assert len(fleet.evaluated()) == len(fleet.judged())
    assert fleet.unacknowledged() == 0
    assert fleet.waiting() == 20 - len(fleet.evaluated()) > 10


def test_what_is_not_finished_in_time_goes_back_and_another_worker_does_it(fleet, handing_over):
    worker = fleet.start("--concurrency", "2", "--grace", "0.3", FLEET_DELAY="60")
    monitor = handing_over()
    for number in range(4):
        offer(monitor, number)
    # Taken: the queue is shorter by them, and they are noted.
    assert eventually(lambda: fleet.unacknowledged() >= 2)
    fleet.signal(worker, signal.SIGTERM)
    assert worker.wait(20) == 0
    assert (fleet.waiting(), fleet.unacknowledged()) == (4, 0)
    fleet.start()
    assert eventually(lambda: len(fleet.evaluated()) == 4)
    assert fleet.waiting("ragaliq.set_aside") == 0


def test_a_second_ctrl_c_gives_back_at_once(fleet, handing_over):
    worker = fleet.start("--grace", "100", FLEET_DELAY="60")
    offer(handing_over(), 1)
    assert eventually(lambda: fleet.unacknowledged() == 1)
    fleet.signal(worker, signal.SIGINT)
    assert eventually(lambda: "leaving" in fleet.logs())
    fleet.signal(worker, signal.SIGINT)
    assert worker.wait(20) == 0
    assert (fleet.waiting(), fleet.unacknowledged()) == (1, 0)


def test_a_worker_ends_also_while_the_broker_is_away(fleet):
    worker = fleet.start("--grace", "0.1")
    assert eventually(fleet.answering)
    fleet.server.kill()
    assert eventually(lambda: "Cannot connect" in fleet.logs())
    fleet.signal(worker)
    assert worker.wait(30) == 0


def test_a_prefork_worker_does_the_same_in_processes(fleet, handing_over):
    worker = fleet.start("--pool", "prefork", "--concurrency", "2", FLEET_MAX_DELIVERIES="1")
    monitor = handing_over()
    for number in range(10):
        offer(monitor, number)
    assert eventually(lambda: len(fleet.evaluated()) == 10)
    offer(monitor, 11, "poison")  # ends a process, not the worker
    assert eventually(lambda: fleet.waiting("ragaliq.set_aside") == 1)
    assert fleet.judged().count("case-11") == 1
    fleet.signal(worker)
    assert worker.wait(30) == 0


def test_a_process_that_is_not_done_in_time_is_ended_and_its_job_goes_back(fleet, handing_over):
    worker = fleet.start(
        *("--pool", "prefork", "--concurrency", "1", "--grace", "0.3"), FLEET_DELAY="60"
    )
    offer(handing_over(), 1)
    assert eventually(lambda: fleet.unacknowledged() == 1)
    fleet.signal(worker)
    worker.wait(30)
    assert eventually(lambda: (fleet.waiting(), fleet.unacknowledged()) == (1, 0))


def test_a_message_that_was_held_by_a_worker_that_died_is_put_back(fleet, handing_over):
    offer(handing_over(), 1)
    assert eventually(lambda: fleet.waiting() == 1)
    fleet.hold_first_message()
    fleet.start("--visibility-timeout", "1")
    assert eventually(lambda: fleet.evaluated() == ["case-1"])
    assert eventually(lambda: fleet.unacknowledged() == 0)


async def test_the_workers_spans_are_linked_to_the_applications_and_its_jobs_are_counted(
    fleet, handing_over
):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    async with OtelTapHttpProtobufReceiver(
        OtelTapHttpProtobufReceiverSettings(http_port=port)
    ) as tap:
        linked = asyncio.create_task(tap.await_trace(lambda span: bool(span.links), 60))
        counted = asyncio.create_task(
            tap.await_metric(lambda metric: metric.name == "ragaliq.job.count", 60)
        )
        worker = fleet.start(
            OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}",
            OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
        )
        offer(handing_over(), 1, target=TARGET, pipeline="shop")
        assert await asyncio.to_thread(eventually, fleet.evaluated)
        fleet.signal(worker)
        assert await asyncio.to_thread(worker.wait, 20) == 0
        span = await linked
        assert span.name == "evaluation shop"
        link = span.links[0]
        assert (link.trace_id.hex(), link.span_id.hex()) == (TARGET.trace_id, TARGET.span_id)
        await counted


def test_a_worker_that_is_there_answers(fleet):
    assert fleet.answering() == []
    fleet.start()
    assert eventually(fleet.answering)
    assert fleet.answering()[0].startswith("w1@")
