"""A judge that keeps failing is left alone for a while, and costs nothing meanwhile."""

import asyncio

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from hand_clock import Clock
from ragaliq import (
    Budget,
    BudgetExceeded,
    CircuitBreaker,
    CircuitOpenError,
    ConfigurationError,
    JudgeAPIError,
    JudgeRefusalError,
    JudgeResponseError,
    JudgeTimeoutError,
    JudgeUsage,
    Monitor,
    RAGTestCase,
)
from ragaliq.errors import JudgeBillingError
from ragaliq.scoring.limits.breaker import Circuit
from ragaliq.scoring.limits.protection import Limits
from ragaliq.scoring.scorer import Scorer
from ragaliq.telemetry.emit import TelemetryOptions
from ragaliq.testing import ScriptedJudge


def circuit(**options):
    clock = Clock()
    return Circuit(CircuitBreaker(failures=2, pause=30.0, **options), clock=clock), clock


def fail(breaker, times=1):
    for _ in range(times):
        breaker.leave(failed=True, is_probe=breaker.enter())


def test_it_opens_after_failures_in_a_row_only():
    breaker, _ = circuit()
    fail(breaker)
    breaker.leave(failed=False, is_probe=breaker.enter())
    fail(breaker)
    assert breaker.state == "closed"
    breaker.leave(failed=None, is_probe=breaker.enter())
    fail(breaker)
    assert breaker.state == "open"


def test_a_failure_that_does_not_pass_opens_it_at_once():
    breaker, _ = circuit()
    breaker.leave(failed=True, is_probe=breaker.enter(), is_lasting=True)
    assert breaker.state == "open"


@pytest.mark.parametrize("error", [JudgeBillingError, JudgeAPIError])
def test_no_credit_opens_it_with_the_first_run(error):
    judge = ScriptedJudge(claims=["a"], failures={"verify_claims": error("broke")})
    with Monitor(judge=judge, metrics=["faithfulness"], mode="inline") as monitor:
        monitor.submit(RAGTestCase(query="q", context=["c"], response="A lamp shines."))
        assert monitor.stats().breaker == ("open" if error is JudgeBillingError else "closed")


def test_after_the_pause_one_probe_is_let_through_and_decides():
    breaker, clock = circuit()
    fail(breaker, 2)
    clock.now = 29.9
    with pytest.raises(CircuitOpenError):
        breaker.enter()
    clock.now = 30.0
    assert breaker.state == "half_open"
    is_probe = breaker.enter()
    with pytest.raises(CircuitOpenError):
        breaker.enter()
    breaker.leave(failed=True, is_probe=is_probe)
    assert breaker.state == "open"
    clock.now = 60.0
    breaker.leave(failed=False, is_probe=breaker.enter())
    assert breaker.state == "closed"
    assert not breaker.enter()


def test_a_probe_that_says_nothing_makes_room_for_another():
    breaker, clock = circuit()
    fail(breaker, 2)
    clock.now = 30.0
    breaker.leave(failed=None, is_probe=breaker.enter())
    assert breaker.enter()


def test_runs_that_were_sent_before_it_opened_neither_close_it_nor_keep_it_open():
    breaker, clock = circuit()
    late = [breaker.enter() for _ in range(2)]
    fail(breaker, 2)
    clock.now = 29.0
    breaker.leave(failed=True, is_probe=late[0])
    breaker.leave(failed=False, is_probe=late[1])
    assert breaker.state == "open"
    clock.now = 30.0
    assert breaker.state == "half_open"


@pytest.mark.parametrize("failure", [JudgeAPIError, JudgeTimeoutError, JudgeResponseError])
def test_a_failing_judge_is_asked_no_more_and_every_run_is_counted(
    monitor_of, case, failure, caplog
):
    heard, exporter = [], InMemorySpanExporter()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    reader = InMemoryMetricReader()
    options = TelemetryOptions(
        tracer_provider=tracers, meter_provider=MeterProvider(metric_readers=[reader])
    )
    judge = ScriptedJudge(failures={"evaluate_relevance": failure("down")})
    monitor = monitor_of(
        judge=judge,
        metrics=["relevance"],
        breaker=CircuitBreaker(failures=3, pause=600.0),
        concurrency=1,
        on_result=heard.append,
        telemetry=options,
    )
    for _ in range(20):
        monitor.submit(case)
    assert monitor.flush(5.0)
    stats = monitor.stats()
    assert judge.call_counts["evaluate_relevance"] == 3
    assert (stats.breaker, stats.unjudged) == ("open", 17)
    assert stats.outcomes == {"evaluated": 20}
    assert sum(stats.evaluations["relevance"].values()) == 20
    assert len(heard) == 20
    left = heard[-1].results["relevance"]
    assert (left.status, left.score, left.error_type) == ("judge_error", None, "CircuitOpenError")
    assert left.usage.requests == 0
    counted = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
    points = {m.name: m.data.data_points for m in counted}["ragaliq.evaluation.count"]
    assert sum(point.value for point in points) == 20
    # Thousands a second would flood what they are sent to.
    assert len([s for s in exporter.get_finished_spans() if s.parent is None]) == 3
    assert caplog.text.count("none is sent") == 1


@pytest.mark.parametrize(
    ("failures", "evaluators", "context"),
    [
        ({"evaluate_relevance": JudgeRefusalError("no")}, ["relevance"], ["c"]),
        ({}, ["relevance"], ["c"]),
        ({"evaluate_relevance": JudgeAPIError("down")}, ["relevance", "faithfulness"], ["c"]),
        ({"extract_statements": JudgeAPIError("down")}, ["faithfulness"], []),
    ],
    ids=["a refusal", "good replies", "another metric works", "the judge is not asked"],
)
def test_what_shows_no_failing_judge_leaves_it_closed(monitor_of, failures, evaluators, context):
    judge = ScriptedJudge(failures=failures)
    breaker = CircuitBreaker(failures=1)
    monitor = monitor_of(judge=judge, metrics=evaluators, breaker=breaker)
    for _ in range(5):
        monitor.submit(RAGTestCase(query="q", context=context, response="Alpha is one."))
    assert monitor.flush(5.0)
    assert (monitor.stats().breaker, monitor.stats().unjudged) == ("closed", 0)


def test_a_judge_that_is_back_is_asked_again(monitor_of, case):
    judge = ScriptedJudge(failures={"evaluate_relevance": [JudgeAPIError("down"), None]})
    pause = 0.05
    breaker = CircuitBreaker(failures=1, pause=pause)
    monitor = monitor_of(judge=judge, metrics=["relevance"], breaker=breaker)
    monitor.submit(case)
    assert monitor.flush(5.0)
    asyncio.run(asyncio.sleep(pause))
    assert monitor.stats().breaker == "half_open"
    monitor.submit(case)
    assert monitor.flush(5.0)
    assert monitor.stats().breaker == "closed"
    assert monitor.stats().evaluations == {"relevance": {"judge_error": 1, "scored": 1}}


def test_none_switches_it_off(monitor_of, case):
    judge = ScriptedJudge(failures={"evaluate_relevance": JudgeAPIError("down")})
    monitor = monitor_of(judge=judge, metrics=["relevance"], breaker=None)
    for _ in range(20):
        monitor.submit(case)
    assert monitor.flush(5.0)
    assert judge.call_counts["evaluate_relevance"] == 20
    assert monitor.stats().breaker == "closed"


@pytest.mark.parametrize("wrong", [{"failures": 0}, {"pause": 0}, {"pause": float("nan")}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(ConfigurationError, match="breaker"):
        CircuitBreaker(**wrong)


async def test_a_probe_that_the_budget_refuses_makes_room_for_another():
    down = JudgeAPIError("down", usage=JudgeUsage(requests=1, input_tokens=10))
    limits = Limits(
        breaker=CircuitBreaker(failures=1, pause=0.05), budget=Budget(tokens_per_hour=5)
    )
    judge = ScriptedJudge(failures={"evaluate_relevance": down})
    scorer = Scorer(judge, ["relevance"], limits=limits)
    case = RAGTestCase(query="q", context=["c"], response="r")
    await scorer.score(case)
    with pytest.raises(CircuitOpenError):
        await scorer.score(case)
    await asyncio.sleep(0.06)
    for _ in range(2):
        with pytest.raises(BudgetExceeded):
            await scorer.score(case)
