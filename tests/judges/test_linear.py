"""Whatever reads a text or a reply takes time in proportion to its length, and stops somewhere."""

import asyncio
import contextlib
import itertools
import json
import random
import time

import pytest

from ragaliq.core.thoughts import without_thoughts
from ragaliq.errors import JudgeError
from ragaliq.evaluators.alignment import EvidenceSource, SearchedText
from ragaliq.evaluators.claims import split_text
from ragaliq.judges import LocalJudge, parse_json_reply, parse_verdicts
from ragaliq.judges.language.answers import read_answer
from ragaliq.judges.language.refusals import is_refusal, sentence_kind
from ragaliq.judges.language.sentences import split_sentences
from ragaliq.judges.local import context as chunks
from ragaliq.judges.local import verdict
from ragaliq.judges.local.words import read_words
from ragaliq.judges.prompting import PromptSet, defuse, delimit, delimit_list, restore
from ragaliq.judges.wire import ClaimsReply, ScoreReply, VerdictsReply

pytestmark = pytest.mark.slow

CHUNKS = ["The lamp weighs 310 grams. " * 40, "It folds flat, for the bag. " * 40]
UNITS = [
    *" \n\t.…[]{}\"'`<>|*#_-:,;/\\(0aA1é,，",
    *"= – ! ? 。 ' ” & $ % ¿ 東 ा ア \u0301 \u2060 ｜ 是 \u00a0 \0 \ud800".split(" "),
    *"... n't {a: ```json\n ``` /* // </ <think> </think> </answer-2 <|im_start|> [INST".split(" "),
    *"~~~ |--- *** [a](b) ![ ]( [1] 【4】 http:// 1,000 1: $1 n't twenty- A.B. e.g. .]".split(),
    *("[...] ", " … ", "not ", "310 ", '{"a":', '["a" ', '{"k": ["v" "', '{"verdict":1}'),
    *("1. Yes\n", "Final verdict for each statement in order: ", "Verdict: ", "I cannot ", "no "),
    *("The lamp weighs ", "\r\n", "a ", "A. ", "a\n\n", "- a\n", "1. ", "```\n", "| - |", "---\n"),
    *("[^1]: a\n", "1 000 ", "cannot ", "nothing but ", "؟ ", "I do not know. ", "Sorry, "),
    *("at most 12 ships, ", "Tuesday ", "all ships ", "12 days ", "between 1 and 90 ships "),
    *("the context ", "is it? ", "x" * 50 + " ", "3 p.m. "),
    *(
        "[THINK]",
        "[/THINK]",
        "<seed:think>",
        "<|channel|>final<|message|>",
        "◁/think▷",
        "\n<think>",
        "\n<notes>{}",
        "{}\n</notes>",
    ),
]


def evidence(text: str) -> None:
    asyncio.run(EvidenceSource(CHUNKS).find(text, [1]))


def quoted_from(text: str) -> None:
    asyncio.run(EvidenceSource([text, text[::-1]]).find("The lamp weighs 310 grams"))


def claim(text: str) -> None:
    SearchedText("The lamp weighs 310 grams. " * 80).locate(text)


SHARES = "The harbour has 12 ships and no pool."


def decided(claim: str, context: str) -> None:
    chunks._read_or_kept.cache_clear()
    verdict.read_context.cache_clear()
    asyncio.run(LocalJudge().verify_claim(claim, [context]))


READERS = {
    "claims of an answer": read_answer.__wrapped__,  # reads what it has read before, too
    "sentences": split_sentences,
    "words": read_words,
    "refusals": is_refusal,
    "kinds of sentences": sentence_kind,
    "relevance": lambda text: asyncio.run(LocalJudge().evaluate_relevance("When?", text)),
    "a claim, decided here": lambda text: decided(text, SHARES),
    "a claim, decided by bounds": lambda text: decided(
        text, "Some 5 to 9 ships, at least 12, go Monday."
    ),
    "a context, read here": lambda text: decided(SHARES, text),
    "parse_verdicts": lambda text: parse_verdicts(text, 3),
    "parse_verdicts, in a reason": lambda text: parse_verdicts(
        json.dumps([{"reason": text, "verdict": 1}]), 1
    ),
    "parse_verdicts, cut off": lambda text: parse_verdicts('[{"verdict": 1, "reason": "' + text, 1),
    "parse_json_reply": lambda text: parse_json_reply(text, VerdictsReply),
    "parse_json_reply, claims": lambda text: parse_json_reply(
        '{"claims": ["' + text + '"]}', ClaimsReply
    ),
    "parse_json_reply, score": lambda text: parse_json_reply(text, ScoreReply),
    "thoughts": without_thoughts,
    "evidence": evidence,
    "quoted from": quoted_from,
    "claim": claim,
    "delimit": lambda text: delimit("answer", text),
    "delimit_list": lambda text: delimit_list("claims", "claim", [1, 2], [text, text]),
    "prompt": lambda text: PromptSet().render("relevance", question=text, answer=text),
    "defuse": lambda text: restore(defuse(text)),
    "parts": lambda text: split_text(text, 3000),
}


def seconds(read, text: str) -> float:
    began = time.process_time()
    with contextlib.suppress(JudgeError):
        read(text)
    return time.process_time() - began


def pairs() -> list[str]:
    """Some of the pairs of units; all of them take minutes."""
    return [a + b for a, b in random.Random(7).sample(list(itertools.permutations(UNITS, 2)), 12)]


@pytest.mark.parametrize("reader", READERS)
def test_reading_takes_linear_time(reader):
    read = READERS[reader]
    slow = {}
    for unit in [*UNITS, *pairs(), "```\nx[a](b)", "1001```\n"]:
        short, long = (unit * (size // len(unit)) for size in (4_000, 32_000))
        taken = seconds(read, long)
        # Eight times the text: eight times the time, and 64 times where it is quadratic.
        if taken > 0.1 and taken > 24 * (before := min(seconds(read, short) for _ in range(2))):
            slow[unit] = (before, taken)
        elif taken > 1.0:
            slow[unit] = taken
    assert not slow


@pytest.mark.parametrize("reader", ["parse_verdicts", "parse_json_reply", "evidence", "claim"])
def test_what_is_read_from_a_judge_has_an_end(reader):
    assert max(seconds(READERS[reader], unit * (1_000_000 // len(unit))) for unit in UNITS) < 1.0
