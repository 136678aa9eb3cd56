"""Cases as adapters hand them over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ragaliq import CaseDraft, Passage, RAGTestCase, context_chunks

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


def test_a_drafts_size_is_what_all_its_texts_take_and_so_is_its_cases():
    draft = CaseDraft(id="r1", query="12", passages=[Passage("345"), Passage("6")], response="78")

    with_more = [
        CaseDraft(id="r1", query=q, passages=[Passage(p), Passage("6")], response=r)
        for q, p, r in [
            ("12" * 500, "345", "78"),
            ("12", "345" * 500, "78"),
            ("12", "345", "78" * 500),
        ]
    ]

    assert [more.size - draft.size for more in with_more] == [998, 1497, 998]
    assert with_more[1].build().size - draft.build().size == 1497


def test_a_draft_of_wrong_types_is_refused_without_quoting_it():
    draft = CaseDraft(id="r1", query=["secret"], passages=[], response="a")  # type: ignore[arg-type]

    with pytest.raises(ValidationError) as refused:
        draft.build()
    assert "secret" not in str(refused.value)
