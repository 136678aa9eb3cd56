from __future__ import annotations

import asyncio
import threading
import time

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from ragaliq import (
    ConfigurationError,
    JudgeRefusalError,
    Monitor,
    RAGTestCase,
    is_suppressed,
    suppress,
)
from ragaliq.testing import ScriptedJudge


def adds_up(stats):
    return stats.started == sum(stats.outcomes.values()) + stats.pending


def test_a_submitted_case_is_evaluated_and_reported(monitor_of, case):
    got = []
    monitor = monitor_of(on_result=got.append)
    assert monitor.submit(case, pipeline="support")
    assert monitor.flush(5.0)
    (result,) = got
    assert result.case == case
    assert result.results["faithfulness"].score == 0.5
    assert (result.pipeline, result.sampling_probability, result.target) == ("support", 1.0, None)
    assert result.lag >= 0
    stats = monitor.stats()
    assert stats.outcomes == {"evaluated": 1}
    assert stats.evaluations == {"faithfulness": {"scored": 1}, "relevance": {"scored": 1}}


def test_on_result_may_be_a_coroutine_function(monitor_of, case):
    got = []

    async def on_result(result):
        await asyncio.sleep(0)
        got.append(result)

    monitor = monitor_of(on_result=on_result)
    monitor.submit(case)
    assert monitor.flush(5.0)
    assert len(got) == 1


@pytest.mark.parametrize("error", [ValueError("bad"), SystemExit(3), KeyboardInterrupt()])
def test_a_raising_callback_is_counted_and_the_next_run_goes_on(monitor_of, case, error):
    def on_result(_):
        raise error

    monitor = monitor_of(on_result=on_result)
    monitor.submit(case)
    monitor.submit(case)
    assert monitor.flush(5.0)
    assert monitor.stats().callback_errors == 2
    assert monitor.stats().outcomes == {"evaluated": 2}


def test_a_callback_that_flushes_does_not_wait_for_itself(monitor_of, case):
    answers = []
    monitor = monitor_of(on_result=lambda _: answers.append(monitor.flush(5.0)))
    monitor.submit(case)
    assert monitor.flush(5.0)
    assert answers == [False]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (JudgeRefusalError("no"), "judge_refused"),
        (RuntimeError("boom"), "judge_error"),
        (SystemExit(1), None),
    ],
)
def test_a_raising_judge_is_a_status_and_the_worker_lives_on(monitor_of, case, error, status):
    judge = ScriptedJudge(failures={"evaluate_relevance": [error, None]})
    monitor = monitor_of(judge=judge, evaluators=["relevance"])
    monitor.submit(case)
    assert monitor.flush(5.0)
    monitor.submit(case)
    assert monitor.flush(5.0)
    stats = monitor.stats()
    expected = {"scored": 1} | ({status: 1} if status else {})
    assert stats.evaluations["relevance"] == expected
    if status is None:
        assert stats.incomplete == {"internal_error": 1}
    assert adds_up(stats)


def test_a_judge_that_never_answers_is_a_timeout(monitor_of, case):
    class Silent(ScriptedJudge):
        async def evaluate_relevance(self, query, response):
            await asyncio.Event().wait()

    monitor = monitor_of(judge=Silent(), deadline=0.05)
    monitor.submit(case)
    assert monitor.flush(5.0)
    assert monitor.stats().evaluations["relevance"] == {"judge_timeout": 1}
    assert monitor.stats().evaluations["faithfulness"] == {"scored": 1}


class Held(ScriptedJudge):
    """Answers nothing until it is released."""

    def __init__(self):
        super().__init__()
        self.entered, self.released = threading.Event(), threading.Event()

    async def evaluate_relevance(self, query, response):
        self.entered.set()
        await asyncio.to_thread(self.released.wait, 10.0)
        return await super().evaluate_relevance(query, response)


def test_a_full_queue_refuses_at_once_and_counts_it(monitor_of, case):
    judge = Held()
    monitor = monitor_of(judge=judge, evaluators=["relevance"], concurrency=1, max_queue=2)
    assert monitor.submit(case)
    assert judge.entered.wait(5.0)
    assert [monitor.submit(case) for _ in range(5)] == [True, True, False, False, False]
    assert monitor.stats().outcomes == {"queue_full": 3}
    assert monitor.stats().pending == 3
    judge.released.set()
    assert monitor.flush(5.0)
    assert monitor.stats().outcomes == {"queue_full": 3, "evaluated": 3}


def test_flush_gives_up_after_its_timeout(monitor_of, case):
    judge = Held()
    monitor = monitor_of(judge=judge)
    monitor.submit(case)
    assert monitor.flush(0.05) is False
    judge.released.set()
    assert monitor.flush(5.0)


async def test_aflush_leaves_the_event_loop_free(monitor_of, case):
    judge = Held()
    monitor = monitor_of(judge=judge)
    monitor.submit(case)
    waiting = asyncio.create_task(monitor.aflush(5.0))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    judge.released.set()
    assert await waiting


def test_close_counts_what_it_leaves_undone_and_refuses_what_comes_later(monitor_of, case):
    judge = Held()
    monitor = monitor_of(judge=judge, evaluators=["relevance"], concurrency=2)
    for _ in range(5):
        monitor.submit(case)
    assert judge.entered.wait(5.0)
    assert monitor.close(timeout=0.05) is False
    assert not monitor.submit(case)
    assert monitor.stats().outcomes == {"shutdown": 6}
    assert adds_up(monitor.stats())


def test_leaving_the_context_evaluates_what_is_queued(case):
    with Monitor(judge=ScriptedJudge()) as monitor:
        for _ in range(20):
            monitor.submit(case)
    assert monitor.stats().outcomes == {"evaluated": 20}


def test_closing_twice_is_harmless(monitor_of, case):
    monitor = monitor_of()
    monitor.submit(case)
    assert monitor.close(5.0)
    assert monitor.close(5.0)


def test_an_idle_monitor_starts_no_thread(monitor_of):
    before = threading.active_count()
    monitor = monitor_of()
    assert monitor.flush(0.0)
    assert threading.active_count() == before


def test_no_more_runs_are_judged_at_once_than_asked(monitor_of, case):
    class Counting(ScriptedJudge):
        running = most = 0

        async def evaluate_relevance(self, query, response):
            self.running += 1
            self.most = max(self.most, self.running)
            await asyncio.sleep(0.001)
            self.running -= 1
            return await super().evaluate_relevance(query, response)

    judge = Counting()
    monitor = monitor_of(judge=judge, evaluators=["relevance"], concurrency=3)
    for _ in range(30):
        monitor.submit(case)
    assert monitor.flush(5.0)
    assert judge.most == 3


def test_runs_submitted_from_many_threads_are_all_evaluated(monitor_of):
    got = []
    monitor = monitor_of(on_result=got.append, max_queue=10_000, concurrency=2)

    def submit(worker):
        for i in range(100):
            name = f"{worker}-{i}"
            monitor.submit(
                RAGTestCase(id=name, query=name, context=[name], response=f"It is {name}.")
            )
            if i % 10 == 0:
                time.sleep(0.001)

    threads = [threading.Thread(target=submit, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert monitor.flush(20.0)
    assert len({result.case.id for result in got}) == 800
    assert all(result.case.context == [result.case.query] for result in got)
    assert monitor.stats().outcomes == {"evaluated": 800}


def test_sampled_out_runs_are_counted_and_never_judged(monitor_of, case):
    judge = ScriptedJudge()
    monitor = monitor_of(judge=judge, sample_rate=0.0)
    assert not monitor.submit(case)
    assert monitor.stats().outcomes == {"sampled_out": 1}
    assert not judge.call_counts


def test_a_run_carries_the_probability_it_had(monitor_of, case):
    got = []
    monitor = monitor_of(sample_rate=0.5, on_result=got.append)
    for i in range(40):
        monitor.submit(case, run_id=f"run-{i}")
    assert monitor.flush(5.0)
    stats = monitor.stats()
    assert 0 < len(got) < 40
    assert {result.sampling_probability for result in got} == {0.5}
    assert stats.outcomes == {"evaluated": len(got), "sampled_out": 40 - len(got)}


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


def test_judging_happens_inside_suppress(monitor_of, case):
    seen = []

    class Watching(ScriptedJudge):
        async def evaluate_relevance(self, query, response):
            seen.append(is_suppressed())
            return await super().evaluate_relevance(query, response)

    monitor = monitor_of(judge=Watching(), on_result=lambda _: seen.append(is_suppressed()))
    monitor.submit(case)
    assert monitor.flush(5.0)
    assert seen == [True, True]


def test_a_case_without_context_ends_as_no_context_where_every_metric_needs_one(monitor_of):
    monitor = monitor_of(evaluators=["faithfulness", "hallucination"])
    monitor.submit(RAGTestCase(query="q", response="It is so."))
    assert monitor.flush(5.0)
    assert monitor.stats().outcomes == {"no_context": 1}


def test_a_ticket_ends_once(monitor_of, case):
    monitor = monitor_of()
    ticket = monitor.begin("run")
    assert monitor.stats().pending == 1
    ticket.discard("cancelled")
    assert not ticket.submit(case)
    ticket.discard("errored")
    stats = monitor.stats()
    assert (stats.outcomes, stats.incomplete) == ({"incomplete_run": 1}, {"cancelled": 1})


def test_a_copied_monitor_is_the_same_monitor(monitor_of):
    import copy

    monitor = monitor_of()
    assert copy.copy(monitor) is copy.deepcopy(monitor) is monitor


@pytest.mark.parametrize(
    "wrong",
    [
        {"judge": "oracle"},
        {"judge": 7},
        {"sample_rate": 2},
        {"concurrency": 0},
        {"max_queue": 0},
        {"deadline": 0},
        {"evaluators": []},
    ],
)
def test_wrong_settings_are_refused_when_the_monitor_is_built(wrong):
    with pytest.raises(ConfigurationError):
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

    def test_the_judge_comes_from_the_environment(self, monkeypatch):
        monkeypatch.setenv("RAGALIQ_JUDGE", "oracle")
        with pytest.raises(ConfigurationError, match="oracle"):
            Monitor()

    def test_a_wrong_value_names_its_variable(self, monkeypatch):
        monkeypatch.setenv("RAGALIQ_SAMPLE_RATE", "plenty")
        with pytest.raises(ConfigurationError, match="RAGALIQ_SAMPLE_RATE"):
            Monitor(judge=ScriptedJudge())


def test_no_text_of_the_application_reaches_the_log(monitor_of, caplog):
    caplog.set_level("DEBUG")
    secret = "Zanzibar"

    def on_result(_):
        raise ValueError(secret)

    judge = ScriptedJudge(failures={"evaluate_relevance": [RuntimeError(secret)]})
    monitor = monitor_of(judge=judge, on_result=on_result)
    monitor.submit(RAGTestCase(query=secret, context=[secret], response=f"{secret} is far."))
    assert monitor.flush(5.0)
    assert "on_result raised ValueError" in caplog.text
    assert secret not in caplog.text
