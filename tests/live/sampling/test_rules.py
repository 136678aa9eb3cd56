"""Runs chosen for what they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragaliq import (
    ConfigurationError,
    ContextChunk,
    OnCondition,
    OnError,
    OnFeedback,
    OnLowScore,
    OnTag,
    RAGTestCase,
    Sampling,
    is_suppressed,
)
from ragaliq.live.sampler import Sampler, position

CHANCES = st.floats(0.001, 1)


@pytest.mark.parametrize("wanted", ["beta", ("beta", "vip"), {"beta"}])
def test_a_run_with_a_tag(traffic, wanted):
    runs = traffic(rate=0.0, rules=[OnTag(wanted, name="early")])
    assert runs.run("a", tags=["x", "beta"])
    assert not runs.run("b", tags=["x", "betamax"])
    assert not runs.run("c")
    assert runs.taken["a"].sampling_reason == "early"


@pytest.mark.parametrize(
    ("which", "scores", "is_low"),
    [
        ("best", [0.2, 0.1], True),
        ("best", [0.9, 0.1], False),
        ("any", [0.9, 0.1], True),
        ("any", [0.9, None], False),
        ("best", [None, None], False),
        ("best", [], False),
        ("best", ["high"], False),
    ],
)
def test_a_run_whose_passages_scored_low(traffic, scored, which, scores, is_low):
    runs = traffic(rate=0.0, rules=[OnLowScore(0.3, which=which)])
    assert runs.run("a", passages=scored(*scores)) is is_low
    assert runs.sampler.counts().get("rule_errors", 0) == ("high" in scores)


def test_a_retriever_without_scores_is_said_once_where_a_rule_waits_for_them(
    traffic, scored, caplog
):
    rules = [OnLowScore(0.3), OnLowScore(0.9, which="any", name="weak")]
    runs, others, scoring = (traffic(rate=0.0, rules=each) for each in (rules, [OnTag("b")], rules))
    scoring.run("scored", passages=scored(0.7))
    for number in range(12):
        runs.run(f"none {number}")
        for each in (others, scoring):
            each.run(f"{number}", passages=scored(None))
    assert caplog.messages == []
    for number in range(12):
        runs.run(f"{number}", passages=scored(None))
    (said,) = caplog.messages
    assert said.startswith("OnLowScore has seen 5 runs and no scores")


def test_a_function_that_raises_is_counted_and_harms_nothing(monitor_of, case, caplog):
    def explode(run):
        raise ValueError(run.query)

    monitor = monitor_of(sampling=Sampling(rate=0.0, rules=[OnCondition(explode), OnTag("beta")]))
    assert not monitor.submit(case, run_id="a")
    assert monitor.submit(case.model_copy(update={"tags": ["beta"]}), run_id="b")
    assert monitor.flush(10)
    stats = monitor.stats()
    assert stats.outcomes == {"sampled_out": 1, "evaluated": 1}
    assert stats.sampling == {"rule_errors": 2}
    logged = [record.getMessage() for record in caplog.records]
    assert len(logged) == 1
    assert "ValueError" in logged[0]


def test_a_function_that_is_interrupted_stops_the_application_and_is_counted(monitor_of, case):
    def interrupt(run):
        raise KeyboardInterrupt

    monitor = monitor_of(sampling=Sampling(rate=0.0, rules=[OnCondition(interrupt)]))
    with pytest.raises(KeyboardInterrupt):
        monitor.submit(case)
    stats = monitor.stats()
    assert (stats.incomplete, stats.pending) == ({"interrupted": 1}, 0)


def test_a_function_sees_the_run_and_nothing_it_starts_is_captured(monitor_of):
    seen = []

    def look(run):
        seen.append((run.query, run.response, run.contexts, run.scores, run.had_errors))
        return is_suppressed() and run.pipeline == "shop"

    case = RAGTestCase(query="q", context=["a", ContextChunk(text="b", score=0.5)], response="r")
    monitor = monitor_of(sampling=Sampling(rate=0.0, rules=[OnCondition(look)]))
    assert monitor.submit(case, pipeline="shop")
    assert not monitor.submit(case, pipeline="other")
    assert seen == [("q", "r", ["a", "b"], [0.5], False)] * 2


def test_a_class_of_ones_own_is_a_rule(traffic):
    class Long:
        name, probability = "long", 1.0

        def matches(self, run):
            return len(run.response) > 0

    runs = traffic(rate=0.0, rules=[Long()])
    assert runs.run("a")
    assert runs.taken["a"].sampling_reason == "long"


@given(st.text(), st.floats(0, 1), CHANCES, CHANCES)
def test_the_highest_chance_that_speaks_for_a_run_is_its_inclusion_probability(key, rate, one, two):
    rules = [
        OnTag("x", name="one", probability=one),
        OnTag("x", name="two", probability=two),
        OnTag("y", name="other", probability=1.0),
    ]
    sampler = Sampler(Sampling(rate=rate, rules=rules), metrics=["m"])
    chance = sampler.begin(key, "")
    assert chance is not None
    sampling = sampler._choose(chance.position, "", rules[:2])
    assert (sampling is not None) == (position(key) < max(rate, one, two))
    if sampling is not None:
        assert sampling.probability == sampling.metrics["m"] == max(rate, one, two)
        assert sampling.rules == ("one", "two")
        by = {"rate": rate, "one": one, "two": two}
        assert position(key) < by[sampling.reason]
        assert (sampling.reason == "rate") == (position(key) < rate)


def test_runs_no_rule_can_reach_are_not_even_followed(monitor_of):
    monitor = monitor_of(sampling=Sampling(rate=0.1, rules=[OnTag("x", probability=0.5)]))
    handles = {key: monitor.begin(key) for key in map(str, range(100))}
    assert {key for key, handle in handles.items() if handle} == {
        key for key in handles if position(key) < 0.5
    }


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([OnError], "not a rule"),
        ([lambda run: True], "not a rule"),
        ([OnError(name="rate")], "reserved"),
        ([OnError(name="")], "empty"),
        ([OnTag("a"), OnTag("b")], "'tag'"),
        ([OnError(probability=0)], "never"),
        ([OnError(probability=2)], "within"),
        ([OnFeedback(), OnFeedback(name="more")], "one OnFeedback"),
    ],
)
def test_rules_that_cannot_work_are_refused(rules, message):
    with pytest.raises(ConfigurationError, match=message):
        Sampling(rules=rules)


async def coroutine(run):
    return True


@pytest.mark.parametrize(
    "build",
    [
        lambda: OnLowScore("low"),
        lambda: OnLowScore(float("nan")),
        lambda: OnLowScore(0.5, which="worst"),
        lambda: OnCondition(coroutine),
        lambda: OnCondition("yes"),
        lambda: OnFeedback(hold=0),
        lambda: OnFeedback(max_runs=0),
        lambda: OnFeedback(max_bytes=float("nan")),
        lambda: OnFeedback(below=None),
    ],
)
def test_a_rule_with_a_wrong_argument_is_refused(build):
    with pytest.raises(ConfigurationError):
        build()
