"""The telemetry page says what is emitted: its tables are written from the code."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from ragaliq.telemetry import catalogue, names

DOCS = Path(__file__).parents[2] / "docs"


def load_generator():
    spec = importlib.util.spec_from_file_location("telemetry_tables", DOCS / "telemetry_tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def described():
    spans = (*catalogue.ROOT_SPAN, *catalogue.METRIC_SPAN, *catalogue.CLAIM_SPAN)
    measured = {name for metric in catalogue.METRICS for name in (metric.name, *metric.attributes)}
    return {each.name for each in (*spans, *catalogue.EVENT, *catalogue.QUALITY_EVENT)} | measured


def test_the_tables_are_as_the_code_says():
    generator = load_generator()
    page = generator.PAGE.read_text()
    assert page == generator.written(page), "run: python docs/telemetry_tables.py"


def test_every_name_on_the_wire_is_described():
    wire = {
        value
        for name, value in vars(names).items()
        if name.isupper() and isinstance(value, str) and "." in value
    }
    assert wire - described() == {names.EVENT_RESULT, names.SCHEMA_URL}
    assert names.EVENT_RESULT in (DOCS / "pages/telemetry.md").read_text()


def test_every_variable_is_on_the_page():
    page = (DOCS / "pages/telemetry.md").read_text()
    variables = {value for name, value in vars(names).items() if name.startswith("ENV_")}
    assert {variable for variable in variables if f"`{variable}`" not in page} == set()


def test_no_name_on_the_page_is_made_up():
    page = (DOCS / "pages/telemetry.md").read_text()
    claimed = set(re.findall(r"`(ragaliq\.[\w.]+)`", page))
    assert claimed - described() == set()
