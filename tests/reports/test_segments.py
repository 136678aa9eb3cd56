from hypothesis import given
from hypothesis import strategies as st

from ragaliq.reports.contents import cut

TEXTS = st.text(max_size=30)
RANGES = st.lists(
    st.tuples(st.integers(-3, 35), st.integers(-3, 35), st.integers(0, 5)), max_size=6
)


@given(TEXTS, RANGES)
def test_the_pieces_joined_are_the_text(text, ranges):
    assert "".join(piece for piece, _ in cut(text, ranges)) == text


@given(TEXTS, RANGES)
def test_each_character_carries_the_ranges_that_cover_it(text, ranges):
    numbers = [covering for piece, covering in cut(text, ranges) for _ in piece]
    expected = [
        sorted({n for start, end, n in ranges if 0 <= start <= place < end <= len(text)})
        for place in range(len(text))
    ]
    assert numbers == expected
