"""Reading takes time in proportion to the text, whatever the text is made of.

No absolute times: processor time of four times as much text, against that of the text itself.
"""

from __future__ import annotations

import time

import pytest

from ragaliq.judges.language.refusals import declines, is_question, is_refusal, is_small_talk
from ragaliq.judges.language.sentences import split_sentences
from ragaliq.judges.local import context, verdict
from ragaliq.judges.local.claims import find_claims
from ragaliq.judges.local.relevance import answer_relevance
from ragaliq.judges.local.verdict import Verifier, load_parameters
from ragaliq.judges.local.words import read_words

UNITS = [
    *"a # > * ** _ ` | [ ] ( ) { } = \\ 0 - – . ! ? 。 … ' \" ” < & $ % ¿ 東 ा ア \u0301".split(),
    *"~~~ |--- *** [a](b) ![ ]( [1] 【4】 http:// 1,000 1: $1 n't twenty- A.B. e.g. .]".split(),
    *(" ", "\n", "\r\n", "\u00a0", "\0", "\ud800", "a ", "A. ", "a\n\n", "- a\n", "1. ", "```\n"),
    *("| - |", "---\n", "[^1]: a\n", "1 000 ", "100 ", "cannot ", "no ", "nothing but ", "؟ "),
    *("I do not know. ", "Sorry, ", "the context ", "is it? ", "x" * 50 + " ", "3 p.m. "),
]
EDGES = [("", ""), ("```\n", ""), ("", "x[a](b)"), ("", "1001"), ("", "```\n")]
SHARES = "The harbour has 12 ships and no pool."
READERS = {
    "claims": find_claims,
    "sentences": split_sentences,
    "words": read_words,
    "refusals": lambda text: (is_refusal(text), declines(text), is_small_talk(text)),
    "questions": is_question,
    "relevance": lambda text: answer_relevance("When?", text, load_parameters().frequencies),
    "a claim": lambda text: Verifier([SHARES]).decide(text),
    "a context": lambda text: Verifier([text]).decide(SHARES),
}
SIZE = 1_000  # characters
MOST = 9.0  # times as long for four times as much: 4 is linear, 16 quadratic
LEAST = 0.02  # seconds below which a difference is noise


def seconds(read, text: str) -> float:
    context._kept.cache_clear()
    verdict._read.cache_clear()
    begun = time.process_time()
    read(text)
    return time.process_time() - begun


@pytest.mark.parametrize("reader", READERS)
def test_four_times_as_much_text_takes_about_four_times_as_long(reader):
    read, slow = READERS[reader], []
    read("Warm up.")
    for unit in UNITS:
        for before, after in EDGES:
            some = SIZE // len(unit)
            longer = seconds(read, before + unit * (4 * some) + after)
            if longer > LEAST:
                pairs = [
                    (seconds(read, before + unit * some + after), longer),
                    *(
                        tuple(seconds(read, before + unit * n + after) for n in (some, 4 * some))
                        for _ in range(2)
                    ),
                ]
                ratio = min(long / max(short, LEAST / 8) for short, long in pairs)
                if ratio > MOST:
                    slow.append((before, unit, after, round(ratio, 1)))
    assert not slow
