"""`configure` sets up a process that has nothing, and leaves any other alone."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PRELUDE = """
import logging
from opentelemetry import _logs, metrics, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from ragaliq import ConfigurationError, telemetry

class Foreign(trace.TracerProvider):
    def get_tracer(self, *args, **kwargs):
        return trace.NoOpTracer()

def configure():
    return telemetry.configure(
        span_exporter=InMemorySpanExporter(),
        log_exporter=InMemoryLogRecordExporter(),
        metric_reader=InMemoryMetricReader(),
    )
"""


def run(code):
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + code],
        # Python 3.12 and later warn of a fork in a process with threads.
        env={"PYTHONPATH": ":".join(sys.path), "PYTHONWARNINGS": "ignore::DeprecationWarning"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(
    ("there", "kind"),
    [
        ("trace.set_tracer_provider(TracerProvider())", "tracer"),
        ("trace.set_tracer_provider(Foreign())", "tracer"),
        ("_logs.set_logger_provider(LoggerProvider())", "logger"),
        ("metrics.set_meter_provider(MeterProvider())", "meter"),
    ],
)
def test_a_process_that_has_a_provider_is_left_as_it_is(there, kind):
    code = f"""
{there}
def providers():
    return trace.get_tracer_provider(), _logs.get_logger_provider(), metrics.get_meter_provider()

before = providers()
try:
    configure()
except ConfigurationError as error:
    print(error)
assert providers() == before
"""
    assert f"{kind} provider already" in run(code)


def test_what_it_returns_is_what_the_process_uses():
    run(
        """
setup = configure()
assert setup.tracer_provider is trace.get_tracer_provider()
assert setup.logger_provider is _logs.get_logger_provider()
assert setup.meter_provider is metrics.get_meter_provider()
assert setup.shutdown()
"""
    )


def test_flushing_exports_the_spans_that_wait():
    code = """
setup = configure()
setup.tracer_provider.get_tracer("shop").start_span("waiting").end()
print(setup.flush(), setup.exports()["spans"].exported)
"""
    assert run(code) == "True 1\n"


def test_a_monitor_made_before_reports_to_what_is_set_up_later():
    run(
        """
from ragaliq import Monitor, RAGTestCase
from ragaliq.testing import ScriptedJudge
case = RAGTestCase(query="q", context=["c"], response="Alpha is one.")
early = Monitor(judge=ScriptedJudge())
early.submit(case)
assert early.flush(30)
reader = InMemoryMetricReader()
setup = telemetry.configure(
    span_exporter=InMemorySpanExporter(),
    log_exporter=InMemoryLogRecordExporter(),
    metric_reader=reader,
)
late = Monitor(judge=ScriptedJudge())
for monitor in (early, late):
    monitor.submit(case)
    assert monitor.close(30)
(resource,) = reader.get_metrics_data().resource_metrics
metrics = {metric.name: metric for scope in resource.scope_metrics for metric in scope.metrics}
points = metrics["ragaliq.run.count"].data.data_points
assert sum(point.value for point in points) == 3
assert metrics["ragaliq.evaluation.count"].data.data_points
assert setup.exports()["spans"].emitted == 2 * 4
assert setup.exports()["events"].emitted == 2 * 2
assert setup.shutdown()
assert setup.exports()["spans"].exported == 2 * 4
"""
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_counts_and_closes_for_itself():
    out = run(
        """
import os
setup = configure()
tracer = setup.tracer_provider.get_tracer("application")
tracer.start_span("parent's").end()
setup._spans._lock.acquire()  # as if another thread were ending a span at this very moment
if os.fork() == 0:
    tracer.start_span("child's").end()
    assert setup.shutdown(20)
    print(setup.exports()["spans"], flush=True)
    os._exit(0)
setup._spans._lock.release()
assert os.wait()[1] == 0
assert setup.shutdown(20)
print(setup.exports()["spans"])
"""
    )
    assert out.splitlines() == ["ExportCounts(emitted=1, exported=1, failed=0)"] * 2
