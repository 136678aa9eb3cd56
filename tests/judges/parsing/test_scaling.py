"""The work grows with the length of a reply, not faster; counted in calls, not in seconds."""

from __future__ import annotations

import sys

import pytest

from ragaliq.errors import JudgeError
from ragaliq.judges import parse_json_reply, parse_verdicts
from ragaliq.judges.wire import VerdictsReply

UNITS = [
    "[",
    "{",
    '"',
    "'",
    "\\",
    '{"a":',
    '[{"a":"',
    "{a:",
    "{a:1,“",
    "{'a\\\\",
    '["a" ',
    '"a" "b" ',
    '{"verdict":1}',
    '[{"verdict":1},',
    '{"verdict":1,"verdict":0,',
    "[1,",
    '{"1":',
    "1. Yes\n",
    "| 1 | a |\n",
    "Statement 2: a. Verdict: no. ",
    "Yes. ",
    "Final verdict for each statement in order: ",
    "Verdict: ",
    "- Yes\n",
    "no ",
    "I cannot ",
    "```json\n",
    "/*",
    "<think>",
    "</think>",
]


def calls(reply: str) -> int:
    """How many functions, ours and built-in ones, run while a reply is read."""
    count = 0

    def counted(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        for read in (
            lambda: parse_verdicts(reply, 3),
            lambda: parse_json_reply(reply, VerdictsReply),
        ):
            try:
                read()
            except JudgeError:
                continue
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("unit", UNITS)
def test_eight_times_the_text_takes_about_eight_times_the_calls(unit):
    short, long = (calls(unit * (size // len(unit))) for size in (1_000, 8_000))
    assert long <= 10 * short + 500


@pytest.mark.parametrize("unit", ["[", "{", '{"a":', '[{"a":', "{'a':["])
def test_deep_nesting_does_not_reach_the_recursion_limit(unit):
    with pytest.raises(JudgeError):
        parse_verdicts(unit * 20_000, 1)


def test_the_objects_of_a_deep_reply_are_found_all_the_same():
    nested = "[" * 90 + '{"verdict": 1}' + "]" * 90
    assert parse_verdicts(nested + ",", 1)[0].verdict == "SUPPORTED"
