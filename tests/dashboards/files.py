"""The files for operators, read as their programs read them."""

import json
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/pages/dashboards"


def dashboard():
    return json.loads((FOLDER / "grafana-dashboard.json").read_text())


def panels():
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def targets():
    """Panel titles with an expression and how its results are named."""
    return [
        (panel["title"], target["expr"], target["legendFormat"])
        for panel in panels()
        for target in panel["targets"]
    ]


def variables():
    return {each["name"]: each for each in dashboard()["templating"]["list"]}


def alerts():
    groups = load("prometheus-alerts.yml")["groups"]
    return [rule for group in groups for rule in group["rules"]]


def load(name):
    return yaml.safe_load((FOLDER / name).read_text())
