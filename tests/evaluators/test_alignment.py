from __future__ import annotations

import asyncio
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragaliq.evaluators.alignment import EvidenceFinder, SearchedText

TEXT = "The Aurora lasts  twelve hours.\nIt weighs 310 grams and folds flat."


def locate(quote, text, **options):
    return SearchedText(text).locate(quote, **options)


def locate_evidence(evidence, chunks, preferred=()):
    return asyncio.run(EvidenceFinder(chunks).find(evidence, preferred))


def found(quote, text=TEXT, **options):
    span = locate(quote, text, **options)
    return None if span is None else text[slice(*span)]


def test_an_exact_quote_is_found():
    assert found("310 grams") == "310 grams"


def test_white_space_and_case_do_not_matter():
    assert found("the aurora lasts twelve hours.") == "The Aurora lasts  twelve hours."


def test_quotation_marks_around_a_quote_do_not_matter():
    assert found("“310 grams”") == "310 grams"


def test_a_resolved_pronoun_still_finds_its_sentence():
    assert "weighs 310 grams and folds flat" in found("Aurora weighs 310 grams and folds flat.")


def test_an_invented_quote_is_not_found():
    assert found("Shipping is free on all orders over fifty euros") is None


def test_a_repeated_claim_is_found_after_the_one_before():
    text = "It works. It works."
    assert locate("It works.", text, cutoff=100, start=9) == (10, 19)


def test_evidence_in_two_pieces_must_be_there_in_both():
    chunks = ["Open from nine.", "Closed on Sundays."]
    spans = locate_evidence("Open from nine ... Closed on Sundays.", chunks)
    assert [place.chunk for place in spans] == [0, 1]
    assert not locate_evidence("Open from nine ... Free parking.", chunks)


QUOTED = "**Members** are not entitled to it. Anna owes Paul €5. It fell by -2.5 % in 2020-2021."


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("members are not entitled to it", "Members** are not entitled to it"),
        ("Members are\n  NOT entitled; to it.", "Members** are not entitled to it."),
        ("Anna owes Paul € 5.", "Anna owes Paul €5."),
        ("fell by −2.5% in 2020 2021", "fell by -2.5 % in 2020-2021"),
        ("(It fell … in 2020-2021)", "It fell"),
    ],
)
def test_white_space_case_punctuation_and_elisions_do_not_matter_in_a_quote(quote, found):
    span, *_ = locate_evidence(quote, [QUOTED])
    assert QUOTED[span.start : span.end] == found


@pytest.mark.parametrize(
    "quote",
    [
        "Members are entitled to it",
        "Members are ... entitled to it",
        "Members are […] entitled to it.",
        "Paul owes Anna €5",
        "Paul ... owes ... Anna",
        "Anna owes Paul 5",
        "Anna owes Paul €50",
        "It fell by 2.5 %",
        "It fell by -2 ... %",
        "It rose by -2.5 %",
        "Anna owe",
        "to it ... Members are",
        "... …",
        "!?",
    ],
)
def test_a_quote_that_says_something_else_is_not_there(quote):
    assert not locate_evidence(quote, [QUOTED])


def test_quotes_in_languages_without_blanks_are_found_by_their_characters():
    assert locate_evidence("重さは三百グラム", ["このランプの重さは三百グラムです。"])
    assert not locate_evidence("重さは四百グラム", ["このランプの重さは三百グラムです。"])


def test_evidence_prefers_the_named_chunk():
    chunks = ["Same words.", "Same words."]
    assert locate_evidence("Same words.", chunks, [1])[0].chunk == 1


def test_offsets_stay_true_where_lower_case_is_longer():
    text = "İİİİİİ The Aurora lasts twelve hours."
    span = locate("Aurora lasts eleven hours", text, cutoff=75)
    assert span is None or text[slice(*span)].startswith(("The Aurora", "Aurora"))


def test_other_white_space_is_found_after_the_preferred_start_too():
    text = "It  works. And it\nworks. Then it works."
    assert locate("it works.", text, cutoff=100, start=3) == (30, 39)
    assert locate("And IT works.", text, cutoff=100, start=30) == (11, 24)
    assert locate("and it Works.", text, cutoff=100, start=12) == (11, 24)


@given(st.lists(st.sampled_from(["a", "B", "cd", "İ", "5"]), min_size=2), st.data())
def test_a_quote_with_other_white_space_and_case_spans_the_same_words(words, data):
    spaces = st.sampled_from([" ", "  ", "\n", "\t "])
    text = "".join(word + data.draw(spaces) for word in words)
    quote = " ".join(words[data.draw(st.integers(0, len(words) - 2)) :])
    span = locate(quote.lower() if "İ" not in quote else quote, text, cutoff=100)
    assert text[slice(*span)].split() == quote.split() or quote.lower() in text.lower()


async def test_a_quote_that_was_looked_for_is_not_looked_for_again(monkeypatch):
    finder = EvidenceFinder(["Open from nine.", "Closed on Sundays."])
    first = await finder.find("Closed on Sundays.", [1])
    monkeypatch.setattr(SearchedText, "find_exactly", None)
    assert await finder.find("Closed on Sundays.", [1]) == first


@pytest.mark.parametrize(
    ("quote", "chunks", "found"),
    [
        ("It weighs 310 grams.", ["it weighs 310 grams!", "It weighs 310 grams."], (1, 0, 20)),
        ("It weighs 310 grams.", ["it weighs 310 grams!", "Nothing."], (0, 0, 19)),
        ("310 grams", ["Add 1,310 grams of 310 grams."], (0, 19, 28)),
        ("art of it", ["A part of it is the art of it"], (0, 20, 29)),
    ],
    ids=["letter for letter first", "else by its words", "a whole number", "a whole word"],
)
def test_a_quote_is_taken_where_it_stands_letter_for_letter(quote, chunks, found):
    assert locate_evidence(quote, chunks) == [found]


@given(st.text(alphabet="aB5-.,<%é'’ \n字", min_size=1), st.data())
def test_a_part_that_is_found_by_its_letters_would_be_found_by_its_words(text, data):
    begin = data.draw(st.integers(0, len(text) - 1))
    part = text[begin : data.draw(st.integers(begin + 1, len(text)))].strip()
    searched = SearchedText(text)
    if exact := searched.find_exactly(part):
        assert text[slice(*exact)] == part
        assert searched.find_words(part, exact[0])


async def test_a_long_search_lets_a_time_limit_strike():
    words = "parcel lamp weighs grams cable opening refund shop folds flat metal black".split()
    chunks = [" ".join(words[i:] + words[:i] + [f"c{i}"] * 5) * 20 for i in range(12)] * 4
    finder = EvidenceFinder(chunks)

    async def search_for_ever():
        for number in itertools.count():
            await finder.find(f"the invented quote {number} stands nowhere in here")

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(search_for_ever(), 0.05)


@given(st.text(), st.text(), st.floats(0, 100), st.integers(0, 50))
def test_any_span_lies_within_the_text(quote, text, cutoff, start):
    span = locate(quote, text, cutoff=cutoff, start=start)
    assert span is None or 0 <= span[0] < span[1] <= len(text)


@given(st.text(min_size=1), st.data())
def test_every_part_of_a_text_is_found_in_it(text, data):
    begin = data.draw(st.integers(0, len(text) - 1))
    part = text[begin : data.draw(st.integers(begin + 1, len(text)))]
    span = locate(part, text, cutoff=100)
    assert span is not None or not part.strip().strip('"“”«»')
