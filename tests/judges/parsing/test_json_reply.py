"""Strict reading of our own forms: another text is never taken for a claim."""

import json

import pytest
from pydantic import BaseModel

from ragaliq.errors import JudgeError, JudgeRefusalError, JudgeResponseError
from ragaliq.judges import parse_json_reply, parse_verdicts
from ragaliq.judges.wire import ClaimsReply, GradedReply, ScoreReply, VerdictsReply

CLAIMS = '{"claims": ["a", "b"]}'


@pytest.mark.parametrize(
    "reply",
    [
        CLAIMS,
        f"```json\n{CLAIMS}\n```",
        f"Sure, here's what [you] asked for:\n{CLAIMS}\nDone {{really}}.",
        f'<think>{{"claims": ["x"]}}</think>{CLAIMS}',
        f'{CLAIMS} {{"done": true}}',
        f"{CLAIMS}{CLAIMS}",
        f'{{"properties": {{"claims": {{"type": "array"}}}}}}\n{CLAIMS}',
        f'{{"result": {CLAIMS}}}',
        f'{{"reasoning": "so", "output": {CLAIMS}}}',
        f'{{"status": "ok", "result": {CLAIMS}}}',
        f'{{"ClaimsReply": {{"output": {CLAIMS}, "notes": ["1"]}}}}',
        f'<tool_call>\n{{"name": "ClaimsReply", "arguments": {CLAIMS}}}\n</tool_call>',
        f'<tool_call>{{"name": "ClaimsReply", "arguments": {CLAIMS}}}</tool_call>',
        f'<|python_tag|>{{"name": "ClaimsReply", "parameters": {CLAIMS}}}<|eom_id|>',
        f'<s>{{"error": null, "result": {CLAIMS}}}</s>',
        f"{CLAIMS}<|im_end|>",
        f"<answer>\n```json\n{CLAIMS}\n```\n</answer>\n",
        f"```json\n<reply>{CLAIMS}</reply>\n```",
        f"{CLAIMS}\nThe <b>second</b> follows from [note] the <answer>.",
        f"The <answer> makes two:\n{CLAIMS}",
        f'<scratchpad>\n{{"claims": ["draft"]}}\n</scratchpad>\n{CLAIMS}',
        f'<SCRATCHPAD>{{"claims": ["draft"]}}</scratchpad><Answer>{CLAIMS}</Answer>',
        f'My notes: <notes lang="en">\n{{"claims": ["draft"]}}\n</notes>\nSo:\n{CLAIMS}',
        f'<plan><draft>\n{{"claims": ["x"]}}\n</draft>\n</plan><reply>{CLAIMS}</reply>',
        f'[NOTES]\n{{"claims": ["draft"]}}\n[/NOTES]\n{CLAIMS}',
        f'{{"claims": ["draft"]}}\n</scratchpad>\n{CLAIMS}',
        f'<answer>{{"claims": ["what the answer says"]}}</answer>\n{CLAIMS}',
    ],
)
def test_the_one_value_of_the_form_is_taken_from_what_stands_around_it(reply):
    assert parse_json_reply(reply, ClaimsReply) == ClaimsReply(claims=["a", "b"])


@pytest.mark.parametrize(
    "reply",
    [
        '{"error": "overloaded"}',
        '{"error": ["overloaded"]}',
        '{"name": "ClaimsReply", "arguments": ["a"]}',
        '{"status": "failed", "detail": ["no capacity"]}',
        '["a", "b"]',
        '{"claims": "a"}',
        '{"claims": ["a", 3]}',
        '{"claims": [{"claim": "a"}]}',
        '{"claims": ["a", "b",]}',
        '{"claims": ["a", "b"',
        "{'claims': ['a']}",
        '{"claims": ["he said {"a": 1}", "b"]}',
        '{"claims": ["draft"]}\nBetter:\n{"claims": ["a", "b"]}',
        '{"claims": ["draft"], "claims": ["a", "b"]}',
        '{"draft": {"claims": ["x"]}, "final": {"claims": ["a"]}}',
        *(
            form.format('{"claims": ["a"]}')
            for form in (
                # Errors, and what they are about.
                '{{"error": {{"message": "rate limit", "request": {}}}}}',
                '{{"error": {}}}',
                '{{"errors": [{}]}}',
                '{{"detail": {}}}',
                '{{"exception": {}}}',
                '{{"error": "overloaded", "result": {}}}',
                '{{"status": "ok", "result": {{"error": {{"code": 500}}, "output": {}}}}}',
                # A schema, an example, the request or an earlier attempt.
                '{{"type": "object", "properties": {}}}',
                '{{"example": {}}}',
                '{{"examples": [{}]}}',
                '{{"request": {}}}',
                '{{"messages": [{{"role": "user", "content": {}}}]}}',
                '{{"question": "Why?", "answer": {}}}',
                '{{"previous": {}}}',
                '{{"attempts": [{}], "output": null}}',
                '{{"draft": {}, "output": {{"claims": ["b"]}}}}',
                '{{"thoughts": {{"output": {}}}, "answer": "I could not finish."}}',
                # Tags of thoughts, of any name.
                "<scratchpad>\n{}\n</scratchpad>\nI did not finish.",
                "<ScratchPad>{}</SCRATCHPAD> Nothing more.",
                '<notes lang="en" n=1>\n{}\n</notes>\nThat is all so far.',
                "<plan>\n<draft>\n{}\n</draft>\n</plan>\nTo be done.",
                "<reply>\n<thoughts>{}</thoughts>\nTo be done.\n</reply>",
                "<reply>\n<notes>\n{}\n</notes>\nTo be done.\n</reply>",
                "<scratchpad>\n{}",
                "<scratchpad>\n<reply>{}</reply>",
                "<scratchpad>\n{}\nStill to do",
                "So far: <scratchpad>\n```json\n{}\n```\n</scratchpad>\nTo be done.",
                "{}\n</scratchpad>\nTo be done.",
                "[SCRATCHPAD]\n{}\n[/SCRATCHPAD]\nTo be done.",
                '<answer>{}</answer>\n{{"claims": ["b"]}}{{"claims": ["c"]}}',
                # Two calls of a tool, or two answers.
                '<call>{}</call>\n<call>{{"claims": ["b"]}}</call>',
                '<call>{}</call><call>{{"claims": ["b"]}}</call>',
            )
        ),
        '{"claims": [], "error": {"message": "overloaded"}}',
        '{"claims": ["the service is down"], "error": "overloaded"}',
        'The form is {"claims": ["<text>", ...]}:\n{"claims": ["<text>", ...]}',
        '{"type": "object", "properties": {"claims": {"type": "array"}}}',
        "As [context] says, it rained.",
        "1. It rained.\n2. It is Monday.",
        "<html>I cannot</html>",
        "[" * 5000,
        "",
    ],
)
def test_no_other_text_becomes_a_claim(reply):
    with pytest.raises(JudgeResponseError, match="characters"):
        parse_json_reply(reply, ClaimsReply)


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        ("", "empty"),
        ("Lorem ipsum.", "no JSON object"),
        ('{"error": "overloaded"}', '"score"'),
        ('{"reasoning": "x", "score": NaN}', "score: "),
        ('{"reasoning": "x", "score": 8}', "score: .*from 0 to 1"),
        ('{"reasoning": "x", "score": "high"}', "score: "),
        ('{"reasoning": "x", "score": "0_1"}', "score: "),
        ('{"reasoning": "x", "score": "NaN"}', "score: "),
        ('{"reasoning": "x", "score": "0.8 of 1"}', "score: "),
        ('{"reasoning": "x", "score": true}', "score: "),
        ('{"properties": {"reasoning": "x", "score": 1}}', "inside another object"),
        ('<notes>{"reasoning": "x", "score": 1}</notes>\nHm.', "part of its thoughts"),
        ('{"reasoning": "x", "score": 1, "error": "no"}', "error"),
        ('{"reasoning": "x", "score": 1', "cut off at character"),
        ('{"reasoning": "x", "score": %s}' % ("9" * 6000), "damaged"),
    ],
)
def test_the_fault_is_named(reply, fault):
    with pytest.raises(JudgeResponseError, match=fault):
        parse_json_reply(reply, ScoreReply)


@pytest.mark.parametrize(
    "reply",
    [
        "I'm sorry, but I can't help with that.",
        "Based on [context] I cannot determine it.",
        "```\nI refuse to judge this.\n```",
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
    [
        '{"SECRET": 1}',
        '{"SECRET": 1',
        "SECRET text",
        '{"claims": "SECRET"}',
        '{"claims": ["a"], "SECRET": 1, "SECRET": 2}',
        "I cannot say SECRET",
    ],
)
def test_errors_do_not_quote_the_reply(read, reply):
    with pytest.raises(JudgeError) as caught:
        read(reply)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("model", [ClaimsReply, VerdictsReply, GradedReply, ScoreReply])
def test_what_says_nothing_is_an_error_and_declining_a_refusal(model):
    for text in ("", "Lorem ipsum dolor sit amet.", "<html></html>", "{}"):
        with pytest.raises(JudgeResponseError):
            parse_json_reply(text, model)
    with pytest.raises(JudgeRefusalError):
        parse_json_reply("I'm sorry, I cannot help with that.", model)


@pytest.mark.parametrize("tag", ["<think>", "]<think>", "</think>", "[THINK]"])
def test_a_reply_that_only_quotes_a_tag_of_thoughts_is_read_whole(tag):
    said = f"The answer holds {tag} alone."
    reply = json.dumps({"reasoning": said, "score": 0.5})
    assert parse_json_reply(reply, ScoreReply) == ScoreReply(reasoning=said, score=0.5)


def test_a_number_may_stand_in_quotes():
    reply = ScoreReply(reasoning="so", score=0.8)
    assert parse_json_reply('{"reasoning": "so", "score": "0.8"}', ScoreReply) == reply


def test_a_form_of_ones_own_may_have_a_field_error():
    class Checked(BaseModel):
        error: str
        is_right: bool

    reply = '{"error": "a typo", "is_right": false}'
    assert parse_json_reply(reply, Checked) == Checked(error="a typo", is_right=False)
