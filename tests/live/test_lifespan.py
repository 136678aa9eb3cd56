"""`lifespan` and `capture`: everything accepted is evaluated and sent when the block is left."""

import asyncio
import threading
from contextlib import asynccontextmanager, contextmanager

import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.applications import Starlette

from ragaliq import RAGTestCase, TelemetryOptions, lifespan
from ragaliq.testing import ScriptedJudge

CASE = RAGTestCase(query="q", context=["c"], response="Alpha is one.")


def served(application):
    """The block in which an application is served, for so many seconds at most at its end."""
    return lambda monitor, timeout=None: TestClient(
        application(lifespan=lifespan(monitor, timeout=timeout))
    )


def captured(monitor, timeout=30.0):
    return monitor.capture(timeout=timeout)


@contextmanager
def captured_asynchronously(monitor):
    with asyncio.Runner() as runner:
        block = captured(monitor)
        runner.run(block.__aenter__())
        yield
        runner.run(block.__aexit__(None, None, None))
    assert block.complete


BLOCKS = [served(FastAPI), served(Starlette), captured, captured_asynchronously]


@pytest.mark.parametrize("block", BLOCKS)
def test_what_was_accepted_is_evaluated_and_sent_before_the_block_is_left(monitor_of, block):
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    # So rarely that nothing is sent by itself.
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=3_600_000))
    options = TelemetryOptions(tracer_provider=provider)
    monitor = monitor_of(judge=ScriptedJudge(delay=0.1), telemetry=options)
    with block(monitor):
        monitor.submit(CASE)
        assert not exporter.get_finished_spans()
    assert monitor.stats().outcomes == {"evaluated": 1}
    assert len(exporter.get_finished_spans()) > 1
    provider.shutdown()


def test_an_application_may_start_again_with_the_same_monitor(monitor_of):
    monitor = monitor_of()
    app = FastAPI(lifespan=lifespan(monitor))
    for _ in range(2):
        with TestClient(app):
            assert monitor.submit(CASE)
    assert monitor.stats().outcomes == {"evaluated": 2}


@pytest.mark.filterwarnings("ignore:async generator function lifespans")
@pytest.mark.parametrize("form", [asynccontextmanager, lambda function: function])
def test_the_applications_own_lifespan_goes_around_it_and_its_state_is_passed_on(monitor_of, form):
    monitor, seen = monitor_of(judge=ScriptedJudge(delay=0.1)), []

    @form
    async def own(app):
        seen.append(app.title)
        yield {"answer": 42}
        seen.append(monitor.stats().outcomes)

    app = FastAPI(title="mine", lifespan=lifespan(monitor, own))

    @app.get("/")
    def answer(request: Request):
        monitor.submit(CASE)
        return request.state.answer

    with TestClient(app) as client:
        assert client.get("/").json() == 42
    assert seen == ["mine", {"evaluated": 1}]


def test_an_application_that_cannot_start_says_why(monitor_of):
    @asynccontextmanager
    async def own(app):
        raise OSError("no data base")
        yield

    client = TestClient(FastAPI(lifespan=lifespan(monitor_of(), own)))
    with pytest.raises(OSError, match="no data base"), client:
        pass


@pytest.mark.parametrize("options", [{"timeout": 0.05}, {}])
def test_what_takes_longer_than_the_time_there_is_is_counted(monitor_of, caplog, held, options):
    monitor = monitor_of(judge=held, concurrency=1, exit_timeout=30.0 if options else 0.05)
    with served(FastAPI)(monitor, **options):
        monitor.submit(CASE)
        monitor.submit(CASE)
    held.released.set()
    assert (monitor.stats().outcomes, monitor.stats().pending) == ({"shutdown": 2}, 0)
    assert "not every run was evaluated" in caplog.text


def test_a_captured_block_waits_no_longer_than_told_and_hides_no_error(monitor_of, caplog):
    release = threading.Event()

    class Stuck(ScriptedJudge):
        async def evaluate_relevance(self, query, response):
            release.wait(30)
            return await super().evaluate_relevance(query, response)

    monitor = monitor_of(judge=Stuck())
    capture = captured(monitor, 0.01)

    def handler():
        with capture:
            monitor.submit(CASE)
            raise KeyError("the handler's own")

    with pytest.raises(KeyError):
        handler()
    assert capture.complete is False
    assert "not every run was evaluated" in caplog.text
    release.set()
    assert monitor.flush(5.0)


def test_a_provider_that_raises_is_not_noticed(monitor_of):
    class Broken(TracerProvider):
        def force_flush(self, timeout_millis=30000):
            raise ConnectionError("nobody there")

    monitor = monitor_of(telemetry=TelemetryOptions(tracer_provider=Broken()))
    with monitor.capture() as capture:
        monitor.submit(CASE)
    assert capture.complete


async def test_the_event_loop_goes_on_meanwhile_and_an_error_is_not_hidden(monitor_of, held):
    monitor = monitor_of(judge=held)

    async def serve():
        async with monitor.lifespan():
            monitor.submit(CASE)
            # Runs only while the end of the block waits.
            asyncio.get_running_loop().call_later(0.01, held.released.set)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await serve()
    assert monitor.stats().outcomes == {"evaluated": 1}
