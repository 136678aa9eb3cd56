"""What is emitted: as chosen, and as the span it is about was sampled."""

import os
from unittest import mock

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
from opentelemetry.trace import format_span_id, format_trace_id

from ragaliq import ConfigurationError, Monitor, RAGTestCase, TelemetryOptions
from ragaliq.telemetry import ContentPolicy, Emitter
from ragaliq.testing import ScriptedJudge


def test_the_environment_chooses_and_an_argument_wins(monkeypatch):
    options = TelemetryOptions()
    chosen = options.relation, options.claim_detail, options.on_unsampled
    assert chosen == ("link", "spans", "metrics")
    monkeypatch.setenv("RAGALIQ_TELEMETRY_RELATION", "Child")
    monkeypatch.setenv("RAGALIQ_TELEMETRY_CLAIM_DETAIL", "arrays")
    monkeypatch.setenv("RAGALIQ_TELEMETRY_ON_UNSAMPLED", "none")
    options = TelemetryOptions(claim_detail="none")
    chosen = options.relation, options.claim_detail, options.on_unsampled
    assert chosen == ("child", "none", "none")


@pytest.mark.parametrize("field", ["relation", "claim_detail", "on_unsampled"])
def test_a_choice_that_does_not_exist_is_refused(monkeypatch, field):
    with pytest.raises(ConfigurationError, match=rf"TelemetryOptions: {field} must be one of"):
        TelemetryOptions(**{field: "sideways"})
    variable = f"RAGALIQ_TELEMETRY_{field.upper()}"
    monkeypatch.setenv(variable, "sideways")
    with pytest.raises(ConfigurationError, match=rf"{variable} must be one of .*'sideways'"):
        Monitor(judge=ScriptedJudge())


def test_as_a_child_the_evaluation_is_in_the_targets_trace_and_has_its_link_too(emit, target):
    (root,) = emit(relation="child").named("evaluation support")
    assert format_trace_id(root.context.trace_id) == target.trace_id
    assert format_span_id(root.parent.span_id) == target.span_id
    (link,) = root.links
    assert format_span_id(link.context.span_id) == target.span_id


def test_claims_as_arrays_are_on_the_metrics_span(emit):
    sdk = emit(claim_detail="arrays")
    (metric,) = sdk.named("evaluation faithfulness")
    assert sdk.claims() == []
    verdicts = ("SUPPORTED", "CONTRADICTED", "UNVERIFIED")
    assert metric.attributes["ragaliq.claim.verdicts"] == verdicts
    assert metric.attributes["ragaliq.claim.confidences"] == (0.9, 0.9, 0.9)
    assert metric.attributes["ragaliq.claim.deciders"] == ("claude",) * 3
    assert "ragaliq.claim.texts" not in metric.attributes
    assert metric.attributes["ragaliq.claims.truncated"] == 0
    assert "ragaliq.claim.confidences" not in sdk.events()[0].attributes
    with_text = emit(ContentPolicy(on_spans=True), claim_detail="arrays")
    metric = with_text.named("evaluation faithfulness")[-1]
    assert metric.attributes["ragaliq.claim.texts"] == ("Zanzibar is far.",) * 3


def test_without_claim_detail_only_counts_are_left(emit):
    sdk = emit(claim_detail="none")
    (metric,) = sdk.named("evaluation faithfulness")
    assert sdk.claims() == []
    assert metric.attributes["ragaliq.claim.total"] == 3
    assert "ragaliq.claim.verdicts" not in metric.attributes
    assert "ragaliq.claim.verdicts" not in sdk.events()[0].attributes


@pytest.fixture
def unsampled(run, target):
    return run.model_copy(update={"target": target.model_copy(update={"trace_flags": 0})})


@pytest.mark.parametrize(
    ("chosen", "emitted"), [({}, (0, 0, 0)), ({"on_unsampled": "all"}, (1, 3, 3))]
)
def test_of_an_unsampled_target_there_are_metrics_and_the_rest_if_asked_for(
    emit, unsampled, chosen, emitted
):
    sdk = emit(run=unsampled, **chosen)
    found = sdk.named("evaluation support"), sdk.claims(), sdk.events()
    assert tuple(map(len, found)) == emitted
    assert "ragaliq.evaluation.score" in sdk.metrics()


def test_of_an_unsampled_target_only_the_bill_if_asked_for(emit, unsampled, results):
    usage = results["relevance"].usage.model_copy(update={"input_tokens": 5})
    paid = results["relevance"].model_copy(update={"usage": usage})
    sdk = emit(run=unsampled, on_unsampled="none", results={"relevance": paid})
    assert (sdk.spans(), sdk.events()) == ((), [])
    assert sdk.metrics().keys() == {"ragaliq.judge.tokens"}


@pytest.mark.parametrize("on_unsampled", ["metrics", "none"])
def test_a_judge_that_traces_itself_begins_no_trace_for_an_unsampled_target(
    sdk, unsampled, on_unsampled
):
    options = TelemetryOptions(on_unsampled=on_unsampled, **sdk.providers)
    tracer = sdk.providers["tracer_provider"].get_tracer("judge")
    with Emitter(options=options).evaluation(RAGTestCase(query="q", response="r", run=unsampled)):
        tracer.start_span("chat").end()
    assert sdk.spans() == ()


def test_a_run_without_a_target_is_emitted_in_full_as_a_root(emit, run):
    bare = run.model_copy(update={"target": None})
    sdk = emit(run=bare, on_unsampled="none", relation="child")
    assert len(sdk.spans()) == 7
    assert sdk.named("evaluation support")[0].parent is None


OTEL = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


def modes(capture=None, **environ):
    with mock.patch.dict(os.environ, environ):
        policy = ContentPolicy.resolve(capture_content=capture)
    return policy.on_spans, policy.on_events


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", (False, False)),
        ("true", (True, True)),
        ("1", (True, True)),
        ("false", (False, False)),
        ("NO_CONTENT", (False, False)),
        ("SPAN_ONLY", (True, False)),
        ("event_only", (False, True)),
        ("SPAN_AND_EVENT", (True, True)),
    ],
)
def test_the_environment_opts_in(value, expected):
    for name in ("RAGALIQ_CAPTURE_CONTENT", OTEL):
        assert modes(**{name: value}) == expected


def test_the_argument_wins_over_ragaliqs_variable_which_wins_over_opentelemetrys():
    assert modes(capture=False, RAGALIQ_CAPTURE_CONTENT="true") == (False, False)
    assert modes(RAGALIQ_CAPTURE_CONTENT="false", **{OTEL: "SPAN_AND_EVENT"}) == (False, False)


@pytest.mark.parametrize("what", ["INPUTS", "OUTPUT_TEXT", "PROMPTS", "EMBEDDINGS_TEXT"])
def test_openinference_hide_variables_force_it_off(what):
    name = f"OPENINFERENCE_HIDE_{what}"
    assert modes(capture=True, **{name: "true"}) == (False, False)
    assert modes(capture=True, **{name: "false"}) == (True, True)


def test_an_unclear_value_is_refused_by_name():
    with pytest.raises(ConfigurationError, match="RAGALIQ_CAPTURE_CONTENT"):
        modes(RAGALIQ_CAPTURE_CONTENT="sometimes")


def test_text_is_cut_with_a_sign_that_it_was():
    policy = ContentPolicy()
    assert policy.text("x" * 5, "claim", 5) == "xxxxx"
    assert policy.text("x" * 6, "claim", 5) == "xxxx…"


def test_redaction_comes_before_cutting():
    seen = []

    def redact(text, kind):
        seen.append((text, kind))
        return text.replace("secret", "[…]")

    assert ContentPolicy(redact=redact).text("a secret" * 9, "evidence", 12) is not None
    assert seen == [("a secret" * 9, "evidence")]


def test_a_failing_redactor_drops_the_text():
    def redact(text, kind):
        raise ValueError(text)

    assert ContentPolicy(redact=redact).text("secret", "claim", 100) is None


SAMPLERS = [ParentBased(ALWAYS_OFF), TraceIdRatioBased(0.01)]


def exporting(**settings):
    """A tracer provider, and what it exports to."""
    exporter, provider = InMemorySpanExporter(), TracerProvider(**settings)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter, provider


@pytest.fixture
def emitted(emit, run):
    def emitted(sampler, target, **choices):
        exporter, provider = exporting(sampler=sampler)
        about = run.model_copy(update={"target": target})
        emit(run=about, tracer_provider=provider, times=10, **choices)
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
    emit, relation, given, project
):
    resource = Resource.create({"service.name": "app", **given})
    exporter, provider = exporting(resource=resource)
    emit(tracer_provider=provider, relation=relation)
    resources = [span.resource.attributes for span in exporter.get_finished_spans()]
    assert {each["openinference.project.name"] for each in resources} == {project}
    assert {each["service.name"] for each in resources} == {"app"}
    exporter.clear()
    provider.get_tracer("ragaliq").start_span("request").end()
    (request,) = exporter.get_finished_spans()
    held = request.resource.attributes.get("openinference.project.name")
    assert held == given.get("openinference.project.name")


def test_under_a_sampler_exactly_the_sampled_requests_have_an_evaluation():
    exporter, provider = exporting(sampler=ParentBased(TraceIdRatioBased(0.3)))
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
