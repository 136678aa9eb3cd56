"""Text of any origin on a terminal."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from ragaliq.core.printable import printable


@given(st.text(), st.integers(1, 50))
def test_no_control_character_survives_and_a_limit_is_kept(text, limit):
    assert all(unicodedata.category(character)[0] != "C" for character in printable(text))
    assert len(printable(text, limit=limit)) <= limit


def test_lines_are_joined_and_the_rest_stays():
    assert printable("Größe:\n5 €\t何") == "Größe: 5 € 何"
