"""The chance of a run and of each of its metrics is on the wire."""

from __future__ import annotations

from ragaliq.telemetry import names


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


def test_without_chances_of_their_own_metrics_tell_none(emit):
    spans = {span.name: span.attributes for span in emit().spans()}
    assert "ragaliq.sampling.rules" not in spans["evaluation support"]
    assert "ragaliq.sampling.probability" not in spans["evaluation relevance"]


def test_an_event_says_the_runs_chance_and_pipeline_by_itself(emit, run):
    sdk = emit(run=run.model_copy(update={"sampling_probability": 0.25}))
    for event in sdk.events():
        assert event.attributes["ragaliq.sampling.probability"] == 0.25
        assert event.attributes["ragaliq.pipeline.name"] == run.pipeline


def test_each_signal_says_by_which_version_of_the_conventions_it_is_named(emit):
    scopes = {span.instrumentation_scope for span in emit().spans()}
    assert {scope.schema_url for scope in scopes} == {names.SCHEMA_URL}
