"""The telemetry page names everything that is emitted, and nothing else."""

import re

import telemetry_page
from ragaliq.telemetry import names


def described():
    carriers = ("root", "metric", "claim", "event", "quality")
    attributes = {each.name for carrier in carriers for each in telemetry_page.attributes(carrier)}
    measured = {n for each in telemetry_page.metrics() for n in (each.name, *each.attributes)}
    return attributes | measured


def test_every_name_on_the_wire_is_described():
    wire = {
        value
        for name, value in vars(names).items()
        if name.isupper() and isinstance(value, str) and "." in value
    }
    assert wire - described() == {names.EVENT_RESULT, names.SCHEMA_URL}
    assert names.EVENT_RESULT in telemetry_page.PAGE


def test_every_variable_is_on_the_page():
    variables = {value for name, value in vars(names).items() if name.startswith("ENV_")}
    assert {
        variable for variable in variables if f"`{variable}`" not in telemetry_page.PAGE
    } == set()


def test_no_name_on_the_page_is_made_up():
    claimed = set(re.findall(r"`(ragaliq\.[\w.]+)`", telemetry_page.PAGE))
    assert claimed - described() == set()
