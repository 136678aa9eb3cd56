"""Names and values of what is emitted; `test_conversations` compares all of them on the wire."""

import logging

import pytest
from opentelemetry.trace import SpanKind, StatusCode, format_span_id, format_trace_id

import telemetry_page
from ragaliq import RAGTestCase
from ragaliq.telemetry import ContentPolicy, Emitter, names

SECRET = "Zanzibar"
ON = ContentPolicy(on_spans=True, on_events=True)


def taken(attributes):
    left = dict(attributes)
    return left, left.pop


def test_the_root_span_is_a_trace_of_its_own_linked_to_the_target(emit, target):
    (root,) = emit().named("evaluation support")
    assert (root.parent, root.kind) == (None, SpanKind.INTERNAL)
    (link,) = root.links
    assert format_trace_id(link.context.trace_id) == target.trace_id
    assert format_span_id(link.context.span_id) == target.span_id
    assert format_trace_id(root.context.trace_id) != target.trace_id
    left, pop = taken(root.attributes)
    assert pop("openinference.span.kind") == "EVALUATOR"
    assert pop("gen_ai.operation.name") == "evaluation"
    assert pop("gen_ai.response.id") == "msg-1"
    assert pop("session.id") == "s-1"
    assert pop("ragaliq.schema.version") == "1"
    assert pop("ragaliq.target.trace_id") == target.trace_id
    assert pop("ragaliq.target.span_id") == target.span_id
    assert pop("ragaliq.target.run_id") == "run-1"
    assert pop("ragaliq.target.source") == "openinference"
    assert pop("ragaliq.target.model") == "small-1"
    assert pop("ragaliq.pipeline.name") == "support"
    assert pop("ragaliq.framework") == "langchain"
    assert pop("ragaliq.sampling.probability") == 0.25
    assert pop("ragaliq.sampling.reason") == "rate"
    assert pop("ragaliq.evaluation.lag") == 1.5
    for index, (name, score, label, explanation) in enumerate(
        [
            ("faithfulness", 0.5, "fail", "1 of 3 claims supported"),
            ("hallucination", 0.5, "fail", "1 of 3 claims supported"),
            ("relevance", None, "judge_timeout", "judge_timeout"),
        ]
    ):
        prefix = f"evaluations.{index}.evaluation."
        assert pop(prefix + "name") == name
        assert left.pop(prefix + "score", None) == score
        assert pop(prefix + "label") == label
        assert pop(prefix + "explanation") == explanation
        assert pop(prefix + "annotator_kind") == "LLM"
        assert pop(prefix + "identifier") == "claude"
    assert left == {}


def test_without_a_target_there_is_no_link_and_the_source_says_so(emit, run):
    bare = run.model_copy(update={"target": None, "pipeline": "", "framework": ""})
    (root,) = emit(run=bare).named("evaluation")
    assert not root.links
    assert root.attributes["ragaliq.target.source"] == "none"
    assert "ragaliq.target.span_id" not in root.attributes


def test_a_metric_span_is_a_child_with_its_own_attributes(emit):
    sdk = emit()
    (root,) = sdk.named("evaluation support")
    (metric,) = sdk.named("evaluation faithfulness")
    assert metric.parent.span_id == root.context.span_id
    assert metric.end_time - metric.start_time == pytest.approx(0.5e9)
    # All attributes of a measured metric are compared in test_conversations.
    own = {
        "gen_ai.evaluation.explanation": "1 of 3 claims supported",
        "gen_ai.evaluation.score.label": "fail",
        "ragaliq.claim.contradicted": 1,
        "ragaliq.claim.unverified": 1,
        "ragaliq.claim.verdicts": ("SUPPORTED", "CONTRADICTED", "UNVERIFIED"),
        "ragaliq.evaluator.fingerprint": "0a1b",
        "ragaliq.evaluator.type": "llm",
        "ragaliq.judge.model": "claude-x",
        "ragaliq.status": "partial",
    }
    assert own.items() <= metric.attributes.items()
    assert "error.type" not in metric.attributes


def test_claim_spans_come_once_for_metrics_that_share_a_check(emit):
    sdk = emit()
    claims = sdk.claims()
    (metric,) = sdk.named("evaluation faithfulness")
    assert len(claims) == 3
    assert {span.parent.span_id for span in claims} == {metric.context.span_id}
    own = {"ragaliq.claim.confidence": 0.9, "ragaliq.claim.is_unsure": False}
    own |= {"ragaliq.claim.document.ids": ("doc-1", "2")}
    assert own.items() <= claims[0].attributes.items()


def test_with_content_claim_spans_carry_text_and_place(emit):
    span = emit(ON).claims()[0]
    assert span.attributes["ragaliq.claim.text"] == f"{SECRET} is far."
    assert span.attributes["ragaliq.claim.evidence"] == f"{SECRET} lies far away."
    assert span.attributes["ragaliq.claim.explanation"] == f"It says {SECRET}."
    assert span.attributes["ragaliq.claim.answer.start"] == 0
    assert span.attributes["ragaliq.claim.answer.end"] == 16


@pytest.mark.parametrize("detail", ["spans", "arrays"])
def test_by_default_no_text_of_the_application_or_the_judge_leaves(emit, detail):
    sdk = emit(claim_detail=detail)
    emitted = [*map(str, (s.to_json() for s in sdk.spans())), *map(str, sdk.events())]
    assert not [text for text in emitted if SECRET in text]
    carriers = map(telemetry_page.attributes, ("root", "metric", "claim", "event"))
    content = {each.name for carrier in carriers for each in carrier if each.content}
    assert "ragaliq.claim.text" in content
    assert not [each for each in (*sdk.spans(), *sdk.events()) if content & each.attributes.keys()]


def test_only_a_failed_evaluation_is_an_error_never_a_low_score(emit):
    sdk = emit()
    assert not any(span.events for span in sdk.spans())
    codes = {span.name: span.status.status_code for span in sdk.spans()}
    assert codes["evaluation faithfulness"] is StatusCode.UNSET
    assert codes["evaluation relevance"] is StatusCode.ERROR
    assert codes["evaluation support"] is StatusCode.ERROR


def test_there_is_an_event_for_each_metric_in_the_targets_context(emit, target):
    sdk = emit()
    metrics = {
        span.attributes["gen_ai.evaluation.name"]: span
        for span in sdk.spans()
        if "gen_ai.evaluation.name" in span.attributes
    }
    for event in sdk.events():
        assert event.event_name == "gen_ai.evaluation.result"
        assert format_trace_id(event.trace_id) == target.trace_id
        assert format_span_id(event.span_id) == target.span_id
        own = metrics[event.attributes["gen_ai.evaluation.name"]].context
        assert event.attributes["ragaliq.evaluation.trace_id"] == format_trace_id(own.trace_id)
        assert event.attributes["ragaliq.evaluation.span_id"] == format_span_id(own.span_id)
        assert event.attributes["gen_ai.response.id"] == "msg-1"
        assert event.attributes["ragaliq.sampling.probability"] == 0.25
    assert [event.severity_text for event in sdk.events()] == ["INFO", "INFO", "WARN"]


def test_the_event_of_a_failure_has_an_error_type_and_no_score(emit):
    event = emit().events()[2]
    assert event.attributes["error.type"] == "JudgeTimeoutError"
    assert "gen_ai.evaluation.score.value" not in event.attributes
    assert "gen_ai.evaluation.score.label" not in event.attributes


def test_without_a_logger_provider_the_event_is_a_span_event(emit):
    sdk = emit(logger_provider=None)
    (metric,) = sdk.named("evaluation faithfulness")
    (event,) = metric.events
    assert event.name == "gen_ai.evaluation.result"
    # The rest of what it would say is on the span.
    assert not [name for name in event.attributes if name.startswith("ragaliq.")]
    assert (
        event.attributes["gen_ai.evaluation.score.value"]
        == metric.attributes["gen_ai.evaluation.score.value"]
    )
    assert sdk.events() == []


def test_spans_made_by_a_judge_nest_under_the_evaluation(sdk, run):
    tracer = sdk.providers["tracer_provider"].get_tracer("judge")
    with Emitter(options=sdk.options).evaluation(RAGTestCase(query="q", response="r", run=run)):
        tracer.start_span("chat").end()
    (root,), (chat,) = sdk.named("evaluation support"), sdk.named("chat")
    assert chat.parent.span_id == root.context.span_id


def test_a_broken_provider_never_reaches_the_caller_and_is_logged_once(emit, caplog):
    class Broken:
        def get_tracer(self, *args, **kwargs):
            return self

        def start_span(self, *args, **kwargs):
            raise RuntimeError(SECRET)

    with caplog.at_level(logging.WARNING):
        emit(tracer_provider=Broken(), times=3)
    assert len(caplog.records) == 1
    assert SECRET not in caplog.text


def test_each_metric_tells_its_own_chance(emit, run):
    chances = {"faithfulness": 0.5, "hallucination": 0.5, "relevance": 0.02}
    chosen = run.model_copy(
        update={"metric_probabilities": chances, "sampling_rules": ("error", "beta")}
    )
    sdk = emit(run=chosen)
    spans = {span.name: span.attributes for span in sdk.spans()}
    assert spans["evaluation support"]["ragaliq.sampling.rules"] == ("error", "beta")
    for metric, chance in chances.items():
        assert spans[f"evaluation {metric}"]["ragaliq.sampling.probability"] == chance
    assert {
        event.attributes["gen_ai.evaluation.name"]: event.attributes["ragaliq.sampling.probability"]
        for event in sdk.events()
    } == chances


def test_each_signal_says_by_which_version_of_the_conventions_it_is_named(emit):
    scopes = {span.instrumentation_scope for span in emit().spans()}
    assert {scope.schema_url for scope in scopes} == {names.SCHEMA_URL}
