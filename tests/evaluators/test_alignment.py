from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragaliq.evaluators.alignment import CLAIM_CUTOFF, locate, locate_evidence

TEXT = "The Aurora lasts  twelve hours.\nIt weighs 310 grams and folds flat."


def found(quote, text=TEXT, **options):
    span = locate(quote, text, cutoff=options.pop("cutoff", CLAIM_CUTOFF), **options)
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
    spans = locate_evidence("Open from nine ... Closed on Sundays.", chunks, ["a", "b"])
    assert [span.chunk_id for span in spans] == ["a", "b"]
    assert locate_evidence("Open from nine ... Free parking.", chunks, ["a", "b"]) == ()


def test_evidence_is_found_although_a_word_differs_but_not_with_another_number():
    chunks = ["The lamp, which folds flat, weighs about 310 grams with its 2.5 m cable."]
    assert locate_evidence("The lamp, that folds flat, weighs about 310 grams", chunks, [0])
    assert not locate_evidence("The lamp, which folds flat, weighs about 340 grams", chunks, [0])
    assert not locate_evidence("weighs about 310 grams with its 2.6 m cable", chunks, [0])


def test_evidence_prefers_the_named_chunk():
    chunks = ["Same words.", "Same words."]
    assert locate_evidence("Same words.", chunks, [0, 1], [1])[0].chunk_id == 1


def test_offsets_stay_true_where_lower_case_is_longer():
    text = "İİİİİİ The Aurora lasts twelve hours."
    span = locate("Aurora lasts eleven hours", text, cutoff=75)
    assert span is None or text[slice(*span)].startswith(("The Aurora", "Aurora"))


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
