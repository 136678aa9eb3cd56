"""Numbers count with their units and signs, and texts are read as a reader sees them."""

import asyncio
import itertools
import time

import pytest

from ragaliq import RAGTestCase, evaluate_async
from ragaliq.errors import JudgeInputError
from ragaliq.judges import LocalJudge

GOOD = RAGTestCase(query="q", context=["Alpha is one."], response="Alpha is one.")
S, C, N = "SUPPORTED", "CONTRADICTED", "NOT_ENOUGH_INFO"


def verdict(claim, context):
    return asyncio.run(LocalJudge().verify_claim(claim, [context])).verdict


@pytest.mark.parametrize(
    ("context", "claim", "expected"),
    [
        ("The ticket costs $12.", "The ticket costs €12.", C),
        ("The ticket costs €12.", "The ticket costs 12 euros.", S),
        ("The fee is 12 euros per month.", "The fee is 12 euros per year.", C),
        ("The fee is 12 euros a month.", "The fee is 12 euros per month.", S),
        ("Take 500 mg of the powder with water.", "Take 500 g of the powder with water.", C),
        ("Bake the bread at 230 °C.", "Bake the bread at 230 °F.", C),
        ("The lamp weighs 310 grams.", "The lamp costs 49 dollars.", N),
        ("The lamp ships soon. It runs for twelve hours.", "The lamp ships within 2 days.", N),
        ("Sales rose. The road rose 300 metres.", "Sales rose 300%.", N),
        ("The ticket costs 3 euros and is valid all week.", "The ticket is valid 3 days.", N),
        ("The battery lasts 12 hours.", "The battery lasts 14 hours.", C),
        ("The room is kept at -5 °C.", "The room is kept at \u22125 °C.", S),
        ("The room is kept at minus 5 degrees.", "The room is kept at -5 degrees.", S),
        ("The kit suits children of 3-5 years.", "The kit suits children of 3-5 years.", S),
    ],
)
def test_a_number_counts_with_its_unit_only(context, claim, expected):
    assert verdict(claim, context) == expected


@pytest.mark.parametrize("minus", ["-", "\u2212", "\u2011", "\u207b", "\ufe63", "\uff0d"])
def test_a_number_below_zero_is_another_one(minus):
    assert verdict(f"The room is kept at {minus}5 °C.", "The room is kept at 5 °C.") != S


def test_a_wide_per_cent_sign_is_one():
    assert verdict("Sales grew by 5\uff05.", "Sales grew by 5%.") == S
    assert verdict("Sales grew by 5\uff05.", "Sales grew by 5 metres.") != S


@pytest.mark.parametrize(
    "negation",
    [
        *("n\u200bot", "n\u00adot", "n\u043et", "no\u2060t", "\u200enot", "n\u034fot", "n\ufe0fot"),
        *("n\u061cot", "n\u3164ot", "n\u115fot", "n\U000e0101ot", "\u0578ot", "n\u2c9ft"),
    ],
)
def test_hidden_and_look_alike_characters_hide_no_negation(negation):
    claim = f"Refunds are {negation} possible within ten days."
    assert verdict(claim, "Refunds are possible within ten days.") == C
    assert verdict(claim, "Refunds are not possible within ten days.") == S


def sentences(number, word):
    return " ".join(f"The {word}{at} of the house {at} has a roof." for at in range(number))


@pytest.mark.slow
async def test_comparing_takes_time_in_proportion_to_the_text():
    judge, taken = LocalJudge(), []
    for number in (500, 2_000):
        claims = (await judge.extract_claims(sentences(number, "roof"))).claims
        began = time.process_time()
        await judge.verify_claims(claims, [sentences(number, "wall")])
        taken.append(time.process_time() - began)
    assert taken[1] < 9 * taken[0]  # four times the text; sixteen times where it is quadratic


async def test_more_text_than_can_be_compared_is_an_error_of_its_own():
    claims = ["The house has a roof."] * 8_000
    with pytest.raises(JudgeInputError, match=r"8,000 claims of 168,000 .* 8,\d+ sentences"):
        await LocalJudge().verify_claims(claims, [sentences(8_000, "wall")])


async def test_other_tasks_run_while_many_claims_are_compared():
    judge, gaps = LocalJudge(), []

    async def watch():
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0)
            gaps.append(time.perf_counter() - began)

    context = [sentences(300, "wall")]
    await judge.verify_claims(["The house has a roof."], context)  # reads the context
    watching = asyncio.create_task(watch())
    await judge.verify_claims((await judge.extract_claims(sentences(300, "roof"))).claims, context)
    watching.cancel()
    assert len(gaps) > 3


def distinct_words(number, per_sentence):
    words = [f"word{at:x}q" for at in range(number)]
    return " ".join(
        " ".join(words[at : at + per_sentence]).capitalize() + "."
        for at in range(0, number, per_sentence)
    )


# A million characters of context each.
LONG = {
    "a claim of many words": (distinct_words(100_000, 12), distinct_words(9_000, 9_000)),
    "claims of other forms": (distinct_words(100_000, 12), distinct_words(9_000, 900).lower()),
    "brackets": ("[" * 1_000_000, "The lamp is red."),
    "nested data": ('{"a":[' * 166_000, "The lamp is red."),
    "numbers": (" ".join(map(str, range(150_000))), "The lamp costs 3,000 and 17 euros."),
    "a table": ("| lamp | red | 17 |\n" * 50_000, "The lamp is red."),
}


@pytest.mark.parametrize("shape", LONG)
async def test_other_tasks_run_while_a_long_text_is_compared(shape, monkeypatch):
    context, answer = LONG[shape]
    # A thread's own time, which no other process on the machine adds to.
    spent, loop = [time.thread_time()], asyncio.get_running_loop()

    def watch():
        spent.append(time.thread_time())
        watching[0] = loop.call_later(0.002, watch)

    case = RAGTestCase(query="What is it?", context=[context], response=answer)
    await evaluate_async([GOOD], judge=LocalJudge())
    watching = [loop.call_soon(watch)]
    began = time.process_time()
    (found,) = await evaluate_async([case], judge=LocalJudge())
    watching[0].cancel()
    watch()
    watching[0].cancel()
    assert found.results["faithfulness"].status == "scored"
    assert max(after - before for before, after in itertools.pairwise(spent)) < 0.2
    assert time.process_time() - began < 5


def test_long_texts_are_found_as_short_ones_are():
    filler = distinct_words(100_000, 12)
    context = "The lamp weighs 310 grams. Keller designed the northern wing."
    claims = ["The lamp weighs 410 grams.", "Keller designs the north wing.", "Dogs may enter."]
    for claim in claims:
        short = asyncio.run(LocalJudge().verify_claim(claim, [context]))
        long = asyncio.run(LocalJudge().verify_claim(claim, [context, filler]))
        assert (long.verdict, long.confidence, long.evidence) == (
            short.verdict,
            short.confidence,
            short.evidence,
        )
