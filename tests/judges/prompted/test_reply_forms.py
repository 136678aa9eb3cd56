"""Forms of replies, as schemas that servers agree on and in words."""

from __future__ import annotations

import json

import pytest

from ragaliq.judges.wire import (
    ClaimsReply,
    GradedReply,
    ScoreReply,
    VerdictsReply,
    schema_of,
)

REPLIES = (ClaimsReply, VerdictsReply, GradedReply, ScoreReply)


def objects(value):
    if isinstance(value, dict):
        if value.get("type") == "object":
            yield value
        for part in value.values():
            yield from objects(part)


@pytest.mark.parametrize("reply", REPLIES)
def test_a_schema_is_closed_complete_and_without_references(reply):
    schema = schema_of(reply)

    assert list(schema["properties"]) == list(reply.model_fields)
    for part in objects(schema):
        assert part["additionalProperties"] is False
        assert part["required"] == list(part["properties"])
    written = json.dumps(schema)
    for word in ("$ref", "$defs", '"title"', "anyOf", "default"):
        assert word not in written
