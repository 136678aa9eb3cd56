"""Refusals and words of other languages, distinguished from verdicts and from failures."""

from __future__ import annotations

import pytest

from ragaliq.errors import JudgeRefusalError, JudgeResponseError
from ragaliq.judges import parse_verdicts


@pytest.mark.parametrize(
    ("reply", "expected", "found"),
    [
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
)
def test_a_reply_with_verdicts_is_no_refusal_whatever_its_words(verdicts, reply, expected, found):
    assert verdicts(reply, expected) == found


@pytest.mark.parametrize(
    "reply",
    [
        "No, I'm sorry, I will not comply with this.",
        "No. I am unable to assist.",
        '{"error": "I cannot assist with that request."}',
        '{"refusal": "I\'m sorry, I can\'t do this."}',
        'I cannot judge these. {"verdicts": []}',
        "1. I cannot determine this\n2. I cannot determine this either",
        "<think>1. Yes</think>I'm sorry, I cannot do that.",
        "Es tut mir leid, aber ich kann diese Aussagen nicht beurteilen.",
        "К сожалению, я не могу оценить эти утверждения.",
        "抱歉，我无法判断这些陈述。",
    ],
)
def test_a_reply_without_verdicts_that_declines_is_a_refusal(reply):
    with pytest.raises(JudgeRefusalError):
        parse_verdicts(reply, 1)


@pytest.mark.parametrize(
    "reply",
    [
        "<html><body><h1>502</h1>We cannot serve this. I cannot.</body></html>",
        '<?xml version="1.0"?><Error>I cannot</Error>',
        '{"error": {"message": "Rate limit reached", "type": "requests"}}',
        "upstream connect error or disconnect/reset before headers",
        '[{"statement": "I cannot say", "reason": "I cannot determine"}]',
        '[{"statement": "I cannot say", "reason": "I cannot det',
        "<think>I cannot",
    ],
)
def test_failures_are_no_refusals(reply):
    with pytest.raises(JudgeResponseError):
        parse_verdicts(reply, 1)


@pytest.mark.parametrize("word", ["ja", "да", "是", "belegt", "nonne", "даже"])
def test_words_of_other_languages_are_asked_for_again_and_not_guessed(word):
    for reply in (f'[{{"verdict": "{word}"}}, {{"verdict": "{word}"}}]', f"1. {word}\n2. {word}"):
        with pytest.raises(JudgeResponseError):
            parse_verdicts(reply, 2)
