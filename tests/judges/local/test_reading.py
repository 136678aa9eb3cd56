"""Words, numbers and sentences: the same in any notation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragaliq.judges.language.sentences import detect_language, split_sentences
from ragaliq.judges.local import words
from ragaliq.judges.local.context import ContextIndex
from ragaliq.judges.local.words import END, read_all, read_words, stem

PARTS = (
    *"a p m M . , : ' - _ [ ] % $ $5m €3 bn 0 1 2 200 1953 b2 3rd n't cannot million and".split(),
    *" \n\t\0\1\x1c",
    *("the harbour", "1 200 000", "10:30", "12th", "don’t", "‘", "…", "http://x.y/", "【4】", "【"),
    *("é", "ß", "“", "–", "½", "東京", "При", "a\u0301", "\u00a0", "one", "hundred"),
)
texts = st.lists(st.sampled_from(PARTS), max_size=14).map("".join) | st.text(max_size=30)


@given(st.lists(texts, max_size=5))
def test_texts_read_in_one_go_have_the_words_each_has_alone(several):
    alone = [read_words(text) for text in several]
    together = read_all(several)
    assert together == [stem for each in alone for stem in (*each.stems, END)]


@pytest.mark.parametrize(
    "forms",
    [
        "refund refunds refunded refunding",
        "city cities",
        "pay paid",
        "note notes noted noting",
        "городом городами",
        "الإجابة الإجابات",
        "pâté pate",
    ],
)
def test_forms_of_a_word_have_one_stem_that_denies_nothing(forms):
    stems = set(map(stem, forms.split()))
    assert len(stems) == 1
    assert stems.isdisjoint(words.NEGATIONS)


@pytest.mark.parametrize(
    ("claimed", "stated"),
    [
        ("1,000", "1000"),
        ("1.000", "1000"),
        ("1.000,50", "1,000.50"),
        ("1\u202f000", "1000"),
        ("1’000", "1 000"),
        ("1, 056", "1056"),
        ("five", "5"),
        ("twenty-five", "25"),
        ("two hundred and fifty", "250"),
        ("5 %", "five percent"),
        ("3.5 million", "3,500,000"),
        ("$5M", "5 million dollars"),
        ("1.2bn", "1,200,000,000"),
        ("3,5", "3.5"),
        ("18th", "eighteenth"),
        ("05.01.2021", "5 / 1 / 2021"),
        ("٣٥", "35"),
    ],
)
def test_a_number_is_the_same_in_another_spelling(claimed, stated):
    numbers = [number.stem for number in read_words(claimed).numbers]
    assert numbers
    assert numbers == [number.stem for number in read_words(stated).numbers]


@pytest.mark.parametrize(
    ("claimed", "stated"),
    [("1,000", "1001"), ("3.5 million", "3.5 billion"), ("2.0.1", "2.0.2"), ("0.125", "125")],
)
def test_another_number_is_another(claimed, stated):
    assert read_words(claimed).numbers != read_words(stated).numbers


def test_citation_markers_and_links_hold_no_numbers():
    assert read_words("It grew [1] [2, 3] (see https://a.b/2021).").numbers == []


def test_words_that_only_look_like_quantities_need_not_be_found():
    numbers = read_words("one of them was first in the 1970s").numbers
    assert [number.certain for number in numbers] == [False, False, False]


def test_a_german_chunk_without_umlauts_is_cut_by_german_rules():
    chunk = "Am 3. Oktober war das Fest und die Miete kam."
    assert detect_language(chunk) == "de"
    assert split_sentences(chunk) == split_sentences(chunk, language="de")
    assert split_sentences(chunk, language="de") != split_sentences(chunk, language="en")


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (("the", "old", "harbour"), True),
        (("old", "harbour", "grow"), False),  # over the end of a sentence
        (("old", "the", "harbour"), False),
        (("ld", "harbour", "the"), False),
    ],
)
def test_a_run_of_words_is_found_within_a_sentence_only(run, said):
    assert ContextIndex(["We saw the old harbour. It grows."]).says(*run) is said
