"""Shares of runs: in general, of a pipeline, of a metric; and the number that each run draws."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import baggage, context, trace
from opentelemetry.trace import NonRecordingSpan, SpanContext

from ragaliq import ConfigurationError, Sampling
from ragaliq.live.sampler import Sampler, position, sampling_key

RATES = st.floats(0, 1)

NAMES = ["faithfulness", "relevance"]

KEYS = [f"run-{i}" for i in range(300)]


@given(st.text())
def test_rate_zero_takes_nothing_and_rate_one_everything(key):
    nothing = Sampler(Sampling.nothing(), metrics=NAMES)
    everything = Sampler(Sampling.everything(), general=0.0, metrics=NAMES)
    assert nothing.begin(key, "") is None
    sampling = everything.begin(key, "").result
    assert (sampling.probability, sampling.metrics) == (1.0, dict.fromkeys(NAMES, 1.0))


@given(rate=RATES, own=RATES, of_pipeline=RATES)
def test_the_lower_of_two_own_rates_counts(rate, own, of_pipeline):
    sampling = Sampling(rate=rate, pipelines={"support": of_pipeline}, metrics={"relevance": own})
    sampler = Sampler(sampling, metrics=NAMES)
    expected = {
        "other": {"faithfulness": rate, "relevance": own},
        "support": {"faithfulness": of_pipeline, "relevance": min(of_pipeline, own)},
    }
    for pipeline, rates in expected.items():
        for key in KEYS[:20]:
            draw = sampler.begin(key, pipeline)
            chosen = {name: chance for name, chance in rates.items() if position(key) < chance}
            assert (draw.result.metrics if draw else {}) == chosen
            assert not chosen or draw.result.probability == max(chosen.values())


def test_only_the_chosen_metrics_are_evaluated(monitor_of, case):
    got = []
    sampling = Sampling(metrics={"relevance": 0.3})
    monitor = monitor_of(sampling=sampling, on_result=got.append)
    for key in KEYS[:60]:
        monitor.submit(case, run_id=key)
    assert monitor.flush(10)
    assert len(got) == 60
    with_relevance = [result for result in got if "relevance" in result.results]
    assert 0 < len(with_relevance) < 60
    for result in got:
        assert set(result.results) == set(result.run.metric_probabilities)
        assert result.run.metric_probabilities["faithfulness"] == 1.0
    for result in with_relevance:
        assert result.run.metric_probabilities["relevance"] == 0.3
        assert result.run.weight("relevance") == 1 / 0.3
    evaluations = monitor.stats().evaluations
    assert sum(evaluations["relevance"].values()) == len(with_relevance)


def test_a_run_for_which_no_metric_is_chosen_is_sampled_out(monitor_of, case):
    rates = dict.fromkeys(NAMES, 0.0)
    monitor = monitor_of(sampling=Sampling(metrics=rates))
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
        ({"metrics": {"relevance": -1}}, r"metrics\['relevance'\]"),
        ({"max_per_minute": 0}, "max_per_minute"),
        ({"max_per_minute": 0.5}, "max_per_minute"),
    ],
)
def test_values_out_of_range_are_refused(wrong, message):
    with pytest.raises(ConfigurationError, match=message):
        Sampling(**wrong)


RUN_ID = UUID("01234567-89ab-7def-8123-456789abcdef")


def test_numbers_are_spread_evenly_even_for_ids_that_start_alike():
    # The first 48 bits of a UUIDv7 are the clock: these ids differ in the last bits only.
    keys = [str(UUID(int=0x0199_0000_0000_7000_8000_0000_0000_0000 + i)) for i in range(20_000)]
    for limit in (0.1, 0.5, 0.9):
        below = sum(position(key) < limit for key in keys)
        assert abs(below - 20_000 * limit) < 300  # standard deviation at most 71


@pytest.mark.parametrize(
    ("key", "number"),
    [("run-0", "0x1.8bb89ef966a59p-1"), (str(RUN_ID), "0x1.875ce8428dbbep-1")],
)
def test_processes_of_another_release_find_the_same_numbers(key, number):
    assert position(key) == float.fromhex(number)


def test_the_current_trace_decides_about_a_run_and_without_one_its_id_as_text():
    span = NonRecordingSpan(SpanContext(trace_id=0xABC, span_id=1, is_remote=False))
    assert sampling_key(RUN_ID) == sampling_key(str(RUN_ID)) == str(RUN_ID)
    for current, key in (
        (trace.set_span_in_context(span), f"{0xABC:032x}"),
        (baggage.set_baggage("tenant", "a"), str(RUN_ID)),
    ):
        token = context.attach(current)
        try:
            assert sampling_key(RUN_ID) == key
        finally:
            context.detach(token)
