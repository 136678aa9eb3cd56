"""Verdicts in lists and words."""

from __future__ import annotations

import pytest

from ragaliq.errors import JudgeResponseError
from ragaliq.judges import parse_verdicts

TWO = [
    "(1) Yes\n(2) No",
    "#1: Yes\n#2: No",
    "c1: SUPPORTED\nc2: NOT_ENOUGH_INFO",
    "0. Yes\n1. No",
    "2. No\n1. Yes",
    "- 1. Yes\n- 2. No",
    "1. Yes, 2. No",
    "**Statement 2**: Grass is red. Verdict: No\n**Statement 1**: The sky is blue. Verdict: yes",
    "Statement #1 - Yes\nStatement #2 - No",
    "Verdict 1: Yes\nVerdict 2: No",
    "1. The sky is blue (Yes)\n2. Grass is red (No)",
    "1. The sky is blue → Yes\n2. Grass is red → No",
    "1. The statement is supported by chunk 1.\n2. The statement is not supported by the context.",
    "1. The sky is blue.\nSupported: yes\n2. Grass is red.\nSupported: no",
    "1. No the sky is blue.\nVerdict: Yes\n2. Yes, it is red.\nVerdict: No",
    "1. ✅ Supported\n2. ❌ Not supported",
    "The sky is blue. Verdict: yes\n\nGrass is red. Verdict: no",
    "1. The sky is blue\n2. Grass is red\n\nVerdict: Yes\nVerdict: No",
    "Verdicts: Yes, No",
    "Yes No",
    "1\n0",
    "- Yes: because\n- No: since",
    "Sure! Here are the verdicts:\n\nYes\nNo",
    "Yes\nNo\nLet me know if I can help with anything else!",
    "```\n1. Yes\n2. No\n```",
    "<think>1. No\n2. No</think>1. Yes\n2. No",
    '1. Yes - see {"a": [1]} and {x}\n2. No - see [3]',
    "1. Yes - uses { as the opening sign\n2. No",
    "1. Yes, for two reasons:\n   1. No such rule exists\n   2. It says so\n2. No",
    "Draft:\n1. No\n2. No\n\nFinal:\n1. Yes\n2. No",
]


@pytest.mark.parametrize("reply", TWO)
def test_a_list_may_be_written_in_many_ways(verdicts, reply):
    assert verdicts(reply, 2) == "0S 1N"


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("No, because the context is silent.", "0N"),
        ("NO. Yesterday's weather was different.", "0N"),
        ("Verdict: yes", "0S"),
        ("Verdict (Yes/No): No", "0N"),
        ("The claim is supported by the context.", "0S"),
        ("The claim contradicts the context.", "0C"),
        ("Contradicted: yes", "0C"),
        ('"Not supported" - nothing says so.', "0N"),
        ("1", "0S"),
        ("Supported\nThe context has no contradiction.", "0S"),
    ],
)
def test_a_single_statement_may_be_answered_in_a_sentence(verdicts, reply, found):
    assert verdicts(reply, 1) == found


def test_all_three_verdicts_are_told_apart_in_words(verdicts):
    reply = "1. Supported\n2. Contradicted by chunk 3\n3. Not enough information\n4. Refuted."
    assert verdicts(reply, 4) == "0S 1C 2N 3C"


@pytest.mark.parametrize(
    ("reply", "expected", "found"),
    [
        ("1. Yes\n3. No", 3, "0S 2N"),
        ("1. Yes\n2. I cannot tell\n3. No", 3, "0S 2N"),
        ("Statement 3: The sky... Verdict: 1", 3, "2S"),
        ("Yes. Maybe. No.", 3, "0S 2N"),
    ],
)
def test_missing_verdicts_leave_the_others_in_their_place(verdicts, reply, expected, found):
    assert verdicts(reply, expected) == found


@pytest.mark.parametrize(
    "reply",
    [
        "Nothing to add.",
        "No contradiction was found.",
        "Yes and no.",
        "Yes/No",
        "True crime is a genre.",
        "Supported browsers are listed below.",
        "Verdict: 0.5",
        "Verdict: 1/2",
        "Contradicted? No",
        "SUPPORTED | CONTRADICTED | NOT_ENOUGH_INFO",
        "Noah said so",
    ],
)
def test_words_that_only_look_like_a_verdict_are_none(reply):
    with pytest.raises(JudgeResponseError):
        parse_verdicts(reply, 1)


@pytest.mark.parametrize("reply", ["1", "No, because."])
def test_one_word_for_several_statements_decides_none_of_them(reply):
    with pytest.raises(JudgeResponseError):
        parse_verdicts(reply, 3)


@pytest.mark.parametrize(
    "first",
    [
        "1. Yes, the sky is blue. - No",
        "1. Yes - it is.\nVerdict: No",
        "1. No such thing. Yes/No",
        "1. Supported? Contradicted?",
    ],
)
def test_an_item_that_says_both_is_undecided(verdicts, first):
    assert verdicts(f"{first}\n2. Yes", 2) == "1S"


@pytest.mark.parametrize(
    ("item", "found"),
    [
        ("1. Supported formats are PDF. Verdict: No", "0N"),
        ("1. Yes - the answer: no mention of it", "0S"),
        ('1. No - the context says: "Yes"', "0N"),
        ("1. Yes - there is no contradiction. No doubt.", "0S"),
    ],
)
def test_what_an_item_quotes_does_not_overrule_its_verdict(verdicts, item, found):
    assert verdicts(f"{item}\n2. Maybe", 2) == found


def test_reasons_and_statements_are_kept():
    reply = (
        "1. Yes - the context says so.\n2. Grass is red. - No, it is green\n3. It is. Verdict: Yes"
    )
    first, second, third = parse_verdicts(reply, 3)
    assert (first.statement, first.reason) == ("", "the context says so.")
    assert (second.statement, second.reason) == ("Grass is red.", "it is green")
    assert (third.statement, third.reason) == ("It is.", "")


def test_a_verdict_in_a_list_beats_one_in_the_summary(verdicts):
    assert verdicts("1. Yes\n2. Yes\n\nOverall verdict: No", 2) == "0S 1S"
