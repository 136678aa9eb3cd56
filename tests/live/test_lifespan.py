"""The lifespan of an application: at its end everything accepted is evaluated."""

import asyncio
from contextlib import asynccontextmanager

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


@pytest.mark.parametrize("application", [FastAPI, Starlette])
def test_what_was_accepted_is_evaluated_and_sent_before_the_application_has_ended(
    monitor_of, application
):
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=3_600_000))
    options = TelemetryOptions(tracer_provider=provider)
    monitor = monitor_of(judge=ScriptedJudge(delay=0.1), telemetry=options)
    with TestClient(application(lifespan=monitor.lifespan)):
        monitor.submit(CASE)
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


def test_what_takes_longer_than_the_time_there_is_is_counted(monitor_of, caplog, held):
    monitor = monitor_of(judge=held, concurrency=1)
    with TestClient(FastAPI(lifespan=lifespan(monitor, timeout=0.05))):
        monitor.submit(CASE)
        monitor.submit(CASE)
    held.released.set()
    stats = monitor.stats()
    assert stats.outcomes == {"shutdown": 2}
    assert stats.pending == 0
    assert "not every run was evaluated" in caplog.text


def test_without_a_time_of_its_own_the_monitors_exit_timeout_holds(monitor_of, held):
    monitor = monitor_of(judge=held, exit_timeout=0.05)
    with TestClient(FastAPI(lifespan=lifespan(monitor))):
        monitor.submit(CASE)
    held.released.set()
    assert monitor.stats().outcomes == {"shutdown": 1}


async def test_the_event_loop_goes_on_meanwhile(monitor_of, held):
    monitor = monitor_of(judge=held)
    async with monitor.lifespan():
        monitor.submit(CASE)
        # Runs only while the end of the block waits.
        asyncio.get_running_loop().call_later(0.01, held.released.set)
    assert monitor.stats().outcomes == {"evaluated": 1}


async def test_an_error_of_the_application_is_not_hidden(monitor_of):
    monitor = monitor_of()

    async def serve():
        async with monitor.lifespan():
            monitor.submit(CASE)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await serve()
    assert monitor.stats().outcomes == {"evaluated": 1}
