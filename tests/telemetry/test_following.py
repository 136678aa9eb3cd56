"""Evaluations are kept or dropped as the span they are about, not by a second throw of the dice."""

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    ALWAYS_ON,
    ParentBased,
    TraceIdRatioBased,
)

from ragaliq import Monitor, RAGTestCase, TelemetryOptions
from ragaliq.telemetry import Emitter
from ragaliq.testing import ScriptedJudge

SAMPLERS = [ParentBased(ALWAYS_OFF), TraceIdRatioBased(0.01)]


@pytest.fixture
def emitted(run, results):
    def emitted(sampler, target, **choices):
        exporter, provider = InMemorySpanExporter(), TracerProvider(sampler=sampler)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        emitter = Emitter(options=TelemetryOptions(tracer_provider=provider, **choices))
        for _ in range(10):
            about = run.model_copy(update={"target": target})
            with emitter.evaluation(about) as emission:
                emission.record(results)
        assert provider.get_tracer("ragaliq").sampler is sampler
        return [span.name for span in exporter.get_finished_spans()]

    return emitted


@pytest.mark.parametrize("relation", ["link", "child"])
@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: sampler.get_description())
@pytest.mark.parametrize("sampled", [1, 0])
def test_every_evaluation_of_a_sampled_span_is_recorded_whole_and_of_others_if_asked_for(
    emitted, target, sampler, relation, sampled
):
    about = target.model_copy(update={"trace_flags": sampled})
    on_unsampled = "metrics" if sampled else "all"
    names = emitted(sampler, about, relation=relation, on_unsampled=on_unsampled)
    assert len(names) == 10 * 7


@pytest.mark.parametrize("on_unsampled", ["metrics", "all"])
def test_without_a_target_the_applications_sampler_decides(emitted, on_unsampled):
    assert emitted(ParentBased(ALWAYS_OFF), None, on_unsampled=on_unsampled) == []
    assert len(emitted(ParentBased(ALWAYS_ON), None, on_unsampled=on_unsampled)) == 70


@pytest.mark.parametrize(
    ("relation", "given", "project"),
    [
        ("link", {"openinference.project.name": "shop"}, "shop-evaluations"),
        ("link", {}, "default-evaluations"),
        ("child", {"openinference.project.name": "shop"}, "shop"),
    ],
)
def test_evaluations_of_their_own_trace_are_in_a_project_of_their_own(
    run, results, relation, given, project
):
    exporter = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource.create({"service.name": "app", **given}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    emitter = Emitter(options=TelemetryOptions(tracer_provider=provider, relation=relation))
    with emitter.evaluation(run) as emission:
        emission.record(results)
    resources = [span.resource.attributes for span in exporter.get_finished_spans()]
    assert {each["openinference.project.name"] for each in resources} == {project}
    assert {each["service.name"] for each in resources} == {"app"}
    exporter.clear()
    provider.get_tracer("ragaliq").start_span("request").end()
    (request,) = exporter.get_finished_spans()
    held = request.resource.attributes.get("openinference.project.name")
    assert held == given.get("openinference.project.name")


def test_under_a_sampler_exactly_the_sampled_requests_have_an_evaluation():
    exporter = InMemorySpanExporter()
    provider = TracerProvider(sampler=ParentBased(TraceIdRatioBased(0.3)))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monitor = Monitor(judge=ScriptedJudge(), telemetry=TelemetryOptions(tracer_provider=provider))
    case = RAGTestCase(query="q", context=["c"], response="Alpha is one.")
    tracer = provider.get_tracer("application")
    for _ in range(60):
        with tracer.start_as_current_span("request"):
            monitor.submit(case)
    assert monitor.close(30.0)
    assert monitor.stats().outcomes == {"evaluated": 60}
    spans = exporter.get_finished_spans()
    requests = [span.context.span_id for span in spans if span.name == "request"]
    linked = [link.context.span_id for span in spans for link in span.links]
    assert 0 < len(requests) < 60
    assert sorted(linked) == sorted(requests)
