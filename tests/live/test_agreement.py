"""A monitor measures how the judges of a cascade get on."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from ragaliq import CascadeJudge, LocalJudge, Monitor, RAGTestCase, TelemetryOptions
from ragaliq.testing import ScriptedJudge

CASE = RAGTestCase(
    query="When is it open?",
    context=["The shop is open from nine to five."],
    response="The shop is open from nine to five. It sells purple cars.",
)


@pytest.fixture
def measured():
    def measure(judge):
        reader = InMemoryMetricReader()
        telemetry = TelemetryOptions(meter_provider=MeterProvider([reader]))
        with Monitor(judge=judge, telemetry=telemetry, evaluators=["faithfulness"]) as monitor:
            for number in range(3):
                monitor.submit(CASE, run_id=str(number))
            assert monitor.flush(60)
            assert monitor.stats().outcomes == {"evaluated": 3}
        found = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
        points = [m.data.data_points for m in found if m.name == "ragaliq.judge.agreement"]
        return [(dict(point.attributes), point.value) for group in points for point in group]

    return measure


def test_agreement_is_a_metric(measured):
    better = ScriptedJudge(verdicts="SUPPORTED")
    better.name = "better"
    assert measured(CascadeJudge(LocalJudge(), better)) == [
        (
            {
                "ragaliq.judge.first": "local",
                "ragaliq.judge.second": "better",
                "ragaliq.claim.route": "escalated",
            },
            0.5,
        )
    ]


def test_a_judge_without_agreement_measures_none(measured):
    assert measured(LocalJudge()) == []


@pytest.mark.parametrize("means", [lambda self: 1 / 0, lambda self: 0.7, "a word"])
def test_a_judge_that_means_something_else_by_it_is_left_alone(measured, means):
    judge = type("Odd", (ScriptedJudge,), {"agreement": means})()
    assert measured(judge) == []
