import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from opentelemetry.sdk.trace import TracerProvider

from ragaliq import Monitor
from ragaliq.testing import ScriptedJudge
from ragaliq.traces import RagaliqSpanProcessor

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent / "langchain"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from spans import Spans  # noqa: E402


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
    """An application whose spans are followed by a processor with these arguments, and its runs."""
    made = []

    def build(*, monitor=None, sample_rate=1.0, **options):
        results = []
        if monitor is None:
            on_result = results.append
            monitor = Monitor(judge=ScriptedJudge(), sample_rate=sample_rate, on_result=on_result)
        processor, provider = RagaliqSpanProcessor(monitor, **options), TracerProvider()
        provider.add_span_processor(processor)

        def cases():
            assert processor.force_flush()
            return [result.case for result in sorted(results, key=lambda r: r.run.ended_at)]

        app = Spans(provider)
        held = {"monitor": monitor, "processor": processor, "results": results, "cases": cases}
        made.append(SimpleNamespace(app=app, **held))
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
