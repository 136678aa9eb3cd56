"""A monitor, its choices, and what it makes of a case."""

import asyncio
import copy
import pickle
import threading
import uuid

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from ragaliq import (
    ConfigurationError,
    FaithfulnessEvaluator,
    Monitor,
    OnCondition,
    RAGTestCase,
    Sampling,
    is_suppressed,
    suppress,
)
from ragaliq.testing import PlainScriptedJudge, ScriptedJudge


def test_a_submitted_case_is_evaluated_and_reported(monitor_of, case):
    got = []
    monitor = monitor_of(on_result=got.append)
    assert monitor.submit(case, pipeline="support")
    assert monitor.flush(5.0)
    (result,) = got
    assert result.case == case.model_copy(update={"run": result.run})
    assert result.results["faithfulness"].score == 0.5
    assert (result.pipeline, result.sampling_probability, result.target) == ("support", 1.0, None)
    assert result.lag >= 0
    stats = monitor.stats()
    assert stats.outcomes == {"evaluated": 1}
    assert stats.evaluations == {"faithfulness": {"scored": 1}, "relevance": {"scored": 1}}


@pytest.mark.parametrize(
    "error",
    [ValueError("Zanzibar"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()],
)
def test_a_raising_callback_is_counted_each_time_logged_once_and_the_next_run_goes_on(
    monitor_of, case, error, caplog
):
    async def on_result(_):
        raise error

    monitor = monitor_of(on_result=on_result)
    for _ in range(20):
        monitor.submit(case)
    assert monitor.flush(5.0)
    assert monitor.stats().callback_errors == 20
    assert monitor.stats().outcomes == {"evaluated": 20}
    assert caplog.text.count(f"on_result raised: {type(error).__name__}") == 1
    assert "Zanzibar" not in caplog.text


def test_a_judge_that_never_answers_is_a_timeout(monitor_of, case):
    class Silent(ScriptedJudge):
        async def evaluate_relevance(self, query, response):
            await asyncio.Event().wait()

    monitor = monitor_of(judge=Silent(), deadline=0.5)
    monitor.submit(case)
    assert monitor.flush(5.0)
    assert monitor.stats().evaluations["relevance"] == {"judge_timeout": 1}
    assert monitor.stats().evaluations["faithfulness"] == {"scored": 1}


def test_a_case_without_context_ends_as_no_context_where_every_metric_needs_one(monitor_of):
    monitor = monitor_of(metrics=["faithfulness", "hallucination"])
    monitor.submit(RAGTestCase(query="q", response="It is so."))
    assert monitor.flush(5.0)
    assert monitor.stats().outcomes == {"no_context": 1}


def test_a_copied_monitor_is_the_same_monitor(monitor_of):
    monitor = monitor_of()
    assert copy.copy(monitor) is copy.deepcopy(monitor) is monitor


def test_a_monitor_sent_to_another_process_says_to_build_one_there(monitor_of):
    with pytest.raises(TypeError, match=r"a Monitor .* cannot be pickled .*; build one there"):
        pickle.dumps(monitor_of())


def test_a_run_ended_by_the_garbage_collector_while_counts_are_read_is_counted(monitor_of):
    monitor = monitor_of()
    handle = monitor.begin("dropped half-read")

    def end_under_the_lock():
        with monitor.counters._lock:
            handle.discard("truncated")

    thread = threading.Thread(target=end_under_the_lock, daemon=True)
    thread.start()
    thread.join(5.0)
    assert not thread.is_alive()
    assert monitor.stats().incomplete == {"truncated": 1}


def test_a_run_carries_the_probability_it_had(monitor_of, case):
    got = []
    judge = ScriptedJudge()
    monitor = monitor_of(judge=judge, sample_rate=0.5, on_result=got.append)
    for i in range(40):
        monitor.submit(case, run_id=f"run-{i}")
    assert monitor.flush(5.0)
    stats = monitor.stats()
    assert 0 < len(got) < 40
    assert {result.sampling_probability for result in got} == {0.5}
    assert stats.outcomes == {"evaluated": len(got), "sampled_out": 40 - len(got)}
    assert set(judge.call_counts.values()) == {len(got)}  # those sampled out are never judged


def test_runs_of_one_trace_are_sampled_together(monitor_of, case):
    monitor = monitor_of(sample_rate=0.5)
    tracer = TracerProvider().get_tracer("app")
    for _ in range(20):
        with tracer.start_as_current_span("request"):
            decisions = {monitor.submit(case, run_id=f"run-{i}") for i in range(5)}
        assert len(decisions) == 1


def test_the_current_span_is_the_target(monitor_of, case):
    got = []
    monitor = monitor_of(on_result=got.append)
    with TracerProvider().get_tracer("app").start_as_current_span("request") as span:
        monitor.submit(case)
    assert monitor.flush(5.0)
    assert got[0].target.span_id == trace.format_span_id(span.get_span_context().span_id)
    assert got[0].target.source == "ambient"


def test_runs_inside_suppress_are_no_runs(monitor_of, case):
    monitor = monitor_of()
    with suppress():
        assert is_suppressed()
        assert not monitor.submit(case)
    assert not is_suppressed()
    assert monitor.stats().started == 0


def test_a_run_may_go_by_a_uuid_and_is_known_by_its_text(monitor_of):
    run_ids = [uuid.UUID(int=number) for number in range(200)]
    monitor = monitor_of(sample_rate=0.5)
    handles = [monitor.begin(run_id) for run_id in run_ids]
    chosen = [handle.run_id for handle in handles if handle is not None]
    again = [monitor.begin(str(run_id)) for run_id in run_ids]
    assert chosen == [handle.run_id for handle in again if handle is not None]
    assert 0 < len(chosen) < 200
    assert set(chosen) < set(map(str, run_ids))
    stats = monitor.stats()
    assert (stats.started, stats.pending) == (400, 2 * len(chosen))
    assert stats.outcomes == {"sampled_out": 400 - 2 * len(chosen)}


def test_runs_sampled_out_at_their_start_and_at_their_end_are_counted_together(monitor_of, case):
    # The rule may still choose half of the runs when they end; the others are out at once.
    never = OnCondition(lambda run: False, name="never", probability=0.5)
    monitor = monitor_of(sampling=Sampling(rate=0.0, rules=[never]))
    for number in range(100):
        assert not monitor.submit(case, run_id=str(number))
    stats = monitor.stats()
    assert (stats.started, stats.pending, stats.outcomes) == (100, 0, {"sampled_out": 100})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"judge": "oracle"}, "oracle"),
        ({"judge": 7}, "judge"),
        ({"sample_rate": 2}, "sample_rate"),
        ({"concurrency": 0}, "concurrency"),
        ({"max_queue": 0}, "max_queue"),
        ({"deadline": 0}, "deadline"),
        ({"deadline": float("nan")}, "deadline"),
        ({"metrics": []}, "evaluator"),
        ({"on_result": "print"}, "on_result"),
        ({"on_result_timeout": 0}, "on_result_timeout"),
        ({"max_queue_bytes": 0}, "max_queue_bytes"),
        ({"mode": "online"}, "mode"),
        ({"mode": "inline", "inline_timeout": 0}, "inline_timeout"),
        ({"executor": "thread-pool"}, "executor"),
        ({"niceness": -1}, "niceness"),
        ({"niceness": 20}, "niceness"),
        ({"sampling": Sampling(), "sample_rate": 0.5}, "not both"),
        ({"sampling": Sampling(metrics={"toxicity": 1.0})}, "toxicity"),
        ({"budget": 5.0}, "budget"),
        ({"judge_limits": 60}, "judge_limits"),
        ({"breaker": 3}, "breaker"),
        (
            {
                "judge": PlainScriptedJudge(),
                "metrics": [FaithfulnessEvaluator(strategy="batched")],
            },
            "BatchingJudge",
        ),
    ],
)
def test_wrong_settings_are_refused_and_named_when_the_monitor_is_built(wrong, message):
    with pytest.raises(ConfigurationError, match=message):
        Monitor(**({"judge": ScriptedJudge()} | wrong))


class TestEnvironment:
    def test_rate_and_switch_come_from_the_environment(self, monitor_of, case, monkeypatch):
        monkeypatch.setenv("RAGALIQ_SAMPLE_RATE", "0")
        monitor = monitor_of()
        assert not monitor.submit(case)
        assert monitor.stats().outcomes == {"sampled_out": 1}
        monkeypatch.setenv("RAGALIQ_ENABLED", "false")
        off = monitor_of()
        assert not off.submit(case)
        assert off.stats().started == 0

    def test_arguments_win(self, monitor_of, case, monkeypatch):
        monkeypatch.setenv("RAGALIQ_SAMPLE_RATE", "0")
        monkeypatch.setenv("RAGALIQ_ENABLED", "0")
        assert monitor_of(sample_rate=1.0, enabled=True).submit(case)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("SAMPLE_RATE", "plenty"),
            ("SAMPLE_RATE", "2"),
            ("SAMPLE_RATE", "nan"),
            ("ENABLED", "maybe"),
            ("EXECUTOR", "foo"),
            ("JUDGE", "oracle"),
            ("CALIBRATION", "nope.json"),
            ("CAPTURE_CONTENT", "perhaps"),
            ("TELEMETRY_RELATION", "cousin"),
        ],
    )
    def test_a_wrong_value_names_its_variable(self, monkeypatch, name, value):
        monkeypatch.setenv(f"RAGALIQ_{name}", value)
        with pytest.raises(ConfigurationError, match=f"RAGALIQ_{name}"):
            Monitor()

    def test_an_argument_is_not_blamed_on_a_variable(self, monkeypatch):
        monkeypatch.setenv("RAGALIQ_JUDGE", "local")
        monkeypatch.setenv("RAGALIQ_CALIBRATION", "nope.json")
        with pytest.raises(ConfigurationError, match=r"^no judge 'oracle'"):
            Monitor(judge="oracle")
        with pytest.raises(ConfigurationError, match=r"^other\.json: No such file"):
            Monitor(calibration="other.json")

    def test_an_address_in_the_wrong_variable_is_not_shown(self, monkeypatch):
        monkeypatch.setenv("RAGALIQ_EXECUTOR", "redis://:hunter2@broker")
        with pytest.raises(ConfigurationError, match=r"got 'redis://\.\.\.'") as refused:
            Monitor()
        assert "hunter2" not in str(refused.value)
