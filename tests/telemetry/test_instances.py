"""Each process that `configure` sets up can be told from the others of its service."""

from __future__ import annotations

import os
import subprocess
import sys

SAY = """
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter as Spans
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter as Logs
from opentelemetry.sdk.metrics.export import InMemoryMetricReader as Metrics
from ragaliq.telemetry import configure

setup = configure(
    service_name="shop", span_exporter=Spans(), log_exporter=Logs(), metric_reader=Metrics()
)
resource = setup.tracer_provider.resource.attributes
print(resource["service.name"], resource["service.instance.id"])
"""


def said(**environment):
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_")}
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", SAY],
        env=inherited | paths | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_processes_of_a_service_have_instance_ids_of_their_own():
    (name, one), (_, other) = said(), said()
    assert name == "shop"
    assert one != other


def test_an_instance_id_from_the_environment_stands():
    assert said(OTEL_RESOURCE_ATTRIBUTES="service.instance.id=pod-7") == ["shop", "pod-7"]
