"""Sloppy replies give verdicts; useless ones give errors of ours and nothing else."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragaliq.errors import JudgeRefusalError, JudgeResponseError
from ragaliq.judges.parsing import read_reply
from ragaliq.judges.wire import ClaimsReply, GradedReply, ScoreReply, VerdictsReply
from ragaliq.testing import ChatCompletionsServer, Reply

openai_only = pytest.mark.parametrize("api", ["openai"], indirect=True)

REPLIES = (ClaimsReply, VerdictsReply, GradedReply, ScoreReply)
CLAIMS = ["The tower was finished in 1889.", "It is 400 metres high."]
CONTEXT = ["The tower was finished in 1889. It is 330 metres high."]

SLOPPY = {
    "fenced": lambda text: f"```json\n{text}\n```",
    "in prose": lambda text: f"Sure! Here is my assessment:\n\n{text}\n\nLet me know.",
    "thought aloud": lambda text: f"<think>Is c1 so? {{maybe}}</think>\n{text}",
    "trailing commas": lambda text: text.replace("}]", "},]").replace('"}', '",}'),
    "single quotes": lambda text: text.replace("'", "").replace('"', "'"),
    "comments": lambda text: text.replace("{", "{ // the verdicts\n", 1),
    "wrapped": lambda text: json.dumps({"result": json.loads(text)}),
    "a bare list": lambda text: json.dumps(json.loads(text)["verdicts"]),
    "one object a line": lambda text: "\n".join(map(json.dumps, json.loads(text)["verdicts"])),
    "a string": json.dumps,
    "upside down": lambda text: json.dumps({"verdicts": json.loads(text)["verdicts"][::-1]}),
    "numbers for ids": lambda text: text.replace('"c1"', "1").replace('"c2"', "2"),
    "lower case": lambda text: text.replace("SUPPORTED", "supported").replace("NOT_E", "not e"),
    "no confidence": lambda text: text.replace('"confidence":0.9', '"note":null'),
    "RAGAS": lambda _: (
        '[{"statement": "a", "reason": "r", "verdict": 1}, '
        '{"statement": "b", "reason": "r", "verdict": 0}]'
    ),
    "numbered": lambda _: "1. Yes, the first chunk says so.\n2. No, that is not in it.",
    "final verdicts": lambda _: "Final verdict for each statement in order: Yes. No.",
}


@pytest.mark.parametrize("way", SLOPPY)
@openai_only
async def test_a_sloppy_reply_gives_the_verdicts(judge_at, way):
    with ChatCompletionsServer() as server:
        server.always(Reply(text=SLOPPY[way]))
        judge = judge_at(server)
        result = await judge.verify_claims(CLAIMS, CONTEXT)
        await judge.aclose()

    verdicts = {item.index: item.verdict for item in result.verdicts}
    assert verdicts == {0: "SUPPORTED", 1: "NOT_ENOUGH_INFO"}
    assert result.spent().requests == 1


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ('{"claims": ["a", "b"]}', ["a", "b"]),
        ('["a", "b"]', ["a", "b"]),
        ('{"claims": [{"claim": "a"}, {"id": 2, "text": "b"}]}', ["a", "b"]),
        ('```\n{"claims": []}\n```', []),
    ],
)
def test_claims_are_read_in_several_forms(text, claims):
    assert read_reply(text, ClaimsReply).claims == claims


@pytest.mark.parametrize(
    "text",
    [
        '[{"statement": "a", "verdict": "yes"}, {"statement": "b", "verdict": 0}]',
        '{"statements": [{"statement": "a", "verdict": 1}, {"statement": "b", "verdict": "no"}]}',
    ],
)
def test_statements_are_read_in_several_forms(text):
    found = read_reply(text, GradedReply).statements

    assert [(item.statement, item.verdict) for item in found] == [
        ("a", "SUPPORTED"),
        ("b", "NOT_ENOUGH_INFO"),
    ]


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ('{"reasoning": "r", "score": 0.7}', 0.7),
        ('{"score": 0.7}', 0.7),
        ('{"score": "0.7", "reasoning": "r"}', 0.7),
        ('The score: {"reasoning": "r", "score": 1}', 1.0),
    ],
)
def test_scores_are_read_in_several_forms(text, score):
    assert read_reply(text, ScoreReply).score == score


@pytest.mark.parametrize("score", ["8", "85", "-1", '"8/10"', "NaN", "null", "[]"])
def test_a_score_on_another_scale_is_no_score(score):
    with pytest.raises(JudgeResponseError):
        read_reply(f'{{"reasoning": "r", "score": {score}}}', ScoreReply)


@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("text", ["", "  ", "Lorem ipsum dolor sit amet.", "<html></html>", "{}"])
def test_what_says_nothing_is_a_response_error(reply, text):
    with pytest.raises(JudgeResponseError):
        read_reply(text, reply, 2)


@pytest.mark.parametrize("reply", REPLIES)
def test_declining_is_a_refusal(reply):
    with pytest.raises(JudgeRefusalError):
        read_reply("I'm sorry, I cannot help with that.", reply, 2)


def test_a_verdict_that_mentions_ignorance_is_no_refusal():
    text = "1. No. I cannot find it in the context.\n2. Yes."

    found = read_reply(text, VerdictsReply, 2).verdicts

    assert [item.verdict for item in found] == ["NOT_ENOUGH_INFO", "SUPPORTED"]


NAMES = (
    "verdicts statements claims score reasoning claim_id reason evidence chunk_ids verdict "
    "confidence statement"
).split()
values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=12,
)
texts = st.text(max_size=200) | values.map(json.dumps)


@given(text=texts, reply=st.sampled_from(REPLIES), expected=st.none() | st.integers(0, 5))
def test_any_reply_is_read_or_is_one_of_our_errors(text, reply, expected):
    try:
        found = read_reply(text, reply, expected)
    except (JudgeResponseError, JudgeRefusalError):
        return
    assert isinstance(found, reply)
    if isinstance(found, ScoreReply):
        assert 0.0 <= found.score <= 1.0
    for item in getattr(found, "verdicts", []):
        assert math.isfinite(item.confidence)
        assert 0.0 <= item.confidence <= 1.0
