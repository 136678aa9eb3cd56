import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragaliq.evaluators.alignment import EvidenceSource, SearchedText

TEXT = "The Aurora lasts  twelve hours.\nIt weighs 310 grams and folds flat."


def locate(quote, text, **options):
    return SearchedText(text).locate(quote, **options)


def locate_evidence(evidence, chunks, preferred=()):
    return [*asyncio.run(EvidenceSource(chunks).find(evidence, preferred))]


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("310 grams", "310 grams"),
        ("the aurora lasts twelve hours.", "The Aurora lasts  twelve hours."),
        ("“310 grams”", "310 grams"),
        ("Aurora weighs 310 grams and folds flat.", " weighs 310 grams and folds flat."),
        ("Shipping is free on all orders over fifty euros", None),
    ],
    ids=["exact", "white space and case", "quotation marks", "a resolved pronoun", "invented"],
)
def test_a_claim_is_found_where_the_text_says_it(quote, found):
    span = locate(quote, TEXT)
    assert (span and TEXT[slice(*span)]) == found


@pytest.mark.parametrize(
    "hidden", ["\u00ad", "\u200b", "\u2060", "\ufeff", "\U000e0041\U000e0042"], ids=ascii
)
def test_a_character_that_no_reader_sees_hides_no_word_of_a_quote(hidden):
    chunk = f"Pets are n{hidden}ot allo{hidden}wed{hidden} here."
    (place,) = locate_evidence("Pets are not allowed here.", [chunk])
    assert (place.start, place.end) == (0, len(chunk))
    assert not locate_evidence("Pets are allowed here.", [chunk])
    assert not locate_evidence("Pets are ... allowed here.", [chunk])


def test_evidence_in_two_pieces_must_be_there_in_both():
    chunks = ["Open from nine.", "Closed on Sundays."]
    spans = locate_evidence("Open from nine ... Closed on Sundays.", chunks)
    assert [place.chunk_id for place in spans] == [0, 1]
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
        "Members are […] entitled to it.",
        "Paul owes Anna €5",
        "Anna owes Paul 5",
        "It fell by 2.5 %",
        "It fell by -2 ... %",
        "Anna owe",
        "to it ... Members are",
        "... …",
        "!?",
    ],
)
def test_a_quote_that_says_something_else_is_not_there(quote):
    assert not locate_evidence(quote, [QUOTED])


@pytest.mark.parametrize(
    ("quote", "chunks", "found"),
    [
        ("It weighs 310 grams.", ["it weighs 310 grams!", "It weighs 310 grams."], (1, 0, 20)),
        ("It weighs 310 grams.", ["it weighs 310 grams!", "Nothing."], (0, 0, 19)),
        ("310 grams", ["Add 1,310 grams of 310 grams."], (0, 19, 28)),
        ("art of it", ["A part of it is the art of it"], (0, 20, 29)),
        ("重さは三百グラム", ["このランプの重さは三百グラムです。"], (0, 6, 14)),
    ],
    ids=["letter for letter first", "else by its words", "a whole number", "a whole word", "signs"],
)
def test_a_quote_is_taken_where_it_stands_letter_for_letter(quote, chunks, found):
    assert locate_evidence(quote, chunks) == [found]
    named = locate_evidence("Same words.", ["Same words."] * 2, [1])
    assert named[0].chunk_id == 1


@given(st.text(min_size=1), st.data())
def test_every_part_of_a_text_is_found_in_it(text, data):
    begin = data.draw(st.integers(0, len(text) - 1))
    part = text[begin : data.draw(st.integers(begin + 1, len(text)))]
    span = locate(part, text)
    assert span is not None or not part.strip().strip('"“”«»')


async def test_a_quote_is_searched_once_for_its_check_and_its_places(monkeypatch):
    searches, find_words = [], SearchedText.find_words
    monkeypatch.setattr(
        SearchedText, "find_words", lambda *given: searches.append(given) or find_words(*given)
    )
    source = EvidenceSource(["Open from nine.", "Closed on Sundays."])
    assert await source.find("Open at ten.") == await source.find("Open at ten.", [0]) == ()
    assert len(searches) == 2
    assert await source.find("Closed, on Sundays.", [1])  # another quote, another order
    assert len(searches) == 3
