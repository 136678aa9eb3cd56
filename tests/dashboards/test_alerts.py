"""The alert rules ask for what is there, and say what they found."""

from __future__ import annotations

import re

import pytest
from files import alerts, load
from promql import problems, read

RULES = pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])


@RULES
def test_an_alert_asks_for_metrics_that_are_there(exposition, rule):
    assert problems(rule["expr"], exposition) == []


@RULES
def test_a_summary_names_labels_that_the_result_has(rule):
    summary = rule["annotations"]["summary"]
    named = set(re.findall(r"\$labels\.(\w+)", summary))
    assert named <= read(rule["expr"]).result_labels
    assert "$value" in summary or named
    assert rule["labels"]["severity"] in ("info", "warning")


@pytest.mark.parametrize(
    ("about", "metric"),
    [
        ("FaithfulnessBelowTarget", "ragaliq_evaluation_score_sum"),
        ("ContradictionRateHigh", "ragaliq_claim_count_total"),
        ("JudgeErrors", "ragaliq_evaluation_count_total"),
        ("Lagging", "ragaliq_evaluation_lag_seconds_bucket"),
        ("QueueFillingUp", "ragaliq_queue_size"),
        ("RunsDropped", "ragaliq_run_count_total"),
        ("OverBudget", "ragaliq_run_count_total"),
        ("JudgeCostHigh", "ragaliq_judge_cost_total"),
        ("SinkErrors", "ragaliq_sink_errors_total"),
        ("WorkersDown", "redis_key_size"),
        ("JobsPilingUp", "redis_key_size"),
        ("DeadLetters", "redis_key_size"),
        ("PublishingFails", "ragaliq_publish_errors_total"),
    ],
)
def test_there_is_an_alert_about(about, metric):
    (rule,) = [rule for rule in alerts() if rule["alert"] == f"Ragaliq{about}"]
    assert metric in read(rule["expr"]).names


def test_alerts_have_names_of_their_own():
    names = [rule["alert"] for rule in alerts()]
    assert len(names) == len(set(names))


def test_prometheus_reads_the_rules_and_what_the_collector_serves():
    prometheus = load("prometheus.yml")
    assert prometheus["rule_files"] == ["prometheus-alerts.yml"]
    (job,) = prometheus["scrape_configs"]
    assert job["honor_labels"] is True
    served = load("otel-collector.yml")["exporters"]["prometheus"]["endpoint"]
    assert job["static_configs"] == [{"targets": [served]}]
