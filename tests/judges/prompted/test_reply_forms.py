"""Forms of replies, as schemas that servers agree on and in words."""

from __future__ import annotations

import json

import pytest

from ragaliq.judges.wire import (
    ClaimsReply,
    GradedReply,
    ScoreReply,
    VerdictsReply,
    form_of,
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


def test_a_form_names_fields_and_the_words_there_are_to_choose_from():
    assert form_of(ClaimsReply) == '{"claims": ["<text>", ...]}'
    assert '"verdict": "SUPPORTED" | "CONTRADICTED" | "NOT_ENOUGH_INFO"' in form_of(VerdictsReply)
    assert form_of(ScoreReply) == (
        '{"reasoning": "<One or two sentences.>", "score": <number: 0 to 1.>}'
    )
    for reply in REPLIES:
        assert "\n" not in form_of(reply)
