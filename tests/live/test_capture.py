"""`monitor.capture()`: everything is evaluated and sent when the block is left."""

from __future__ import annotations

import threading

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ragaliq import TelemetryOptions
from ragaliq.testing import ScriptedJudge


@pytest.fixture
def sent():
    """Spans that a batching processor has really exported."""
    return InMemorySpanExporter()


@pytest.fixture
def tracer_provider(sent):
    provider = TracerProvider()
    # So rarely that nothing is sent by itself.
    provider.add_span_processor(BatchSpanProcessor(sent, schedule_delay_millis=3_600_000))
    yield provider
    provider.shutdown()


@pytest.mark.parametrize("is_asynchronous", [False, True])
async def test_leaving_the_block_evaluates_and_sends_everything(
    monitor_of, case, sent, tracer_provider, is_asynchronous
):
    options = TelemetryOptions(tracer_provider=tracer_provider)
    monitor = monitor_of(telemetry=options, judge=ScriptedJudge(delay=0.02))
    capture = monitor.capture(timeout=30)
    if is_asynchronous:
        async with capture:
            monitor.submit(case)
    else:
        with capture:
            monitor.submit(case)
            assert not sent.get_finished_spans()
    assert capture.complete
    assert monitor.stats().outcomes == {"evaluated": 1}
    assert sent.get_finished_spans()


def test_it_waits_no_longer_than_told_and_hides_no_error(monitor_of, case, caplog):
    release = threading.Event()

    class Stuck(ScriptedJudge):
        async def evaluate_relevance(self, query, response):
            release.wait(30)
            return await super().evaluate_relevance(query, response)

    monitor = monitor_of(judge=Stuck())
    capture = monitor.capture(timeout=0.01)

    def handler():
        with capture:
            monitor.submit(case)
            raise KeyError("the handler's own")

    with pytest.raises(KeyError):
        handler()
    assert capture.complete is False
    assert "not every run was evaluated" in caplog.text
    release.set()
    assert monitor.flush(5.0)


def test_a_provider_that_raises_is_not_noticed(monitor_of, case):
    class Broken(TracerProvider):
        def force_flush(self, timeout_millis=30000):
            raise ConnectionError("nobody there")

    monitor = monitor_of(telemetry=TelemetryOptions(tracer_provider=Broken()))
    with monitor.capture() as capture:
        monitor.submit(case)
    assert capture.complete
