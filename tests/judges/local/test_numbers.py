"""Numbers in any spelling compare equal."""

from __future__ import annotations

import pytest

from ragaliq.judges.local.context import ContextIndex
from ragaliq.judges.local.words import read_words


@pytest.mark.parametrize(
    ("claimed", "stated"),
    [
        ("1,000", "1000"),
        ("1.000", "1000"),
        ("1\u202f000", "1000"),
        ("1’000", "1000"),
        ("five", "5"),
        ("twenty-five", "25"),
        ("two hundred and fifty", "250"),
        ("5 %", "five percent"),
        ("3.5 million", "3,500,000"),
        ("3,5", "3.5"),
        ("18th", "eighteenth"),
        ("330 m", "330 metres"),
        ("the 1970s", "in 1979"),
        ("20th century", "in 1913"),
        ("5 January 2021", "2021-01-05"),
        ("05.01.2021", "January 5, 2021"),
        ("٣٥", "35"),
    ],
)
def test_a_number_is_found_in_another_spelling(claimed, stated):
    context = ContextIndex([stated])
    numbers = read_words(claimed).numbers
    assert numbers
    for number in numbers:
        assert any(map(context.places, number.values))


@pytest.mark.parametrize(
    ("claimed", "stated"),
    [("1,000", "1001"), ("3.5 million", "3.5 billion"), ("1970s", "1981"), ("2.0.1", "2.0.2")],
)
def test_another_number_is_not_found(claimed, stated):
    context = ContextIndex([stated])
    (number,) = read_words(claimed).numbers
    assert not any(map(context.places, number.values))


def test_citation_markers_and_links_hold_no_numbers():
    assert read_words("It grew [1] [2, 3] (see https://a.b/2021).").numbers == []


def test_words_that_only_look_like_quantities_need_not_be_found():
    assert [number.certain for number in read_words("one of them was first").numbers] == [
        False,
        False,
    ]
