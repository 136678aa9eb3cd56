"""Chunks as adapters find them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragaliq import Passage, RAGTestCase, context_chunks

IDS = st.sampled_from(["x", "y", "0", "1", None])


@given(st.lists(st.builds(Passage, st.text("ab ", min_size=1), IDS, st.none(), st.none())))
def test_any_passages_make_a_valid_context_with_every_text_once_and_in_order(passages):
    case = RAGTestCase(query="q", context=context_chunks(passages), response="a")

    assert case.context_texts == list(dict.fromkeys(passage.text for passage in passages))


def test_a_text_found_twice_keeps_its_first_id_and_score_and_shared_ids_become_positions():
    [one, _] = context_chunks([Passage("one", "x", 0.5), Passage("two"), Passage("one", "y", 0.3)])
    assert (one.id, one.score) == ("x", 0.5)

    shared = context_chunks([Passage("one", "x"), Passage("two", "x"), Passage("three", "y")])
    assert RAGTestCase(query="q", context=shared, response="a").chunk_ids == [0, 1, "y"]
