"""What fails is told apart from what is bad, and takes nothing else with it."""

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.trace import StatusCode, TracerProvider

from ragaliq import (
    ContextChunk,
    JudgeRefusalError,
    Monitor,
    RAGTestCase,
    ScoringPolicy,
    Status,
)
from ragaliq.telemetry import ContentPolicy, Emitter
from ragaliq.testing import ScriptedJudge

SCORE = ("gen_ai.evaluation.score.value", "gen_ai.evaluation.score.label", "ragaliq.passed")


def test_a_judges_failure_has_no_score_on_the_wire_whatever_the_policy_makes_of_it(
    sdk, secret_case
):
    judge = ScriptedJudge(failures={"extract_statements": JudgeRefusalError("no")})
    policy = ScoringPolicy.PROMPTFOO
    monitor = Monitor(judge=judge, metrics=["faithfulness"], policy=policy, telemetry=sdk.options)
    monitor.submit(secret_case)
    assert monitor.close(5.0)
    (event,) = sdk.events()
    (metric,) = sdk.named("evaluation faithfulness")
    (root,) = sdk.named("evaluation")
    for attributes in (event.attributes, metric.attributes):
        assert not [name for name in SCORE if name in attributes]
        assert attributes["error.type"] == "JudgeRefusalError"
    assert root.attributes["evaluations.0.evaluation.label"] == "judge_refused"
    assert "evaluations.0.evaluation.score" not in root.attributes


def test_an_undefined_score_is_neither_a_pass_nor_a_fail(emit, sdk, results):
    undefined = results["faithfulness"].model_copy(
        update={"score": float("nan"), "status": Status.NO_CLAIMS, "claims": ()}
    )
    emit(results={"faithfulness": undefined})
    (metric,) = sdk.named("evaluation faithfulness")
    assert not [name for name in SCORE if name in metric.attributes]
    assert metric.status.status_code is StatusCode.UNSET


def test_a_redactor_that_returns_no_text_drops_the_text_and_nothing_else(emit, sdk, results):
    content = ContentPolicy(on_spans=True, on_events=True, redact=lambda text, kind: 7)
    emit(content)
    assert [event.attributes["gen_ai.evaluation.name"] for event in sdk.events()] == list(results)
    (metric,) = sdk.named("evaluation faithfulness")
    assert "gen_ai.evaluation.explanation" not in metric.attributes
    assert metric.attributes["gen_ai.evaluation.score.value"] == 0.5
    assert "ragaliq.claim.text" not in sdk.claims()[0].attributes


def test_a_metric_that_cannot_be_recorded_does_not_keep_the_others_back(emit, sdk, results):
    broken = results["faithfulness"].model_copy(update={"duration": "long"})
    emit(results={**results, "faithfulness": broken})
    assert sdk.named("evaluation hallucination")
    assert sdk.named("evaluation relevance")
    assert len(sdk.events()) == 2


@pytest.mark.parametrize("seconds", [float("nan"), -1.0, 1e12])
def test_an_impossible_duration_costs_no_span_and_no_export(emit, sdk, results, seconds):
    result = results["faithfulness"].model_copy(update={"duration": seconds})
    emit(results={"faithfulness": result})
    assert len(sdk.named("evaluation faithfulness")) == len(sdk.events()) == 1
    assert encode_spans(sdk.spans()).ByteSize() > 0


class BrokenTracerProvider(TracerProvider):
    def get_tracer(self, *args, **kwargs):
        raise RuntimeError("broken")


def test_events_arrive_where_no_span_can_be_started(emit, run, results):
    sdk = emit(tracer_provider=BrokenTracerProvider())
    assert len(sdk.events()) == len(results)
    assert {event.span_id for event in sdk.events()} == {int(run.target.span_id, 16)}


@pytest.mark.parametrize("secret", [ValueError("Zanzibar"), GeneratorExit("Zanzibar")])
def test_an_evaluation_that_comes_to_nothing_is_an_error_without_a_quote(sdk, run, secret):
    with (
        pytest.raises(type(secret)),
        Emitter(options=sdk.options).evaluation(RAGTestCase(query="q", response="r", run=run)),
    ):
        raise secret
    (root,) = sdk.named("evaluation support")
    assert root.status.status_code is StatusCode.ERROR
    assert not root.events
    assert "Zanzibar" not in root.to_json()


def test_an_event_names_no_evaluation_span_where_there_is_none(emit):
    sdk = emit(tracer_provider=None)
    assert len(sdk.events()) == 3
    assert not [e for e in sdk.events() if "ragaliq.evaluation.span_id" in e.attributes]


def test_text_that_is_no_valid_unicode_does_not_stop_an_exporter(sdk):
    broken = "Alpha \ud800 is."
    case = RAGTestCase(
        id=broken, query="q", context=[ContextChunk(text=broken, id=broken)], response=broken
    )
    monitor = Monitor(judge=ScriptedJudge(), capture_content=True, telemetry=sdk.options)
    monitor.submit(case, pipeline=broken)
    assert monitor.close(5.0)
    (claim,) = sdk.claims()
    assert claim.attributes["ragaliq.claim.text"] == "Alpha ? is."
    assert claim.attributes["ragaliq.claim.document.ids"] == ("Alpha ? is.",)
    assert encode_spans(sdk.spans()).SerializeToString()
