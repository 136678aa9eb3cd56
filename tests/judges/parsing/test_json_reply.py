"""Replies of our own wire models, from servers that ignore the schema."""

import pytest

from ragaliq.errors import JudgeError, JudgeRefusalError, JudgeResponseError
from ragaliq.judges import parse_json_reply, parse_verdicts
from ragaliq.judges.parsing import read_reply
from ragaliq.judges.wire import ClaimsReply, GradedReply, ScoreReply, VerdictsReply

ROW = (
    '{"claim_id": "c1", "reason": "r", "evidence": "e", "chunk_ids": [0], '
    '"verdict": "supported", "confidence": 0.9}'
)


@pytest.mark.parametrize(
    "reply",
    [
        '{"claims": ["a", "b"]}',
        '```json\n{"claims": ["a", "b",],}\n```',
        'Sure, here\'s what [you] asked for:\n{"claims": ["a", "b"]}\nDone {really}.',
        '["a", "b"]',
        'Here you are:\n["a", "b"]',
        '{"result": {"claims": ["a", "b"]}}',
        '{"ClaimsReply": {"output": {"claims": ["a", "b"], "notes": 1}}}',
        '<think>{"claims": ["x"]}</think>{"claims": ["a", "b"]}',
        '{"claims": ["a", "b"]} {"done": true}',
        '"{\\"claims\\": [\\"a\\", \\"b\\"]}"',
    ],
)
def test_what_stands_around_the_reply_does_not_matter(reply):
    assert parse_json_reply(reply, ClaimsReply) == ClaimsReply(claims=["a", "b"])


@pytest.mark.parametrize("reply", [ROW, f"[{ROW}]", f'{{"verdicts": [{ROW}]}}', f"```\n{ROW}\n```"])
def test_rows_without_their_wrapper_are_taken(reply):
    (found,) = parse_json_reply(reply, VerdictsReply).verdicts
    assert (found.claim_id, found.verdict) == ("c1", "SUPPORTED")
    two = parse_json_reply(f"{ROW}\n{ROW.replace('c1', 'c2')}", VerdictsReply)
    assert [row.claim_id for row in two.verdicts] == ["c1", "c2"]


def test_strings_are_taken_as_they_are():
    reply = r'{"reasoning": "say \"hi\" {x} [1] \ud83d\ude00 \\ud800 \ud800", "score": 1}'
    assert parse_json_reply(reply, ScoreReply).reasoning == 'say "hi" {x} [1] 😀 \\ud800 \ufffd'


@pytest.mark.parametrize(
    "reply",
    [
        '{"claims": ["draft"]}\nBetter:\n{"claims": ["a", "b"]}',
        '{"claims": ["draft"], "claims": ["a", "b"]}',
    ],
)
def test_several_answers_that_differ_are_an_error(reply):
    with pytest.raises(JudgeResponseError):
        parse_json_reply(reply, ClaimsReply)


@pytest.mark.parametrize(
    ("reply", "model"),
    [
        ("", ClaimsReply),
        ('{"claims": ["a", "b"', ClaimsReply),
        ('{"claims": ["a", 3]}', ClaimsReply),
        ('{"claims": ["he said {"a": 1}", "b"]}', ClaimsReply),
        ("As [context] says, it rained.", ClaimsReply),
        ('{"reasoning": "x"}', ScoreReply),
        ('{"reasoning": "x", "score": NaN}', ScoreReply),
        ('{"reasoning": "x", "score": %s}' % ("9" * 6000), ScoreReply),
        ('{"reasoning": "I cannot tell", "score": "high"}', ScoreReply),
        (f'{{"verdicts": [{ROW}, {{"claim_id": "c2"}}]}}', VerdictsReply),
        ("<html>I cannot</html>", ClaimsReply),
        ("[" * 5000, ClaimsReply),
    ],
)
def test_a_reply_of_another_form_is_an_error(reply, model):
    with pytest.raises(JudgeResponseError) as caught:
        parse_json_reply(reply, model)
    assert "characters" in str(caught.value)


@pytest.mark.parametrize(
    "reply",
    [
        "I'm sorry, but I can't help with that.",
        '{"error": "I cannot assist with that."}',
        "Based on [context] I cannot determine it.",
    ],
)
def test_a_refusal_is_told_from_an_error(reply):
    with pytest.raises(JudgeRefusalError):
        parse_json_reply(reply, ClaimsReply)


@pytest.mark.parametrize(
    "read", [lambda reply: parse_json_reply(reply, ClaimsReply), lambda x: parse_verdicts(x, 2)]
)
@pytest.mark.parametrize(
    "reply",
    ['{"SECRET": 1}', '{"SECRET": 1', "SECRET text", '{"claims": "SECRET"}', "I cannot say SECRET"],
)
def test_errors_do_not_quote_the_reply(read, reply):
    with pytest.raises(JudgeError) as caught:
        read(reply)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("wrapper", ["%s", '{"statements": %s}'])
def test_statements_are_read_in_several_forms(wrapper):
    rows = '[{"statement": "a", "verdict": "yes"}, {"statement": "b", "verdict": 0}]'
    found = read_reply(wrapper % rows, GradedReply).statements
    assert [(item.statement, item.verdict) for item in found] == [
        ("a", "SUPPORTED"),
        ("b", "NOT_ENOUGH_INFO"),
    ]


@pytest.mark.parametrize(
    ("score", "read"),
    [("0.7", 0.7), ('"0.7"', 0.7), ("1", 1.0)]
    + [(score, None) for score in ("8", "85", "-1", '"8/10"', "NaN", "null", "[]")],
)
def test_a_score_is_read_in_several_forms_and_on_another_scale_is_no_score(score, read):
    text = f'The score: {{"score": {score}}}'
    if read is not None:
        assert read_reply(text, ScoreReply).score == read
        return
    with pytest.raises(JudgeResponseError):
        read_reply(text, ScoreReply)


@pytest.mark.parametrize("reply", [ClaimsReply, VerdictsReply, GradedReply, ScoreReply])
def test_what_says_nothing_is_an_error_and_declining_a_refusal(reply):
    for text in ("", "Lorem ipsum dolor sit amet.", "<html></html>", "{}"):
        with pytest.raises(JudgeResponseError):
            read_reply(text, reply, 2)
    with pytest.raises(JudgeRefusalError):
        read_reply("I'm sorry, I cannot help with that.", reply, 2)
