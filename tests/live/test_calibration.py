"""A monitor whose judge is calibrated: by argument, by the environment, in a process of its own."""

import asyncio

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from ragaliq import (
    CalibratedJudge,
    CascadeJudge,
    ConfigurationError,
    LocalJudge,
    Monitor,
    RAGTestCase,
    TelemetryOptions,
)
from ragaliq.judges.calibration import raw_support
from ragaliq.lab.calibration import fit_calibration, level_calibration
from ragaliq.testing import ScriptedJudge

CASE = RAGTestCase(
    query="When is the shop open?",
    context=["The shop is open from nine to five."],
    response="The shop is open from nine to five.",
)


@pytest.fixture
def calibration():
    support = [index / 200 for index in range(200)]
    labels = [(x > 0.5) != (index % 10 == 0) for index, x in enumerate(support)]
    return fit_calibration(LocalJudge(), support, labels)


def judged_by(**settings):
    found = []
    with Monitor(on_result=found.append, **settings) as monitor:
        monitor.submit(CASE)
        assert monitor.flush(60)
    return found[0].results


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_live_results_carry_the_calibration_in_either_executor(calibration, executor):
    results = judged_by(calibration=calibration, executor=executor)
    faithfulness = results["faithfulness"]
    assert faithfulness.calibration == calibration.id
    assert [claim.calibration for claim in faithfulness.claims] == [calibration.id]
    raw = LocalJudge().verify_claim(CASE.response, CASE.context_texts)
    chance = calibration.support(raw_support(asyncio.run(raw)))
    assert faithfulness.claims[0].confidence == pytest.approx(chance, abs=1e-4)


def test_a_calibration_may_come_from_the_environment(calibration, tmp_path, monkeypatch):
    calibration.save(tmp_path / "cal.json")
    monkeypatch.setenv("RAGALIQ_CALIBRATION", str(tmp_path / "cal.json"))
    assert judged_by(executor="thread")["faithfulness"].calibration == calibration.id


def test_a_judge_that_is_calibrated_wins_over_the_environment(calibration, monkeypatch):
    monkeypatch.setenv("RAGALIQ_CALIBRATION", "of-another-judge.json")
    with Monitor(judge=CalibratedJudge(LocalJudge(), calibration)) as monitor:
        assert monitor.judge.calibration == calibration.id


def test_a_calibration_that_cannot_be_used_is_refused_when_the_monitor_is_built(calibration):
    changed = calibration.model_copy(update={"fingerprint": "0" * 16})
    with pytest.raises(ConfigurationError, match="cannot be used"):
        Monitor(calibration=changed)
    with pytest.raises(ConfigurationError, match=r"missing\.json: No such file"):
        Monitor(calibration="missing.json")
    with pytest.raises(ConfigurationError, match="is calibrated already"):
        Monitor(judge=CalibratedJudge(LocalJudge(), calibration), calibration=calibration)


CLAIMS = ("The shop is open from nine to five.", "It sells maps.", "A map costs 3 euros.")
VERBATIM = RAGTestCase(query="When?", context=[" ".join(CLAIMS)], response=" ".join(CLAIMS))


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_a_monitor_says_once_for_each_pipeline_how_far_its_level_is(caplog, executor):
    names = [f"{executor}-{number}" for number in range(3)]
    with Monitor(executor=executor, max_queue=1000) as monitor:
        for name, runs in zip(names, (99, 100, 120), strict=True):
            for _ in range(runs):  # of three claims each
                monitor.submit(VERBATIM, pipeline=name)
        assert monitor.flush(60)
    said = [record.getMessage() for record in caplog.records if "level" in record.getMessage()]
    assert len(said) == 2
    for name, message in zip(names[1:], said, strict=True):
        command = f"`ragaliq calibrate --unlabelled STORE --pipeline {name} -o level.json`"
        assert command in message
        assert "in force is 0.50" in message
        assert "maps" not in message


def test_a_monitor_whose_threshold_fits_its_claims_says_nothing(caplog):
    raw = asyncio.run(LocalJudge().verify_claims(list(CLAIMS), VERBATIM.context_texts))
    calibration = level_calibration(LocalJudge(), [*map(raw_support, raw.verdicts)] * 100)
    with Monitor(executor="thread", calibration=calibration) as monitor:
        for _ in range(100):
            monitor.submit(VERBATIM, pipeline="fits")
        assert monitor.flush(60)
        assert monitor.judge.min_support == calibration.min_support > 0.6
    assert "level" not in caplog.text


UNSURE = CASE.model_copy(update={"response": f"{CASE.response} It sells purple cars."})


@pytest.fixture
def measured():
    """What a monitor measures of how the judges of a cascade agree."""

    def measure(judge):
        reader = InMemoryMetricReader()
        telemetry = TelemetryOptions(meter_provider=MeterProvider([reader]))
        with Monitor(judge=judge, telemetry=telemetry, metrics=["faithfulness"]) as monitor:
            for number in range(3):
                monitor.submit(UNSURE, run_id=str(number))
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


@pytest.mark.parametrize("means", [None, lambda self: 1 / 0, lambda self: 0.7, "a word"])
def test_a_judge_without_agreement_or_that_means_something_else_by_it_measures_none(
    measured, means
):
    odd = type("Odd", (ScriptedJudge,), {"agreement": means})
    assert measured(LocalJudge() if means is None else odd()) == []
