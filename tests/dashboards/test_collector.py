"""The collector's settings hang together and keep what ragaliq really emits."""

import re

import pytest
from files import load
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import telemetry_page
from ragaliq import Monitor, RAGTestCase, TelemetryOptions
from ragaliq.telemetry import names
from ragaliq.testing import ScriptedJudge

CASE = RAGTestCase(query="q", context=["Alpha is one."], response="Alpha is one.")


@pytest.fixture(scope="module")
def collector():
    return load("otel-collector.yml")


@pytest.fixture
def policies(collector):
    listed = collector["processors"]["tail_sampling"]["policies"]
    return {policy["name"]: policy for policy in listed}


@pytest.fixture
def spans():
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    options = TelemetryOptions(tracer_provider=provider)
    with provider.get_tracer("application").start_as_current_span("request"):
        monitor = Monitor(judge=ScriptedJudge(), telemetry=options)
        monitor.submit(CASE)
    assert monitor.close(30)
    provider.shutdown()
    return exporter.get_finished_spans()


def test_what_a_pipeline_uses_is_there_and_what_is_there_is_used(collector):
    pipelines = collector["service"]["pipelines"].values()
    for kind in ("receivers", "processors", "exporters"):
        used = {name for pipeline in pipelines for name in pipeline[kind]}
        assert used == collector[kind].keys()


def test_memory_is_limited_first_and_spans_are_batched_after_the_decision(collector):
    for signal, pipeline in collector["service"]["pipelines"].items():
        assert pipeline["processors"][0] == "memory_limiter"
        assert pipeline["processors"][-1] == "batch"
        assert ("tail_sampling" in pipeline["processors"]) == (signal == "traces")


def test_the_first_policy_keeps_evaluations_and_nothing_else(policies, spans):
    policy = policies["evaluations"]["string_attribute"]
    kept = {
        s.context.trace_id for s in spans if s.attributes.get(policy["key"]) in policy["values"]
    }
    by_name = {span.name: span.context.trace_id for span in spans}
    assert kept == {by_name["evaluation"]}
    assert by_name["request"] not in kept


def test_the_sessions_that_are_kept_are_chosen_by_an_attribute_that_evaluations_have(policies):
    (condition,) = policies["whole-sessions"]["ottl_condition"]["span"]
    assert set(re.findall(r'attributes\["([^"]+)"\]', condition)) == {names.SESSION_ID}
    assert names.SESSION_ID in {each.name for each in telemetry_page.attributes("root")}


def test_everything_listens_on_this_machine_alone_until_told_otherwise(collector):
    endpoints = re.findall(r"'endpoint': '([^']+)'", str(collector))
    assert len(endpoints) == 5
    assert all(each.startswith(("localhost:", "${env:")) for each in endpoints)
