"""Sentence boundaries as exact ranges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragaliq.judges.language.sentences import detect_language, split_sentences


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The cat is on the mat.", "en"),
        ("Die Katze ist auf der Matte und schläft nicht.", "de"),
        ("Le chat est sur le tapis et dort dans une maison.", "fr"),
        ("Кошка спит.", "ru"),
        ("猫在睡觉。", "zh"),
        ("猫は寝ています。", "ja"),
        ("naïve café — “fine”", "en"),
        ("", "en"),
    ],
)
def test_the_script_or_the_small_words_tell_the_language(text, language):
    assert detect_language(text) == language


def test_ranges_count_characters_also_beyond_the_basic_plane():
    text = "😀😀 Hi there. 𠀀 is rare. \ud800 Broken is fine."
    assert [text[start:end] for start, end in split_sentences(text)] == [
        "😀😀 Hi there.",
        "𠀀 is rare.",
        "\ud800 Broken is fine.",
    ]


@given(st.text(st.characters(exclude_categories=()), max_size=300))
def test_sentences_are_in_order_and_leave_out_only_white_space(text):
    position = 0
    for start, end in split_sentences(text):
        assert position <= start < end <= len(text)
        assert not text[position:start].strip()
        assert text[start:end] == text[start:end].strip()
        position = end
    assert not text[position:].strip()
