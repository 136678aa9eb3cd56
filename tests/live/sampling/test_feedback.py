"""Runs whose user complains when they are long over."""

import sys
import threading
import uuid

import pytest

from ragaliq import OnFeedback, OnTag, Passage, RAGTestCase, Sampling, SpanTarget
from ragaliq.live.sampler import position
from run_logs import ended_run

TARGET = SpanTarget(trace_id="a" * 32, span_id="b" * 16)


def test_a_run_nothing_chose_is_evaluated_when_its_user_complains(monitor_of, case):
    got = []
    monitor = monitor_of(sampling=Sampling(rate=0.0, rules=[OnFeedback()]), on_result=got.append)
    run_id = uuid.uuid4()
    assert not monitor.submit(case, run_id=str(run_id))
    assert not monitor.submit(case, run_id="happy")
    stats = monitor.stats()
    assert (stats.pending, stats.outcomes, stats.sampling) == (2, {}, {"held": 2})
    assert not monitor.feedback("happy", value=1.0)
    assert monitor.feedback(run_id, value=0.0)
    assert not monitor.feedback(run_id, value=0.0)
    assert monitor.flush(10)
    (result,) = got
    assert result.run.run_id == str(run_id)
    assert (result.run.sampling_reason, result.sampling_probability) == ("feedback", 1.0)
    assert (result.run.represents_traffic, result.run.weight("faithfulness")) == (False, 0.0)
    assert monitor.stats().outcomes == {"evaluated": 1}
    assert monitor.stats().pending == 1
    monitor.close()
    stats = monitor.stats()
    assert (stats.pending, stats.outcomes) == (0, {"evaluated": 1, "sampled_out": 1})


def test_what_ends_after_the_close_is_held_no_more(monitor_of, case):
    monitor = monitor_of(sampling=Sampling(rate=0.0, rules=[OnFeedback()]))
    handle = monitor.begin("late")
    monitor.close()
    assert not handle.submit(case)
    assert not monitor.feedback("late", value=False)
    assert monitor.stats().outcomes == {"sampled_out": 1}


def test_a_run_the_rate_chose_is_not_evaluated_twice(traffic):
    runs = traffic(rate=1.0, rules=[OnFeedback()])
    assert runs.run("a")
    assert not runs.feedback("a", value=False)
    assert len(runs.monitor.taken) == 1


def test_all_runs_of_a_trace_are_found_by_its_id(traffic):
    runs = traffic(rate=0.0, rules=[OnFeedback()])
    for name in ("a", "b"):
        runs.run(name, target=TARGET)
    runs.run("c")
    assert runs.feedback(TARGET.trace_id, value=False)
    assert set(runs.taken) == {"a", "b"}
    assert not runs.feedback(TARGET.trace_id, value=False)


@pytest.mark.parametrize(
    ("below", "value", "is_bad"),
    [
        (0.5, False, True),
        (0.5, True, False),
        (0.5, -1, True),
        (0.5, float("nan"), False),
        (3, 2, True),
        (3, 3, False),
    ],
)
def test_the_rule_says_what_bad_feedback_is(traffic, below, value, is_bad):
    runs = traffic(rate=0.0, rules=[OnFeedback(below=below)])
    runs.run("a")
    assert runs.feedback("a", value=value) is is_bad


def test_feedback_that_is_no_number_is_counted_and_harms_nothing(monitor_of, case):
    monitor = monitor_of(sampling=Sampling(rate=0.0, rules=[OnFeedback()]))
    monitor.submit(case, run_id="a")
    assert not monitor.feedback("a", value="awful")
    assert monitor.stats().sampling == {"rule_errors": 1, "held": 1}


def test_without_the_rule_nothing_is_held_and_feedback_means_nothing(monitor_of, case):
    monitor = monitor_of(sample_rate=0.0)
    monitor.submit(case, run_id="a")
    assert not monitor.feedback("a", value=False)
    assert monitor.stats().sampling == {}


def test_a_run_is_let_go_after_its_time(traffic):
    runs = traffic(rate=0.0, rules=[OnFeedback(hold=10)])
    runs.run("old")
    runs.clock.now = 9.0
    runs.run("young")
    runs.clock.now = 10.0
    assert runs.sampler.counts() == {"held": 1}
    assert not runs.feedback("old", value=False)
    assert runs.feedback("young", value=False)
    assert runs.sampled_out == 1


def test_only_so_many_are_held_and_the_oldest_are_let_go(traffic):
    runs = traffic(rate=0.0, rules=[OnFeedback(max_runs=10)])
    for number in range(100):
        runs.run(f"run-{number}", target=TARGET)
    assert runs.sampler.counts() == {"crowded_out": 90, "held": 10}
    assert runs.sampled_out == 90
    assert not runs.feedback("run-89", value=False)
    assert runs.feedback("run-90", value=False)


@pytest.mark.parametrize("letter", ["a", "é", "語", "🦆"])
def test_only_so_many_bytes_are_held(traffic, letter):
    runs = traffic(rate=0.0, rules=[OnFeedback(max_bytes=100_000)])
    for number in range(50):
        runs.run(f"run-{number}", passages=[Passage(letter * 5_000)])
    held = runs.sampler.counts()["held"]
    assert 3 <= held < 50
    assert held * sys.getsizeof(letter * 5_000) <= 100_000
    runs.run("huge", passages=[Passage(letter * 200_000)])
    assert runs.sampler.counts()["held"] == 0
    assert runs.sampled_out == 51


def test_an_id_used_twice_counts_both_runs_and_holds_the_later_one(traffic):
    runs = traffic(rate=0.0, rules=[OnFeedback()])
    runs.run("a", tags=["first"])
    runs.run("a", tags=["second"])
    assert (runs.sampled_out, runs.sampler.counts()) == (1, {"held": 1})
    assert runs.feedback("a", value=False)


def test_a_rule_with_a_probability_holds_only_what_it_could_choose(traffic):
    runs = traffic(rate=0.0, rules=[OnFeedback(probability=0.2), OnTag("x", probability=0.1)])
    names = [f"run-{number}" for number in range(200)]
    for name in names:
        runs.run(name, tags=["x"])
    within = {name for name in names if position(name) < 0.2}
    assert set(runs.taken) == {name for name in names if position(name) < 0.1}
    assert {name for name in names if runs.feedback(name, value=False)} == within - {
        name for name in names if position(name) < 0.1
    }
    late = [run for run in runs.monitor.taken if run.sampling_reason == "feedback"]
    assert {(run.sampling_probability, run.sampling_rules) for run in late} == {
        (0.2, ("tag", "feedback"))
    }


def test_complaints_from_many_threads_choose_a_run_once(monitor_of):
    monitor = monitor_of(sampling=Sampling(rate=0.0, rules=[OnFeedback()]))
    log = ended_run("q", ["c"], "c")
    for number in range(50):
        monitor.submit(log, run_id=f"run-{number}")
    said, barrier = [], threading.Barrier(4)

    def complain():
        barrier.wait(10)
        said.extend(monitor.feedback(f"run-{number}", value=False) for number in range(50))

    threads = [threading.Thread(target=complain) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sum(said) == 50
    assert monitor.flush(30)
    assert monitor.stats().outcomes == {"evaluated": 50}


def test_a_case_is_held_like_a_log(monitor_of):
    monitor = monitor_of(sampling=Sampling(rate=0.0, rules=[OnFeedback(max_bytes=2_000)]))
    monitor.submit(RAGTestCase(id="a", query="q", context=["x" * 1_500], response="r"))
    monitor.submit(RAGTestCase(id="b", query="q", context=["x" * 1_500], response="r"))
    assert monitor.stats().sampling == {"crowded_out": 1, "held": 1}
    assert monitor.feedback("b", value=False)
