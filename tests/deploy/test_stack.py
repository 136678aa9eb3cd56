"""The compose file's application, broker and worker, started by its own command lines."""

import asyncio
import contextlib
import json
import os
import shutil
import signal

import pytest
from oteltap import OtelTapHttpProtobufReceiver, OtelTapHttpProtobufReceiverSettings
from stack import Stack, becomes

from free_ports import free_port
from ragaliq import read_records

NOTES = "examples/fastapi_service/notes.json"


@pytest.fixture
async def stack(tmp_path):
    """The stack with an OTLP receiver in place of the collector; nothing is started yet."""
    if shutil.which("redis-server") is None:
        refuse = pytest.fail if os.environ.get("CI") else pytest.skip
        refuse("redis-server is missing; `make brokers` installs Debian's package (as root)")
    port = free_port()
    settings = OtelTapHttpProtobufReceiverSettings(http_port=port)
    async with OtelTapHttpProtobufReceiver(settings) as tap:
        stack = Stack(tmp_path, port)
        stack.metrics = []
        collecting = asyncio.create_task(_collect(tap, stack.metrics))
        yield stack
        collecting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await collecting
        stack.end()


async def _collect(tap, into):
    async for metric in tap.stream_metrics():
        into.append(metric)


def counts(metrics, name):
    """The last value of a counter, by its attributes' values."""
    return {
        tuple(each.value.string_value for each in point.attributes): point.as_int
        for metric in metrics
        if metric.name == name
        for point in metric.sum.data_points
    }


def questions(root):
    return [note["question"] for note in json.loads((root / NOTES).read_text())][:5]


@pytest.mark.fleet
async def test_asked_in_the_application_judged_by_the_worker_and_measured_at_each_tier(
    stack, pytestconfig
):
    asked = questions(pytestconfig.rootpath)
    await asyncio.to_thread(drive, stack, asked)

    records = list(read_records(stack.store))
    assert {record.run.pipeline for record in records} == {"library"}
    assert all(result.score is not None for record in records for result in record.results.values())
    # Both send what they have counted when they are told to end.
    done = ("evaluated",)
    assert await asyncio.to_thread(
        becomes, lambda: done in counts(stack.metrics, "ragaliq.job.count"), within=10
    )
    assert counts(stack.metrics, "ragaliq.job.count") == {done: len(asked)}
    assert counts(stack.metrics, "ragaliq.run.count")["enqueued",] == len(asked)
    everything = {metric.name for metric in stack.metrics}
    assert everything >= {"ragaliq.queue.size", "ragaliq.job.wait", "ragaliq.evaluation.score"}
    assert "5ecret" not in stack.logs()
    assert not [question for question in asked if question in stack.logs()]


def drive(stack, asked):
    stack.start("redis")
    assert becomes(lambda: stack.is_healthy("redis")), stack.logs()
    stack.start("application")
    assert becomes(lambda: stack.is_healthy("application")), stack.logs()
    stack.start("worker", "--concurrency", "1")
    assert becomes(lambda: stack.is_healthy("worker")), stack.logs()
    for question in asked:
        assert stack.ask(question)
    assert becomes(lambda: stack.store.exists() and stored(stack) == len(asked)), stack.logs()
    assert stack.stats()["outcomes"] == {"enqueued": len(asked)}
    # uvicorn ends by the signal it was sent.
    assert stack.stop("application") == -signal.SIGTERM
    assert (stack.stop("worker"), stack.stop("redis")) == (0, 0)


def stored(stack):
    return sum(1 for _ in read_records(stack.store))
