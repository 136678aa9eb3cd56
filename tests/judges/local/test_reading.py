"""Words, numbers and sentences: the same in any notation."""

import pytest

from ragaliq.judges.language.sentences import detect_language, split_sentences
from ragaliq.judges.local import words
from ragaliq.judges.local.words import read_words, stem


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


SAME = """
1,000 = 1000; 1.000 = 1000; 1.000,50 = 1,000.50; 1\u202f000 = 1000; 1’000 = 1 000; 1, 056 = 1056
five = 5; twenty-five = 25; two hundred and fifty = 250; 5 % = five percent; 3,5 = 3.5; ٣٥ = 35
3.5 million = 3,500,000; $5M = 5 million dollars; 1.2bn = 1,200,000,000; 18th = eighteenth
05.01.2021 = 5 / 1 / 2021
"""


@pytest.mark.parametrize("pair", SAME.strip().replace("\n", "; ").split("; "))
def test_a_number_is_the_same_in_another_spelling(pair):
    claimed, stated = pair.split(" = ")
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


def test_a_german_chunk_without_umlauts_is_cut_by_german_rules():
    chunk = "Am 3. Oktober war das Fest und die Miete kam."
    assert detect_language(chunk) == "de"
    assert split_sentences(chunk) == split_sentences(chunk, language="de")
    assert split_sentences(chunk, language="de") != split_sentences(chunk, language="en")
