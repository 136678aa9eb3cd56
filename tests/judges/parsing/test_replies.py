"""Verdicts in all the forms that models give them: nothing is guessed or takes another's place."""

import json

import pytest

from ragaliq.errors import JudgeRefusalError, JudgeResponseError
from ragaliq.judges import parse_verdicts

ROWS = '[{"statement": "a", "reason": "r", "verdict": 1}, {"statement": "b", "verdict": 0}]'
ERROR, DIFFER, REFUSAL = "error", "differ", "refusal"


def each(expected, found, replies):
    return [(reply, expected, found) for reply in replies]


# By behaviour: what the judge says, of how many statements, and the verdicts that are read.
REPLIES = {
    "the outer form does not matter": each(
        2,
        "0S 1N",
        [
            f'{{"label": "x", "is_faithful": false, "statements": {ROWS}}}',
            f"Sure! Here's the JSON [as asked]:\n\n```json\n{ROWS}\n```\n\nIt's done. Let me know!",
            f"<think>1. No\n2. No\n{{'verdict': 0}}</think>\n{ROWS}",
            f"First I look at the text. [{{'verdict': 0}}]\n</think>\n\n{ROWS}",
            "\ufeff" + ROWS,
            '[{"Verdict": "Yes", "Reason": "r"}, {"VERDICT": "no"}]',
            """{"statements": [
        {"statement": "a", "is_supported": true, "supporting_chunk_ids": [0]},
        {"statement": "b", "is_supported": false, "supporting_chunk_ids": null}
    ]}""",
            '[{"statement": "a", "evaluation": {"verdict": 1}}, {"evaluation": {"verdict": 0}}]',
            '{"verdicts": ["yes", "no"]}',
            "[1, 0]",
            '{"1": "yes", "2": "no"}',
        ],
    ),
    "rows that carry an id go by it": [
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
    "a key given twice decides only if both agree": [
        (reply, 2, found)
        for reply, found in [
            ('{"verdict": 1, "reason": "a", "reason": "b"}', "0S"),
            ('[{"verdict": 1, "verdict": 0}, {"verdict": 1}]', "1S"),
            ('[{"verdict": 1, "Verdict": 0}, {"verdict": 1}]', "1S"),
            ('[{"verdict": 1, "verdict": [0]}, {"verdict": 1}]', "1S"),
        ]
    ],
    "answers that agree or name different statements are one": [
        (reply, 2, found)
        for reply, found in [
            ('[{"verdict": 1}, {"verdict": 0}] Again: [{"verdict": 1}, {"verdict": 0}]', "0S 1N"),
            ('[{"id": 2, "verdict": 0}] and [{"id": 1, "verdict": 1}]', "0S 1N"),
        ]
    ],
    "slips that leave no doubt are read over": each(
        2,
        "0S 1N",
        [
            '[{"verdict": 1} {"verdict": 0}]',
            '[{"verdict": 1 "reason": "x"}, {"reason": "y" "verdict": 0}]',
            '[{"verdict": 1},, {"verdict": 0}]',
            '{"verdicts": ["yes"\n  "no"]}',
            "[{'verdict': 1, 'reason': 'it's fine, isn't it'}, {'verdict': 0}]",
            "[{verdict: yes, reason: it is so}, {verdict: not supported}]",
            '[{"verdict"： 1}， {"verdict"： 0}]',
            '[{"verdict" = 1}, {"verdict" => 0}]',
            '[{"verdict": 1, "reason": "He said "yes", then left"}, {"verdict": 0}]',
            '[{"reason": "The "best" "one" of "all"", "verdict": 1}, {"verdict": 0}]',
            '[{"reason": "LaTeX \\(x\\) and \\d", "verdict": 1}, {"verdict": 0}]',
            '[{"verdict": 1, "reason": "x"}, {"verdict": 0, "reason": "y"]',
            '[{"verdict": 1}, {"verdict": 0}]]}',
            '[{"verdict": 1}, {"verdict": 0}, ...]',
            '[{"verdict": +1.}, {"verdict": .0}]',
        ],
    ),
    "what is damaged is left out and shifts nothing": [
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
    "the text inside cut off json is neither a verdict nor a refusal": each(
        1,
        ERROR,
        [
            '[{"statement": "a", "reason": "1. Yes - it is so',
            '{"reason": "x\nVerdict: yes\n',
            '```json\n{"statements": [{"reason": "No. I cannot tell',
            'Here you are:\n[{"reason": "1. No\n2. Yes',
        ],
    ),
    "a list may be written in many ways": each(
        2,
        "0S 1N",
        [
            "#1: Yes\n#2: No",
            "c1: SUPPORTED\nc2: NOT_ENOUGH_INFO",
            "0. Yes\n1. No",
            "2. No\n1. Yes",
            "1. Yes, 2. No",
            "Verdict 1: Yes\nVerdict 2: No",
            "1. The claim is supported by chunk 1.\n2. The claim is not supported.",
            "1. The sky is blue.\nSupported: yes\n2. Grass is red.\nSupported: no",
            "1. No the sky is blue.\nVerdict: Yes\n2. Yes, it is red.\nVerdict: No",
            "The sky is blue. Verdict: yes\n\nGrass is red. Verdict: no",
            "1. The sky is blue\n2. Grass is red\n\nVerdict: Yes\nVerdict: No",
            "- Yes: because\n- No: since",
            "Yes\nNo\nLet me know if I can help with anything else!",
            "```\n1. Yes\n2. No\n```",
            "<think>1. No\n2. No</think>1. Yes\n2. No",
            '1. Yes - see {"a": [1]} and {x}\n2. No - see [3]',
            "1. Yes, for two reasons:\n   1. No such rule exists\n   2. It says so\n2. No",
            "Draft:\n1. No\n2. No\n\nFinal:\n1. Yes\n2. No",
        ],
    ),
    "a single statement may be answered in a sentence": [
        (reply, 1, found)
        for reply, found in [
            ("No, because the context is silent.", "0N"),
            ("Verdict (Yes/No): No", "0N"),
            ("The claim contradicts the context.", "0C"),
            ("Contradicted: yes", "0C"),
            ('"Not supported" - nothing says so.', "0N"),
            ("1", "0S"),
            ("Supported\nThe context has no contradiction.", "0S"),
        ]
    ],
    "missing verdicts leave the others in their place": [
        ("1. Yes\n2. I cannot tell\n3. No", 3, "0S 2N"),
        ("Statement 3: The sky... Verdict: 1", 3, "2S"),
        ("Yes. Maybe. No.", 3, "0S 2N"),
    ],
    "words that only look like a verdict are none": each(
        1,
        ERROR,
        [
            "Nothing to add.",
            "No contradiction was found.",
            "Yes and no.",
            "Verdict: 0.5",
            "Contradicted? No",
            "SUPPORTED | CONTRADICTED | NOT_ENOUGH_INFO",
        ],
    ),
    "one word for several statements decides none of them": each(3, ERROR, ["1", "No, because."]),
    "a reply with verdicts is no refusal whatever its words": [
        (
            "1. No - the answer says 'I cannot determine', which the context doesn't support",
            1,
            "0N",
        ),
        ("No, the answer says 'I cannot help with refunds', which nothing supports", 1, "0N"),
        ("No, I cannot determine this from the context", 1, "0N"),
        ('[{"verdict": 0, "reason": "I cannot find this in the context."}]', 1, "0N"),
        ('[{"statement": "I apologize", "reason": "against my policy", "verdict": 1}]', 1, "0S"),
        ("I cannot judge the first.\n2. Yes", 2, "1S"),
        (
            "There is not enough context.\nFinal verdict for each statement in order: No. No.",
            2,
            "0N 1N",
        ),
    ],
    "a reply without verdicts that declines is a refusal": each(
        1,
        REFUSAL,
        [
            "No, I'm sorry, I will not comply with this.",
            '{"refusal": "I\'m sorry, I can\'t do this."}',
            'I cannot judge these. {"verdicts": []}',
            "1. I cannot determine this\n2. I cannot determine this either",
            "<think>1. Yes</think>I'm sorry, I cannot do that.",
            "Es tut mir leid, aber ich kann diese Aussagen nicht beurteilen.",
        ],
    ),
    "failures are no refusals": each(
        1,
        ERROR,
        [
            "<html><body><h1>502</h1>We cannot serve this. I cannot.</body></html>",
            '{"error": {"message": "Rate limit reached", "type": "requests"}}',
            '[{"statement": "I cannot say", "reason": "I cannot determine"}]',
            '[{"statement": "I cannot say", "reason": "I cannot det',
            "<think>I cannot",
        ],
    ),
    "answers that differ are an error and never the last one's word": [
        ('[{"verdict": 1}, {"verdict": 1}]\nOr:\n[{"verdict": 0}, {"verdict": 1}]', 2, DIFFER),
        ('Like {"verdict": 1}. So: [{"verdict": 0}, {"verdict": 0}] {"note": "x"}', 2, DIFFER),
        ('Part 1: [{"verdict": 1}]\nPart 2: [{"verdict": 0}]', 2, DIFFER),
        ('The answer says {"verdict": 1}.\n{"verdict": 0}', 1, DIFFER),
        ('{"draft": [{"verdict": 1}], "final": [{"verdict": 0}]}', 1, DIFFER),
        ('[{"id": 1, "verdict": 1}] [{"id": 1, "verdict": 0}]', 2, DIFFER),
    ],
    "an item that says both is undecided": each(
        2,
        "1S",
        [
            f"{first}\n2. Yes"
            for first in (
                "1. Yes, the sky is blue. - No",
                "1. Yes - it is.\nVerdict: No",
                "1. No such thing. Yes/No",
                "1. Supported? Contradicted?",
            )
        ],
    ),
    "what an item quotes does not overrule its verdict": [
        ("1. Supported formats are PDF. Verdict: No\n2. Maybe", 2, "0N"),
        ("1. Yes - the answer: no mention of it\n2. Maybe", 2, "0S"),
        ('1. No - the context says: "Yes"\n2. Maybe', 2, "0N"),
        ("1. Yes - there is no contradiction. No doubt.\n2. Maybe", 2, "0S"),
    ],
    "a line without a verdict keeps its place": [
        ('{"statement": "a", "verdict": 1}\n{"statement": "b"}\n{"verdict": 0}', 3, "0S 2N")
    ],
    "a citation in prose is no list of verdicts": [("As it says [1, 0], it rained.", 2, ERROR)],
    "a verdict in a list beats one in the summary": [
        ("1. Yes\n2. Yes\n\nOverall verdict: No", 2, "0S 1S")
    ],
    "all three verdicts are told apart in words": [
        ("1. Supported\n2. Contradicted by chunk 3\n3. Not enough information", 3, "0S 1C 2N")
    ],
    "words of other languages are asked for again and not guessed": [
        (form.format(word), 2, ERROR)
        for word in ("ja", "да", "是", "belegt", "nonne", "даже")
        for form in ('[{{"verdict": "{0}"}}, {{"verdict": "{0}"}}]', "1. {0}\n2. {0}")
    ],
    "the objects of a deep reply are found": [
        ("[" * 90 + '{"verdict": 1}' + "]" * 90 + ",", 1, "0S")
    ],
    "deep nesting is an error": each(1, ERROR, ["[" * 5_000, "{'a':[" * 5_000]),
}


@pytest.mark.parametrize(
    ("reply", "expected", "found"),
    [
        pytest.param(*row, id=f"{behaviour} {number}")
        for behaviour, rows in REPLIES.items()
        for number, row in enumerate(rows)
    ],
)
def test_a_reply_gives_the_verdicts_it_states(verdicts, reply, expected, found):
    if found == REFUSAL:
        with pytest.raises(JudgeRefusalError):
            parse_verdicts(reply, expected)
    elif found == ERROR:
        with pytest.raises(JudgeResponseError):
            parse_verdicts(reply, expected)
    elif found == DIFFER:
        with pytest.raises(JudgeResponseError, match="differ"):
            parse_verdicts(reply, expected)
    else:
        assert verdicts(reply, expected) == found


VALUES = {
    "SUPPORTED": [
        *(1, 1.0, True),
        *" 1.0 |Yes.|yes, it is there|**SUPPORTED**|fully supported|entailment|✅".split("|"),
    ],
    "NOT_ENOUGH_INFO": [
        *(0, -0.0, False),
        *"not enough information|isn't supported|unsupported|partially supported|neutral".split(
            "|"
        ),
    ],
    "CONTRADICTED": "CONTRADICTED|contradicted by chunk 2|contradiction".split("|"),
    None: [
        *(2, -1, 0.5, 10**4000, None),
        *"|yes and no|yes/no|no contradiction|nothing|-1".split("|"),
    ],
}


@pytest.mark.parametrize("verdict", VALUES)
def test_a_verdict_may_be_a_number_a_boolean_or_words_and_must_settle_something(verdict):
    for value in VALUES[verdict]:
        reply = json.dumps({"verdict": value})
        if verdict is None:
            with pytest.raises(JudgeResponseError):
                parse_verdicts(reply, 1)
        else:
            (found,) = parse_verdicts(reply, 1)
            assert found.verdict == verdict, value


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


def test_lone_surrogates_do_not_reach_the_result():
    reply = '[{"verdict": 1, "reason": "\\ud800 \\ud83d\\ude00 \\\\ud800", "statement": "\ud800"}]'
    (found,) = parse_verdicts(reply, 1)
    assert found.reason == "\ufffd 😀 \\ud800"
    assert found.statement == "\ufffd"
    assert found.model_dump_json()


def test_a_reply_that_is_json_is_read_as_such_also_with_emoji_written_as_escapes():
    reply = r"""[{"verdict": 1, "reason": "\ud83d\ude00", "isn't it?": "yes"}, {"verdict": 0}]"""
    first, second = parse_verdicts(reply, 2)
    assert (first.verdict, first.reason) == ("SUPPORTED", "😀")
    assert second.verdict == "NOT_ENOUGH_INFO"


def test_unescaped_quotation_marks_stay_in_the_reason():
    reply = """{"reason": "He said "yes", it's 5" long", "verdict": 1}"""
    assert parse_verdicts(reply, 1)[0].reason == """He said "yes", it's 5" long"""


def test_escapes_of_python_and_json_are_understood():
    reply = r"""{'verdict': 1, 'reason': 'a\'b\n\x41\u0042\U00000043\ud83d\ude00\ud800\/\d'}"""
    assert parse_verdicts(reply, 1)[0].reason == "a'b\nABC😀\ufffd/\\d"


def test_reasons_and_statements_in_lists_are_kept():
    reply = (
        "1. Yes - the context says so.\n2. Grass is red. - No, it is green\n3. It is. Verdict: Yes"
    )
    first, second, third = parse_verdicts(reply, 3)
    assert (first.statement, first.reason) == ("", "the context says so.")
    assert (second.statement, second.reason) == ("Grass is red.", "it is green")
    assert (third.statement, third.reason) == ("It is.", "")
