from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ragaliq import Monitor, RagaliqSpanProcessor
from ragaliq.testing import ScriptedJudge

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent / "langchain"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


@pytest.fixture
def tracing():
    """A tracer provider of the test's own, and what it recorded."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield SimpleNamespace(provider=provider, spans=exporter.get_finished_spans)
    provider.shutdown()


@pytest.fixture
def watched():
    """A monitor, and the cases that handlers gave it."""
    results = []
    monitor = Monitor(judge=ScriptedJudge(), on_result=results.append)

    def cases():
        assert monitor.flush(30)
        return [result.case for result in sorted(results, key=lambda r: r.run.ended_at)]

    yield SimpleNamespace(monitor=monitor, cases=cases, results=results)
    monitor.close(5)


@pytest.fixture
def written(tmp_path):
    """Write a file and give its path."""

    def write(name, content):
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


@pytest.fixture
def processed(tracing):
    """What `RagaliqSpanProcessor` makes of the same spans, with a monitor of its own."""
    results = []
    monitor = Monitor(judge=ScriptedJudge(), on_result=results.append)
    processor = RagaliqSpanProcessor(monitor)
    tracing.provider.add_span_processor(processor)

    def cases():
        assert processor.force_flush()
        return [result.case for result in sorted(results, key=lambda r: r.run.ended_at)]

    yield SimpleNamespace(monitor=monitor, processor=processor, cases=cases, results=results)
    assert processor.errors == 0
    monitor.close(5)


@pytest.fixture
def until():
    """Wait for something that happens on another thread."""

    def wait(condition, timeout=30.0):
        deadline = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < deadline, "it never happened"
            time.sleep(0.005)

    return wait


@pytest.fixture
def following():
    """An application whose spans are followed, by a processor with these arguments."""
    made = []

    def build(*, monitor=None, sample_rate=1.0, on_result=None, **options):
        if monitor is None:
            monitor = Monitor(judge=ScriptedJudge(), sample_rate=sample_rate, on_result=on_result)
        processor, provider = RagaliqSpanProcessor(monitor, **options), TracerProvider()
        provider.add_span_processor(processor)
        from spans import Spans

        made.append(SimpleNamespace(monitor=monitor, processor=processor, app=Spans(provider)))
        return made[-1]

    yield build
    for each in made:
        assert each.processor.errors == 0
        each.monitor.close(5)


@pytest.fixture
def sink():
    """Keeps the records that it is given."""

    class Kept:
        name = "kept"

        def __init__(self):
            self.records = []

        async def write(self, records):
            self.records += records

        async def aclose(self):
            pass

    return Kept()
