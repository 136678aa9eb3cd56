"""Verdicts in JSON that is well-formed, in the forms models give it."""

from __future__ import annotations

import json

import pytest

from ragaliq.errors import JudgeResponseError
from ragaliq.judges import parse_verdicts

ROWS = '[{"statement": "a", "reason": "r", "verdict": 1}, {"statement": "b", "verdict": 0}]'


@pytest.mark.parametrize(
    "reply",
    [
        f'{{"verdicts": {ROWS}}}',
        f'{{"NLIStatementOutput": {{"statements": {ROWS}}}}}',
        f'{{"label": "x", "is_faithful": false, "statements": {ROWS}}}',
        f"[[{ROWS}]]",
        f"```\n{ROWS}\n```",
        f"Sure! Here's the JSON [as asked]:\n\n```json\n{ROWS}\n```\n\nIt's done. Let me know!",
        f"The set {{of statements}} gives: {ROWS} (see [1]).",
        f"<think>1. No\n2. No\n{{'verdict': 0}}</think>\n{ROWS}",
        f"First I look at the text. [{{'verdict': 0}}]\n</think>\n\n{ROWS}",
        "\ufeff" + ROWS,
        '{"verdict": 1}{"verdict": 0}',
        '{"verdict": 1},\n{"verdict": 0}',
        '[{"Verdict": "Yes", "Reason": "r"}, {"VERDICT": "no"}]',
        """{"statements": [
            {"statement": "a", "is_supported": true, "supporting_chunk_ids": [0]},
            {"statement": "b", "is_supported": false, "supporting_chunk_ids": null}
        ]}""",
        '[{"statement": "a", "evaluation": {"verdict": 1}}, {"evaluation": {"verdict": 0}}]',
        '{"verdicts": ["yes", "no"]}',
        "[1, 0]",
        '{"1": "yes", "2": "no"}',
        '{"statement_1": {"verdict": 1}, "statement_2": {"verdict": 0}}',
    ],
)
def test_the_outer_form_does_not_matter(verdicts, reply):
    assert verdicts(reply, 2) == "0S 1N"


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        (1, "SUPPORTED"),
        (1.0, "SUPPORTED"),
        (" 1.0 ", "SUPPORTED"),
        (True, "SUPPORTED"),
        ("Yes.", "SUPPORTED"),
        ("yes, it is there", "SUPPORTED"),
        ("**SUPPORTED**", "SUPPORTED"),
        ("fully supported", "SUPPORTED"),
        ("entailment", "SUPPORTED"),
        ("✅", "SUPPORTED"),
        (0, "NOT_ENOUGH_INFO"),
        (-0.0, "NOT_ENOUGH_INFO"),
        (False, "NOT_ENOUGH_INFO"),
        ("not enough information", "NOT_ENOUGH_INFO"),
        ("unsupported", "NOT_ENOUGH_INFO"),
        ("isn't supported", "NOT_ENOUGH_INFO"),
        ("partially supported", "NOT_ENOUGH_INFO"),
        ("neutral", "NOT_ENOUGH_INFO"),
        ("CONTRADICTED", "CONTRADICTED"),
        ("contradicted by chunk 2", "CONTRADICTED"),
        ("contradiction", "CONTRADICTED"),
    ],
)
def test_a_verdict_may_be_a_number_a_boolean_or_words(value, verdict):
    (found,) = parse_verdicts(json.dumps({"verdict": value}), 1)
    assert found.verdict == verdict


@pytest.mark.parametrize(
    "value",
    [
        2,
        -1,
        0.5,
        10**4000,
        None,
        "",
        "yes and no",
        "yes/no",
        "SUPPORTED | CONTRADICTED | NOT_ENOUGH_INFO",
        "no contradiction",
        "nothing",
        "-1",
    ],
)
def test_a_value_that_settles_nothing_is_no_verdict(value):
    with pytest.raises(JudgeResponseError):
        parse_verdicts(json.dumps({"verdict": value}), 1)


def test_reasons_statements_and_evidence_are_kept():
    reply = json.dumps(
        {
            "claim": "a",
            "explanation": "because",
            "quote": "q",
            "verdict": "supported",
            "confidence": "0.25",
            "chunk_ids": [2, 0, 2, -1, "x", True, 1.5],
        }
    )
    (found,) = parse_verdicts(reply, 1)
    assert (found.statement, found.reason, found.evidence) == ("a", "because", "q")
    assert (found.confidence, found.supporting_chunk_ids) == (0.25, [2, 0])
    assert found.spent().requests == 0  # the judge that asked accounts for the reply


@pytest.mark.parametrize(
    ("confidence", "expected"),
    [
        ("NaN", 1.0),
        ("1e999", 1.0),
        ("9" * 4000, 1.0),
        ("-" + "9" * 4000, 0.0),
        ("true", 1.0),
        ('"high"', 1.0),
        ("[]", 1.0),
        ("-3", 0.0),
    ],
)
def test_a_confidence_is_always_between_zero_and_one(confidence, expected):
    (found,) = parse_verdicts(f'{{"verdict": 1, "confidence": {confidence}}}', 1)
    assert found.confidence == expected


@pytest.mark.parametrize(
    ("reply", "expected", "found"),
    [
        ('[{"id": 2, "verdict": 1}, {"id": 1, "verdict": 0}]', 2, "0N 1S"),
        ('[{"id": 0, "verdict": 1}, {"id": 1, "verdict": 0}]', 2, "0S 1N"),
        ('[{"claim_id": "c1", "verdict": 1}, {"claim_id": "c3", "verdict": 0}]', 3, "0S 2N"),
        ('{"c2": {"verdict": "SUPPORTED"}, "c1": {"verdict": "contradicted"}}', 2, "0C 1S"),
        ('{"id": 3, "verdict": 1}\n{"id": 1, "verdict": 0}', 3, "0N 2S"),
        # the same id twice, agreeing and not
        ('[{"id": 1, "verdict": 1}, {"id": 1, "verdict": 1}, {"id": 2, "verdict": 0}]', 2, "0S 1N"),
        ('[{"id": 1, "verdict": 1}, {"id": 1, "verdict": 0}, {"id": 2, "verdict": 1}]', 2, "1S"),
        # ids that say nothing: copied from an example, or of something else
        ('[{"id": 1, "verdict": 1}, {"id": 1, "verdict": 0}]', 2, "0S 1N"),
        ('[{"id": 501, "verdict": 1}, {"id": 502, "verdict": 0}]', 2, "0S 1N"),
        ('[{"id": "c1", "verdict": 1}, {"verdict": 0}]', 2, "0S 1N"),
    ],
)
def test_rows_that_carry_an_id_go_by_it(verdicts, reply, expected, found):
    assert verdicts(reply, expected) == found


def test_a_line_without_a_verdict_keeps_its_place(verdicts):
    reply = '{"statement": "a", "verdict": 1}\n{"statement": "b"}\n{"statement": "c", "verdict": 0}'
    assert verdicts(reply, 3) == "0S 2N"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"verdict": 1, "reason": "a", "reason": "b"}', "0S"),
        ('[{"verdict": 1, "verdict": 0}, {"verdict": 1}]', "1S"),
        ('[{"verdict": 1, "Verdict": 0}, {"verdict": 1}]', "1S"),
        ('[{"verdict": 1, "verdict": [0]}, {"verdict": 1}]', "1S"),
    ],
)
def test_a_key_given_twice_decides_only_if_both_agree(verdicts, reply, expected):
    assert verdicts(reply, 2) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('[{"verdict": 1}, {"verdict": 1}]\nOr:\n[{"verdict": 0}, {"verdict": 1}]', 2),
        ('Like {"verdict": 1}. So: [{"verdict": 0}, {"verdict": 0}] {"note": "x"}', 2),
        ('Part 1: [{"verdict": 1}]\nPart 2: [{"verdict": 0}]', 2),
        ('The answer says {"verdict": 1}.\n{"verdict": 0}', 1),
        ('{"draft": [{"verdict": 1}], "final": [{"verdict": 0}]}', 1),
        ('[{"id": 1, "verdict": 1}] [{"id": 1, "verdict": 0}]', 2),
    ],
)
def test_answers_that_differ_are_an_error_and_never_the_last_ones_word(reply, expected):
    with pytest.raises(JudgeResponseError, match="differ"):
        parse_verdicts(reply, expected)


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ('[{"verdict": 1}, {"verdict": 0}] Again: [{"verdict": 1}, {"verdict": 0}]', "0S 1N"),
        ('[{"id": 2, "verdict": 0}] and [{"id": 1, "verdict": 1}]', "0S 1N"),
    ],
)
def test_answers_that_agree_or_name_different_statements_are_one(verdicts, reply, found):
    assert verdicts(reply, 2) == found


def test_a_citation_in_prose_is_no_list_of_verdicts(verdicts):
    with pytest.raises(JudgeResponseError):
        verdicts("As the text says [1, 0], it rained.", 2)


def test_lone_surrogates_do_not_reach_the_result():
    reply = '[{"verdict": 1, "reason": "\\ud800 \\ud83d\\ude00 \\\\ud800", "statement": "\ud800"}]'
    (found,) = parse_verdicts(reply, 1)
    assert found.reason == "\ufffd 😀 \\ud800"
    assert found.statement == "\ufffd"
    assert found.model_dump_json()
