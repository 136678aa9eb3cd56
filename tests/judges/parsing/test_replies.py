"""Verdicts in the documents' forms: nothing is guessed or takes another's place."""

import json

import pytest

from ragaliq.errors import JudgeRefusalError, JudgeResponseError
from ragaliq.judges import parse_verdicts

ROWS = '[{"statement": "a", "reason": "r", "verdict": 1}, {"statement": "b", "verdict": 0}]'
FINAL = "Final verdict for each statement in order: "
ERROR, DIFFER, REFUSAL = "error", "differ", "refusal"


def each(expected, found, replies):
    return [(reply, expected, found) for reply in replies]


# By behaviour: what the judge says, of how many statements, and the verdicts that are read.
REPLIES = {
    "what stands around the json does not matter": each(
        2,
        "0S 1N",
        [
            f'{{"label": "x", "statements": {ROWS}}}',
            f"Sure! Here's the JSON [as asked]:\n\n```json\n{ROWS}\n```\n\nIt's done. Let me know!",
            f"<think>1. No\n2. No\n{{'verdict': 0}}</think>\n{ROWS}",
            f"First I look at the text. [{{'verdict': 0}}]\n</think>\n\n{ROWS}",
            "\ufeff" + ROWS,
            '{"verdict": "yes"}\n{"verdict": "no"}',
        ],
    ),
    "rag_evals' rows say whether a statement is supported": [
        (
            (
                '{"statements": [{"is_supported": true, "supporting_chunk_ids": [0]}'
                ', {"statement": "b", "is_supported": false, "supporting_chunk_ids": null}]}'
            ),
            2,
            "0S 1N",
        )
    ],
    "of json that is cut off its whole rows count": [
        ('[{"verdict": 1}, {"verdict": 0}, {"verd', 3, "0S 1N"),
        ('{"statements": [{"verdict": 1}, {"verdict": 0, "reason": "no', 2, "0S"),
        ('[{"verdict": 1', 1, ERROR),
    ],
    "damaged json is an error whatever else it holds": each(
        2,
        ERROR,
        [
            '[{"verdict": 1}, {garbage here}, {"verdict": 0}]',
            '[{"verdict": 1} {"verdict": 0}]',
            '[{"verdict": 1}, {"reason": "it has {"verdict": 1} in it", "verdict": 0}]',
            '[{"reason": "abc, "verdict": 1}, {"reason": "x", "verdict": 0}]',
            '[{"verdict": 1, "verdict": 0}, {"verdict": 1}]',
            "[{'verdict': 1}, {'verdict': 0}]",
        ],
    ),
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
    "a line without a verdict keeps its place": [
        ('{"statement": "a", "verdict": 1}\n{"statement": "b"}\n{"verdict": 0}', 3, "0S 2N")
    ],
    "thoughts may have any tag": [
        (f'<draft>[{{"verdict": 0}}, {{"verdict": 0}}]</draft>\n{ROWS}', 2, "0S 1N"),
        (f"<draft>{ROWS}</draft>\nTo be done.", 2, ERROR),
        (f'<draft>{ROWS}</draft>\n[{{"verd', 2, ERROR),
    ],
    "answers that agree are one": [(f"{ROWS}\nAgain:\n{ROWS}", 2, "0S 1N")],
    "answers that differ are an error and never the last one's word": [
        ('[{"verdict": 1}, {"verdict": 1}]\nOr:\n[{"verdict": 0}, {"verdict": 1}]', 2, DIFFER),
        ('[{"verdict": 1}]\n[{"verdict": 0}]', 2, DIFFER),
        ('The answer says\n{"verdict": 1}\n{"verdict": 0}', 1, DIFFER),
        ('{"draft": [{"verdict": 1}], "final": [{"verdict": 0}]}', 1, DIFFER),
    ],
    "a numbered list goes by its numbers": each(
        2,
        "0S 1N",
        [
            "1. Yes\n2. No",
            "0. Yes\n1. No",
            "2. No\n1. Yes",
            "Statement 1: Yes\nStatement 2: No",
            "1. No the sky is blue.\nVerdict: Yes\n2. Yes, it is red.\nVerdict: No",
            "The sky is blue. Verdict: yes\n\nGrass is red. Verdict: no",
            "**1.** **Yes**. So it is\n**2.** **No**. Nothing",
            "```\n1. Yes\n2. No\n```",
            f"{FINAL}\n1. Yes\n2. No",
        ],
    ),
    "a number that is given twice differently decides nothing": [
        ("1. No\n2. No\n\nFinal:\n1. Yes\n2. No", 2, "1N")
    ],
    "a reply may consist of its verdicts": [
        ("Yes. No. Yes.", 3, "0S 1N 2S"),
        ("Yes", 1, "0S"),
        ("Yes\nNo", 3, ERROR),
        ("No, because.", 3, ERROR),
    ],
    "missing verdicts leave the others in their place": [
        ("1. Yes\n2. I cannot tell\n3. No", 3, "0S 2N"),
        (f"{FINAL}Yes. Maybe. No.", 3, "0S 2N"),
    ],
    "words that only look like a verdict are none": each(
        1,
        ERROR,
        [
            "Nothing to add.",
            "No contradiction was found.",
            "Yes and no.",
            "Verdict: 0.5",
            "SUPPORTED | CONTRADICTED | NOT_ENOUGH_INFO",
            "1. Supported? Contradicted?",
            "1. Yes, the sky is blue. - No",
            "As it says [1, 0], it rained.",
        ],
    ),
    "a template that is repeated decides nothing": [
        ("SUPPORTED | CONTRADICTED | NOT_ENOUGH_INFO", 3, ERROR)
    ],
    "words of other languages are not guessed": [
        (form.format(word), 2, ERROR)
        for word in ("ja", "да", "是", "belegt", "nonne", "даже")
        for form in ('[{{"verdict": "{0}"}}, {{"verdict": "{0}"}}]', "1. {0}\n2. {0}")
    ],
    "a reply with verdicts is no refusal whatever its words": [
        ('[{"verdict": 0, "reason": "I cannot find this in the context."}]', 1, "0N"),
        ("I cannot judge the first.\n2. Yes", 2, "1S"),
        (f"There is not enough context.\n{FINAL}No. No.", 2, "0N 1N"),
    ],
    "a reply without verdicts that declines is a refusal": each(
        1,
        REFUSAL,
        [
            "No, I'm sorry, I will not comply with this.",
            'I cannot judge these. {"verdicts": []}',
            "1. I cannot determine this\n2. I cannot determine this either",
            "<think>1. Yes</think>I'm sorry, I cannot do that.",
        ],
    ),
    "failures are no refusals": each(
        1,
        ERROR,
        [
            "<html><body><h1>502</h1>We cannot serve this. I cannot.</body></html>",
            '{"error": {"message": "I cannot", "type": "requests"}}',
            f'{{"error": {{"message": "rate limit", "request": {ROWS}}}}}',
            '[{"statement": "I cannot say", "reason": "I cannot determine"}]',
            "<think>I cannot",
        ],
    ),
    "deep nesting is an error": each(1, ERROR, ["[" * 5_000, '{"a":[' * 5_000]),
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
    "SUPPORTED": [1, 1.0, True, " 1.0 ", "Yes.", "**SUPPORTED**", "true"],
    "NOT_ENOUGH_INFO": [0, -0.0, False, "not enough information", "NOT_ENOUGH_INFO", "No"],
    "CONTRADICTED": ["CONTRADICTED", "refuted"],
    None: [2, -1, 0.5, 10**400, None, "", "yes and no", "yes/no", "nothing", "-1", [1]],
}


@pytest.mark.parametrize("verdict", VALUES)
def test_a_verdict_may_be_a_number_a_boolean_or_a_word_and_must_settle_something(verdict):
    for value in VALUES[verdict]:
        reply = json.dumps({"verdict": value})
        if verdict is None:
            with pytest.raises(JudgeResponseError):
                parse_verdicts(reply, 1)
        else:
            (found,) = parse_verdicts(reply, 1)
            assert found.verdict == verdict, value


def test_reasons_statements_and_chunks_are_kept():
    row = {"statement": "a", "reason": "because", "verdict": 1}
    (found,) = parse_verdicts(json.dumps([row | {"supporting_chunk_ids": [2, 0, -1, "x"]}]), 1)
    assert (found.statement, found.reason) == ("a", "because")
    assert found.supporting_chunk_ids == [2, 0]
    assert found.spent().requests == 0  # the judge that asked accounts for the reply
