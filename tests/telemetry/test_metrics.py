"""What is measured: instruments, units, attributes and exemplars."""

from unittest import mock

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import Gauge, Histogram, Sum
from opentelemetry.trace import format_span_id, format_trace_id

import telemetry_page
from ragaliq import (
    Budget,
    JudgeUsage,
    Monitor,
    RateLimits,
    SinkError,
    Status,
    TelemetryOptions,
)
from ragaliq.telemetry import Emitter, names
from ragaliq.testing import ScriptedJudge

SECRET = "Zanzibar"


def points(metric):
    """A metric's points: attributes to value, or to (count, sum) of a histogram."""
    return {
        tuple(sorted(point.attributes.items())): (
            (point.count, point.sum) if isinstance(metric.data, Histogram) else point.value
        )
        for point in metric.data.data_points
    }


def key(**attributes):
    return tuple(
        sorted({getattr(names, name): value for name, value in attributes.items()}.items())
    )


SHARED = {"EVALUATOR_ID": "claude", "PIPELINE_NAME": "support"}
EPOCH = {**SHARED, "EVALUATOR_FINGERPRINT": "0a1b"}


def test_scores_are_recorded_where_there_are_any(emit):
    assert points(emit().metrics()["ragaliq.evaluation.score"]) == {
        key(EVALUATION_NAME="faithfulness", **EPOCH): (1, 0.5),
        key(EVALUATION_NAME="hallucination", **EPOCH): (1, 0.5),
    }


def test_evaluations_are_counted_by_status_and_label(emit):
    assert points(emit().metrics()["ragaliq.evaluation.count"]) == {
        key(EVALUATION_NAME=name, STATUS="partial", EVALUATION_LABEL="fail", **EPOCH): 1
        for name in ("faithfulness", "hallucination")
    } | {key(EVALUATION_NAME="relevance", STATUS="judge_timeout", **EPOCH): 1}


@pytest.mark.parametrize("status", ["answer_refused", "answer_withheld"])
def test_declines_are_counted_by_whether_the_context_held_the_answer(emit, results, status):
    declined = results["relevance"].model_copy(update={"status": Status(status), "error": None})
    assert points(emit(results={"relevance": declined}).metrics()["ragaliq.evaluation.count"]) == {
        key(EVALUATION_NAME="relevance", STATUS=status, **EPOCH): 1
    }


def test_claims_that_metrics_share_are_counted_once(emit):
    assert points(emit().metrics()["ragaliq.claim.count"]) == {
        key(CLAIM_VERDICT=verdict, CLAIM_DECIDED_BY="claude", PIPELINE_NAME="support"): 1
        for verdict in ("SUPPORTED", "CONTRADICTED", "UNVERIFIED")
    }


def test_times_are_in_seconds(emit):
    measured = emit().metrics()
    assert points(measured["ragaliq.evaluation.lag"]) == {key(PIPELINE_NAME="support"): (1, 1.5)}
    assert points(measured["ragaliq.evaluation.duration"]) == {
        key(EVALUATION_NAME=name, **SHARED): (1, 0.5) for name in ("faithfulness", "hallucination")
    }


def test_tokens_and_money_are_counted_also_for_failures(emit, results):
    usage = JudgeUsage(input_tokens=7, output_tokens=3, cache_read_tokens=2, cost_usd=0.25)
    failed = results["relevance"].model_copy(update={"usage": usage})
    measured = emit(results={"relevance": failed}).metrics()
    judge = {"JUDGE_MODEL": "claude-x", **SHARED}
    assert points(measured["ragaliq.judge.tokens"]) == {
        key(TOKEN_TYPE="input", **judge): 7,
        key(TOKEN_TYPE="output", **judge): 3,
        key(TOKEN_TYPE="cache_read", **judge): 2,
    }
    assert points(measured["ragaliq.judge.cost"]) == {key(**judge): 0.25}
    unknown = failed.model_copy(update={"usage": JudgeUsage(cost_usd=None)})
    measured = emit(results={"relevance": unknown}).metrics()
    assert points(measured["ragaliq.judge.cost"]) == {key(**judge): 0.25}


def test_what_a_policy_says_of_an_answer_without_claims_is_no_measurement(emit, results):
    empty = results["faithfulness"].model_copy(
        update={"status": Status.NO_CLAIMS, "score": 1.0, "passed": True, "claims": ()}
    )
    measured = emit(results={"faithfulness": empty}).metrics()
    assert "ragaliq.evaluation.score" not in measured
    assert measured["ragaliq.evaluation.count"].data.data_points[0].value == 1


def test_failures_of_the_storage_of_shared_limits_are_counted(sdk, secret_case):
    shared = {"storage": "redis://127.0.0.1:1/0"}
    monitor = Monitor(
        judge=ScriptedJudge(),
        metrics=["relevance"],
        budget=Budget(tokens_per_day=1000, **shared),
        judge_limits=RateLimits(requests_per_minute=5, **shared),
        telemetry=sdk.options,
    )
    monitor.submit(secret_case)
    assert monitor.flush(10.0)
    assert monitor.stats().limits_storage == "unavailable"
    assert monitor.stats().outcomes == {"evaluated": 1}
    monitor.close()
    counted = points(sdk.metrics()["ragaliq.limits.storage.errors"])
    assert counted[key(ERROR_TYPE="ConnectionError")] >= 2


def test_what_a_monitors_sink_could_not_store_is_counted(sdk, secret_case):
    class Full:
        name = "full"

        async def write(self, records):
            raise SinkError("no room", kind="full", permanent=True)

        async def aclose(self):
            pass

    monitor = Monitor(judge=ScriptedJudge(), sinks=[Full()], telemetry=sdk.options)
    monitor.submit(secret_case)
    monitor.close(20.0)
    errors = points(sdk.metrics()["ragaliq.sink.errors"])
    assert errors == {key(SINK_NAME="full", ERROR_TYPE="full"): 1}


@pytest.mark.parametrize("name", ["ragaliq.evaluation.score", "ragaliq.evaluation.count"])
def test_exemplars_point_at_the_evaluated_span(emit, target, name):
    for point in emit().metrics()[name].data.data_points:
        (exemplar,) = point.exemplars
        assert format_trace_id(exemplar.trace_id) == target.trace_id
        assert format_span_id(exemplar.span_id) == target.span_id


def test_an_unsampled_target_is_no_exemplar(emit, run, target):
    unsampled = target.model_copy(update={"trace_flags": 0})
    measured = emit(run=run.model_copy(update={"target": unsampled})).metrics()
    points = measured["ragaliq.evaluation.score"].data.data_points
    assert len(points) == 2
    assert not any(point.exemplars for point in points)


def test_instruments_are_as_the_page_says(emit, results, sdk):
    emitter = Emitter(options=sdk.options)
    described = telemetry_page.metrics()
    apart = [each for each in described if not each.name.startswith("ragaliq.evaluation.")]
    for metric in apart:
        emitter.metrics.record(metric.name, 0.5, dict.fromkeys(metric.attributes, "x"))
    emitter.watch(_Queue(), _Counts({"evaluated": 1}), owner=emitter)
    usage = JudgeUsage(input_tokens=1, cost_usd=0.1)
    spent = results["faithfulness"].model_copy(update={"usage": usage})
    measured = emit(results={"faithfulness": spent}).metrics()
    assert measured.keys() == {metric.name for metric in described}
    for metric in described:
        got = measured[metric.name]
        assert (got.unit, got.description) == (metric.unit, metric.description)
        is_histogram = metric.instrument == "histogram"
        kinds = {"histogram": Histogram, "gauge": Gauge}
        assert isinstance(got.data, kinds.get(metric.instrument, Sum))
        if isinstance(got.data, Sum):
            assert got.data.is_monotonic is ("up-down" not in metric.instrument)
        for point in got.data.data_points:
            assert set(point.attributes) <= set(metric.attributes)
            assert SECRET not in str(point)
            if is_histogram:
                assert len(point.explicit_bounds) > 10


class _Queue:
    size = 3


class _Counts:
    pending = 0

    def __init__(self, outcomes):
        self.outcomes = outcomes

    def snapshot(self):
        return self

    def skipped(self):
        return {("incomplete_run", "errored", "support"): 1}


def test_a_thousand_pipelines_make_a_hundred_and_one_series(sdk):
    emitter = Emitter(options=sdk.options)
    for number in range(1000):
        emitter.metrics.evaluated(f"pipeline {number}", {}, lag=0.1, target=Context())
    points = sdk.metrics()["ragaliq.evaluation.lag"].data.data_points
    assert len(points) == 101
    assert {p.count for p in points if p.attributes["ragaliq.pipeline.name"] == "_OTHER"} == {900}


class _Broken(MeterProvider):
    def get_meter(self, *args, **kwargs):
        raise RuntimeError(SECRET)


class _BrokenInstruments(MeterProvider):
    def get_meter(self, *args, **kwargs):
        return mock.MagicMock(
            **{
                f"create_{kind}.return_value.{verb}.side_effect": RuntimeError(SECRET)
                for kind, verb in (("counter", "add"), ("histogram", "record"))
            }
        )


@pytest.mark.parametrize("meters", [_Broken, _BrokenInstruments])
def test_a_broken_meter_provider_takes_nothing_else_with_it_and_is_logged_once(
    emit, caplog, meters
):
    assert len(emit(meter_provider=meters()).events()) == 3
    assert len(caplog.records) == 1
    emitter = Emitter(options=TelemetryOptions(meter_provider=meters()))
    emitter.watch(_Queue(), _Counts({}), owner=emitter)
    assert SECRET not in caplog.text


def test_what_is_left_of_a_budget_is_measured_after_each_run_and_when_there_is_nothing(
    sdk, secret_case
):
    judge = ScriptedJudge(usage=JudgeUsage(requests=1, input_tokens=30))
    monitor = Monitor(
        judge=judge,
        metrics=["relevance"],
        budget=Budget(tokens_per_hour=40, tokens_per_day=300),
        telemetry=sdk.options,
    )
    for outcomes, left in (
        ({"evaluated": 1}, (0.25, 0.9)),
        ({"evaluated": 1, "over_budget": 1}, (0.25, 0.9)),
    ):
        monitor.submit(secret_case)
        assert monitor.flush(10.0)
        assert monitor.stats().outcomes == outcomes
        assert points(sdk.metrics()["ragaliq.budget.left"]) == {
            key(BUDGET_LIMIT="tokens_per_hour"): left[0],
            key(BUDGET_LIMIT="tokens_per_day"): left[1],
        }
    monitor.close()
