"""The Grafana dashboard asks for what is there, and shows all of it."""

import re

import pytest
from files import panels, targets, variables
from promql import GRAFANA, problems, read

import telemetry_page


@pytest.mark.parametrize(("title", "expression", "legend"), targets())
def test_a_panel_asks_for_metrics_that_are_there(exposition, title, expression, legend):
    assert problems(expression, exposition) == []


@pytest.mark.parametrize(("title", "expression", "legend"), targets())
def test_a_legend_names_labels_that_the_result_has(title, expression, legend):
    named = set(re.findall(r"{{(\w+)}}", legend))
    assert named <= read(expression).result_labels


@pytest.mark.parametrize("metric", telemetry_page.metrics(), ids=lambda metric: metric.name)
def test_every_metric_is_on_the_dashboard(exposition, metric):
    asked = set().union(*(read(expression).names for _, expression, _ in targets()))
    assert exposition.samples_of(metric)
    assert exposition.samples_of(metric) & asked, f"{metric.name} is shown nowhere"


def test_a_variable_offers_values_of_a_label_that_is_there(exposition):
    for variable in variables().values():
        if variable["type"] == "query":
            query = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
            selector, label = query.groups()
            assert problems(f"sum(rate({selector}[5m])) by ({label})", exposition) == []


def test_every_variable_that_is_used_is_there_and_every_one_there_is_used():
    text = str(panels())
    used = set(re.findall(r"\$\{?(\w+)", text)) - {name[1:] for name in GRAFANA}
    assert used == variables().keys()


def test_a_panel_shows_each_epoch_of_an_evaluator_as_a_line_of_its_own():
    [(expression, legend)] = [
        (expression, legend)
        for title, expression, legend in targets()
        if title == "Mean score by epoch"
    ]
    assert "ragaliq_evaluator_fingerprint" in read(expression).result_labels
    assert "{{ragaliq_evaluator_fingerprint}}" in legend
