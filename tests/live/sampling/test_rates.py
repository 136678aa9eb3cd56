"""Shares of runs: in general, of a pipeline, of a metric."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragaliq import ConfigurationError, Sampling
from ragaliq.live.sampler import Sampler, position

RATES = st.floats(0, 1)
NAMES = ["faithfulness", "relevance"]
KEYS = [f"run-{i}" for i in range(300)]


@given(st.text())
def test_rate_zero_takes_nothing_and_rate_one_everything(key):
    nothing = Sampler(Sampling.nothing(), metrics=NAMES)
    everything = Sampler(Sampling.everything(), general=0.0, metrics=NAMES)
    assert nothing.begin(key, "") is None
    choice = everything.begin(key, "").choice
    assert (choice.probability, choice.metrics) == (1.0, dict.fromkeys(NAMES, 1.0))


@given(rate=RATES, own=RATES, of_pipeline=RATES)
def test_the_lower_of_two_own_rates_counts(rate, own, of_pipeline):
    sampling = Sampling(
        rate=rate, pipelines={"support": of_pipeline}, evaluators={"relevance": own}
    )
    sampler = Sampler(sampling, metrics=NAMES)
    expected = {
        "other": {"faithfulness": rate, "relevance": own},
        "support": {"faithfulness": of_pipeline, "relevance": min(of_pipeline, own)},
    }
    for pipeline, rates in expected.items():
        for key in KEYS[:20]:
            decision = sampler.begin(key, pipeline)
            chosen = {name: chance for name, chance in rates.items() if position(key) < chance}
            assert (decision.choice.metrics if decision else {}) == chosen
            assert not chosen or decision.choice.probability == max(chosen.values())


def test_only_the_chosen_metrics_are_evaluated(monitor_of, case):
    got = []
    sampling = Sampling(evaluators={"relevance": 0.3})
    monitor = monitor_of(sampling=sampling, on_result=got.append)
    for key in KEYS[:60]:
        monitor.submit(case, run_id=key)
    assert monitor.flush(10)
    assert len(got) == 60
    with_relevance = [result for result in got if "relevance" in result.results]
    assert 0 < len(with_relevance) < 60
    for result in got:
        assert set(result.results) == set(result.metric_probabilities)
        assert result.metric_probabilities["faithfulness"] == 1.0
    for result in with_relevance:
        assert result.metric_probabilities["relevance"] == 0.3
        assert result.run.weight("relevance") == 1 / 0.3
    evaluations = monitor.stats().evaluations
    assert sum(evaluations["relevance"].values()) == len(with_relevance)


def test_a_run_for_which_no_metric_is_chosen_is_sampled_out(monitor_of, case):
    rates = dict.fromkeys(NAMES, 0.0)
    monitor = monitor_of(sampling=Sampling(evaluators=rates))
    assert not monitor.submit(case)
    assert monitor.stats().outcomes == {"sampled_out": 1}


def test_the_rate_comes_from_the_environment_where_none_is_given(monkeypatch, monitor_of, case):
    monkeypatch.setenv("RAGALIQ_SAMPLE_RATE", "0")
    assert not monitor_of(sampling=Sampling(pipelines={"shop": 1.0})).submit(case)
    assert monitor_of(sampling=Sampling(pipelines={"shop": 1.0})).submit(case, pipeline="shop")
    assert monitor_of(sampling=Sampling.everything()).submit(case)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rate": -0.1}, "rate must be within"),
        ({"rate": float("nan")}, "rate must be within"),
        ({"rate": "half"}, "rate must be within"),
        ({"pipelines": {"shop": 2}}, r"pipelines\['shop'\]"),
        ({"evaluators": {"relevance": -1}}, r"evaluators\['relevance'\]"),
        ({"max_per_minute": 0}, "max_per_minute"),
        ({"max_per_minute": 0.5}, "max_per_minute"),
    ],
)
def test_values_out_of_range_are_refused(wrong, message):
    with pytest.raises(ConfigurationError, match=message):
        Sampling(**wrong)
