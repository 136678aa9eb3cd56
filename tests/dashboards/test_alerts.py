"""The alert rules ask for what is there, and say what they found."""

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


def test_prometheus_reads_the_rules_and_what_the_collector_serves():
    prometheus = load("prometheus.yml")
    assert prometheus["rule_files"] == ["prometheus-alerts.yml"]
    (job,) = prometheus["scrape_configs"]
    assert job["honor_labels"] is True
    served = load("otel-collector.yml")["exporters"]["prometheus"]["endpoint"]
    assert job["static_configs"] == [{"targets": [served]}]
