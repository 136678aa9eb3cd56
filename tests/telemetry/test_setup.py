"""`configure` sets up a process that has nothing, and leaves any other alone."""

from __future__ import annotations

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
        env={"PYTHONPATH": ":".join(sys.path)},
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
