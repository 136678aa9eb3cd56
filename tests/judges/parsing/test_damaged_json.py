"""Verdicts in what should have been JSON: nothing is guessed, nothing takes another's place."""

from __future__ import annotations

import pytest

from ragaliq.errors import JudgeError, JudgeResponseError
from ragaliq.judges import parse_verdicts

TWO = [
    '[{"verdict": 1} {"verdict": 0}]',
    '[{"verdict": 1 "reason": "x"}, {"reason": "y" "verdict": 0}]',
    '[{"verdict": 1},, {"verdict": 0}]',
    '{"verdicts": ["yes"\n  "no"]}',
    '// first\n[ # second\n {"verdict": 1, /* third */ "reason": "a"}, // 4th\n {"verdict": 0}\n]',
    "[{'verdict': True, 'reason': None}, {'verdict': False, 'reason': 'it\\'s'}]",
    "[{'verdict': 1, 'reason': 'it's fine, isn't it'}, {'verdict': 0}]",
    "[{verdict: yes, reason: it is so}, {verdict: not supported}]",
    '[{"verdict"： 1}， {"verdict"： 0}]',
    '[{"verdict" = 1}, {"verdict" => 0}]',
    '[{"verdict": 1, "reason": "He said "yes", then left"}, {"verdict": 0}]',
    '[{"reason": "The "best" "one" of "all"", "verdict": 1}, {"verdict": 0}]',
    '[{"reason": "LaTeX \\(x\\) and \\d", "verdict": 1}, {"verdict": 0}]',
    '[{"verdict": 1}, {"verdict": 0}',
    '{"statements": [{"verdict": 1}, {"verdict": 0}]',
    '[{"verdict": 1, "reason": "x"}, {"verdict": 0, "reason": "y"]',
    '[{"verdict": 1}, {"verdict": 0}]]}',
    '[{"verdict": 1}, {"verdict": 0}, ...]',
    '[{"verdict": +1.}, {"verdict": .0}]',
]


@pytest.mark.parametrize("reply", TWO)
def test_slips_that_leave_no_doubt_are_read_over(verdicts, reply):
    assert verdicts(reply, 2) == "0S 1N"


def test_unescaped_quotation_marks_stay_in_the_reason():
    reply = """{"reason": "He said "yes", it's 5" long", "verdict": 1}"""
    assert parse_verdicts(reply, 1)[0].reason == """He said "yes", it's 5" long"""


def test_escapes_of_python_and_json_are_understood():
    reply = r"""{'verdict': 1, 'reason': 'a\'b\n\x41\u0042\U00000043\ud83d\ude00\ud800\/\d'}"""
    assert parse_verdicts(reply, 1)[0].reason == "a'b\nABC😀\ufffd/\\d"


@pytest.mark.parametrize(
    ("reply", "expected", "found"),
    [
        # A row is unreadable: it keeps its place while the number of rows is right ...
        ('[{"verdict": 1}, {garbage here}, {"verdict": 0}]', 3, "0S 2N"),
        # ... and otherwise only what stands before it counts.
        ('[{"verdict": 1}, {garbage here}, {"verdict": 0}]', 4, "0S"),
        # A quotation mark is missing: the rows must not run into one another.
        ('[{"reason": "abc, "verdict": 1}, {"reason": "x", "verdict": 0}]', 2, "1N"),
        ('[{"verdict": 1}, {"reason": "abc, "verdict": 1}, {"verdict": 0}]', 4, "0S"),
        # JSON quoted in a reason is not the judge's own.
        ('[{"verdict": 1}, {"reason": "it has {"verdict": 1} in it", "verdict": 0}]', 2, "0S"),
        # A brace is missing.
        ('[{"verdict": 1, {"verdict": 0}]', 2, "1N"),
    ],
)
def test_what_is_damaged_is_left_out_and_shifts_nothing(verdicts, reply, expected, found):
    assert verdicts(reply, expected) == found


@pytest.mark.parametrize(
    "reply",
    [
        '[{"statement": "a", "reason": "1. Yes - it is so',
        '{"reason": "x\nVerdict: yes\n',
        '```json\n{"statements": [{"reason": "No. I cannot tell',
        'Here you are:\n[{"reason": "1. No\n2. Yes',
    ],
)
def test_the_text_inside_cut_off_json_is_neither_a_verdict_nor_a_refusal(reply):
    with pytest.raises(JudgeResponseError):
        parse_verdicts(reply, 1)


@pytest.mark.parametrize("unit", ["[", "{'a':["])
def test_deep_nesting_does_not_reach_the_recursion_limit(unit):
    with pytest.raises(JudgeError):
        parse_verdicts(unit * 5_000, 1)


def test_the_objects_of_a_deep_reply_are_found_all_the_same():
    nested = "[" * 90 + '{"verdict": 1}' + "]" * 90
    assert parse_verdicts(nested + ",", 1)[0].verdict == "SUPPORTED"
