"""A context that is too long is read in windows, and all of it is read."""

from hypothesis import given
from hypothesis import strategies as st

from ragaliq.judges.small.judge import windows_of


def words(text):
    return len(text.split())


def test_windows_hold_whole_sentences_and_repeat_one_within_a_chunk_only():
    chunk = "Ada has a cat. It is old. Bob has a dog. It is new."
    windows = windows_of([chunk], words, budget=12)
    assert [window.text for window in windows] == [
        "Ada has a cat. It is old.",
        "It is old. Bob has a dog.",
        "Bob has a dog. It is new.",
    ]
    apart = windows_of(["Ada has a cat.", "Bob has a dog.", "Eve has a cow."], words, budget=10)
    assert [window.chunks for window in apart] == [(0, 1), (2,)]
    long = " ".join(f"word{i}" for i in range(50))
    assert " ".join(window.text for window in windows_of([long], words, budget=10)) == long


@given(
    chunks=st.lists(st.text(alphabet="ab .\n!?é漢", max_size=120), max_size=5),
    budget=st.integers(3, 15),
)
def test_every_letter_is_in_a_window_that_fits(chunks, budget):
    def letters(text):
        return len(text.replace(" ", ""))

    windows = windows_of(chunks, letters, budget=budget)
    assert all(letters(window.text) <= budget for window in windows)
    for position, chunk in enumerate(chunks):
        read = "".join(w.text for w in windows if position in w.chunks)
        for letter in set(chunk) - set(" .\n!?"):
            assert read.count(letter) >= chunk.count(letter)
