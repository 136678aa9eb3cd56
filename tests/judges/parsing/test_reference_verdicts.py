"""Document 003: every row of "Test Cases to Add", under the heading it has there."""

import json
import math

import pytest

from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.results import Status
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import JudgeRefusalError, JudgeResponseError
from ragaliq.evaluators import FaithfulnessEvaluator
from ragaliq.judges import parse_verdicts

CASE = RAGTestCase(query="Which?", context=["The sky is blue."], response="It is blue. It is big.")
ROWS = [
    {"statement": "The sky is blue.", "reason": "The context says so.", "verdict": 1},
    {"statement": "The sky is big.", "reason": "Nothing about its size.", "verdict": 0},
]


# RAGAS JSON format


def test_perfect_ragas_json_response():
    found = parse_verdicts(json.dumps(ROWS), 2)
    assert [item.index for item in found] == [0, 1]
    assert [item.verdict for item in found] == ["SUPPORTED", "NOT_ENOUGH_INFO"]
    assert [item.statement for item in found] == ["The sky is blue.", "The sky is big."]
    assert [item.reason for item in found] == ["The context says so.", "Nothing about its size."]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([{"verdict": 1}, {"verdict": 0}], "0S 1N"),  # no statement, no reason
        ([{"statement": "a", "verdict": 1}, {"reason": "b", "verdict": 0}], "0S 1N"),
        ([{"statement": "a", "verdict": 1}, {"statement": "b"}, {"verdict": 0}], "0S 2N"),
        ([{"statement": "a"}, {"statement": "b", "verdict": None}, {"verdict": 1}], "2S"),
        ([{"verdict": 1}, {}, None, {"verdict": 0}], "0S 3N"),
    ],
)
def test_ragas_json_with_missing_fields(verdicts, rows, expected):
    assert verdicts(json.dumps(rows), len(rows)) == expected


def test_missing_texts_are_empty():
    (found,) = parse_verdicts('[{"verdict": 1}]', 1)
    assert (found.statement, found.reason, found.evidence) == ("", "", "")


@pytest.mark.parametrize(
    "extra", [{"label_source": [1, 2]}, {"notes": {"verdict_of_others": "no"}}, {"": ""}]
)
def test_ragas_json_with_extra_fields(verdicts, extra):
    assert verdicts(json.dumps([{**row, **extra} for row in ROWS]), 2) == "0S 1N"


# Legacy text format


def test_perfect_ragas_text_format(verdicts):
    reply = """Answer:
1. John is majoring in Biology.
Explanation: His major is given as Computer Science. So there is no evidence. Verdict: No.
2. John is a dedicated student.
Explanation: He works hard. Verdict: Yes.
Final verdict for each statement in order: No. Yes."""
    assert verdicts(reply, 2) == "0N 1S"


@pytest.mark.parametrize(
    "reply",
    [
        "Final verdict for each statement in order: Yes. No. Yes.",
        "**Final verdict for each statement in order:** Yes. No. Yes.",
        "### Final verdict for each statement in order\n\nYes. No. Yes.",
        "Final verdict for each statement in order: Yes, No, Yes.",
        "Final verdict for each statement in order: 1. Yes 2. No 3. Yes",
        "Final verdict for each statement in order: (1) Yes (2) No (3) Yes",
        "Final verdict for each statement in order: 1, 0, 1",
        "Final verdict for each statement in order: Supported. Not supported. Supported.",
        "Final verdict for each statement in order: Yes. No. Yes.\n\nNo remarks are needed.",
        "Final verdicts for each of the statements in order: Yes. No. Yes.",
        """Final verdict for each statement in order: No. No. No.
        Wait, I was wrong.
        Final verdict for each statement in order: Yes. No. Yes.""",
        """Final verdict for each statement in order: Yes. No. Yes.
        That was the final verdict for each statement in order, and nothing follows.""",
    ],
)
def test_ragas_text_with_variations(verdicts, reply):
    assert verdicts(reply, 3) == "0S 1N 2S"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Final verdict for each statement in order: Yes. Maybe. No.", "0S 2N"),
        ("Final verdict for each statement in order: Yes. . No", "0S 1N"),
        ("Final verdict for each statement in order: 1. Yes 3. No", "0S 2N"),
        ("Final verdict for each statement in order: Yes. Yesterday. No.", "0S 2N"),
        ("1. a. Verdict: Yes\n2. b. Verdict: No\nFinal verdict for each statement in ord", "0S 1N"),
    ],
)
def test_malformed_ragas_text(verdicts, reply, expected):
    assert verdicts(reply, 3) == expected


def test_ragas_text_without_verdicts_is_no_verdict(verdicts):
    with pytest.raises(JudgeResponseError):
        verdicts("Final verdict for each statement in order:", 3)


# Refusal responses


@pytest.mark.parametrize(
    "reply",
    [
        "I cannot determine faithfulness from this context",
        "The answer doesn't contain enough information",
        "I apologize, but this is not something for me.",
        "There's not enough context here.",
        "No verdicts can be given.",
        "That would be against my policy.",
        "I’m sorry, but I can’t help with that.",
    ],
)
def test_various_refusal_patterns(verdicts, reply):
    with pytest.raises(JudgeRefusalError):
        verdicts(reply, 3)


@pytest.mark.parametrize("reply", ["", "\n\t \n", "\ufeff", "```json\n```", "[]", "{}", "null"])
def test_empty_responses(verdicts, reply):
    with pytest.raises(JudgeResponseError):
        verdicts(reply, 3)


@pytest.mark.parametrize(
    "reply",
    [
        "The weather is nice today.",
        "Here is a poem:\nRoses are red\nViolets are blue",
        '{"model": "x", "usage": {"tokens": 12}}',
        "None of this is about nothing.",
    ],
)
def test_unrelated_responses(verdicts, reply):
    with pytest.raises(JudgeResponseError):
        verdicts(reply, 3)


# Edge cases


MORE = [
    json.dumps([{"verdict": 1}, {"verdict": 0}, {"verdict": 1}]),
    "Final verdict for each statement in order: Yes. No. Yes.",
    "1. Yes\n2. No\n3. Yes",
]
FEWER = [json.dumps(ROWS), "Final verdict for each statement in order: Yes. No.", "1. Yes\n2. No"]


@pytest.mark.parametrize(
    ("reply", "statements", "found"),
    [*((reply, 2, "0S 1N 2S") for reply in MORE), *((reply, 3, "0S 1N") for reply in FEWER)],
)
async def test_more_or_fewer_verdicts_than_statements(
    verdicts, reply, statements, found, reply_judge
):
    assert verdicts(reply, statements) == found
    evaluator = FaithfulnessEvaluator(policy=ScoringPolicy.PROMPTFOO)
    assert (await evaluator.evaluate(CASE, reply_judge(reply, statements))).score == 0.5


@pytest.mark.parametrize(
    "reply", ['[{"verdict": }]', "[{", '[{"statement": "a", "reason": "b"', "{]}["]
)
def test_invalid_json(verdicts, reply):
    with pytest.raises(JudgeResponseError):
        verdicts(reply, 2)


def test_non_json_text(verdicts):
    assert verdicts("1. Yes, it does.\n2. No, it does not.", 2) == "0S 1N"


# Error conditions


@pytest.mark.parametrize("reply", ["[]", '{"statements": []}', "", '[{"statement": "a"}]'])
def test_division_by_zero_cannot_happen_as_no_verdicts_are_an_error(verdicts, reply):
    with pytest.raises(JudgeResponseError):
        verdicts(reply, 0)


@pytest.mark.parametrize(
    "value", ["NaN", "nan", "Infinity", "-Infinity", "1e999", "-1", "2", "0.5"]
)
@pytest.mark.parametrize("quote", ["", '"'])
async def test_nan_infinite_and_negative_verdicts_never_reach_a_score(
    verdicts, reply_judge, value, quote
):
    reply = f'[{{"verdict": {quote}{value}{quote}}}, {{"verdict": 1}}]'
    assert verdicts(reply, 2) == "1S"
    evaluator = FaithfulnessEvaluator(policy=ScoringPolicy.PROMPTFOO)
    result = await evaluator.evaluate(CASE, reply_judge(reply, 2))
    assert result.score is not None
    assert math.isfinite(result.score)
    assert 0.0 <= result.score <= 1.0


@pytest.mark.parametrize(
    ("reply", "score", "status"),
    [
        ("Nice weather.", 0.5, Status.JUDGE_ERROR),
        ("I cannot judge this.", 0.0, Status.JUDGE_REFUSED),
    ],
)
async def test_no_verdicts_score_one_half_and_a_refusal_zero_as_promptfoo_does(
    reply_judge, reply, score, status
):
    evaluator = FaithfulnessEvaluator(policy=ScoringPolicy.PROMPTFOO)
    result = await evaluator.evaluate(CASE, reply_judge(reply, 2))
    assert (result.score, result.passed, result.status) == (score, False, status)
