"""The telemetry page describes exactly what is emitted, with the types on the wire."""

import re

import pytest

import telemetry_page
from ragaliq.telemetry import ContentPolicy

TYPES = {str: "string", float: "double", int: "int", bool: "boolean"}


def type_of(value):
    if isinstance(value, tuple):
        (element,) = {type(item) for item in value}
        return TYPES[element] + "[]"
    return TYPES[type(value)]


def generic(attributes):
    return {
        re.sub(r"^evaluations\.\d+\.", "evaluations.<i>.", name): type_of(value)
        for name, value in attributes.items()
    }


@pytest.fixture
def emitted(sdk, emit, run, results, judged):
    """Every attribute that was seen, by carrier."""
    run = run.model_copy(
        update={
            "metric_probabilities": dict.fromkeys(results, 0.5),
            "sampling_rules": ("error",),
        }
    )
    for detail in ("spans", "arrays"):
        emit(ContentPolicy(on_spans=True, on_events=True), run, case=judged, claim_detail=detail)
    seen = {"root": {}, "metric": {}, "claim": {}, "event": {}}
    for span in sdk.spans():
        kind = "root" if span.name == "evaluation support" else "metric"
        kind = "claim" if span.name.startswith("claim ") else kind
        seen[kind] |= generic(span.attributes)
    for event in sdk.events():
        seen["event"] |= generic(event.attributes)
    return seen


@pytest.mark.parametrize("carrier", ["root", "metric", "claim", "event"])
def test_what_is_described_is_what_is_emitted(emitted, carrier):
    described = {each.name: each.type for each in telemetry_page.attributes(carrier)}
    assert emitted[carrier] == described
