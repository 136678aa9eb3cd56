"""No row, whatever is in it, keeps the others from being scored."""

from __future__ import annotations

import datetime as dt

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragaliq import score_batch, score_batch_schema

SHOP = "The shop opens at 9."
GOOD = {"question": "When?", "answer": SHOP, "contexts": [SHOP]}


class Hostile:
    def __str__(self):
        raise RuntimeError("secret")

    __repr__ = __str__

    def tolist(self):
        raise RuntimeError("secret")


@pytest.mark.parametrize(
    ("spoilt", "problem"),
    [
        ({"answer": {"text": "x"}}, "field 'response' must be a text, not an object"),
        ({"answer": dt.date(2026, 1, 1)}, "field 'response' must be a text, not of type date"),
        ({"answer": b"At 9."}, "field 'response' must be a text, not of type bytes"),
        ({"contexts": [SHOP, None]}, "field 'context[1]' must be a text, not empty"),
        ({"contexts": [{"page": 1}]}, "context[0] has no text"),
        ({"contexts": [{"text": "a", "id": 1}] * 2}, "two context chunks have the id 1"),
        ({"contexts": Hostile()}, "the row cannot be read (RuntimeError)"),
        ({"question": Hostile()}, "field 'query' must be a text, not of type Hostile"),
    ],
)
def test_a_bad_row_says_what_is_wrong_and_the_others_are_scored(spoilt, problem):
    scored = score_batch(pd.DataFrame([GOOD, GOOD | spoilt, GOOD]))
    assert list(scored["faithfulness_status"]) == ["scored", "bad_row", "scored"]
    assert problem in scored["faithfulness_error"][1]
    assert "secret" not in scored["faithfulness_error"][1]


@pytest.mark.parametrize("blank", ["", " ", None, float("nan"), pd.NA, "nan"])
def test_a_blank_answer_has_a_status_of_its_own(blank):
    scored = score_batch(pd.DataFrame([GOOD, GOOD | {"answer": blank}]))
    assert list(scored["faithfulness_status"]) == ["scored", "empty_answer"]
    assert scored["faithfulness_passed"].isna()[1]


@pytest.mark.parametrize("blank", ["", None, pd.NA])
def test_a_blank_question_only_matters_to_metrics_that_need_it(blank):
    frame = pd.DataFrame([GOOD, GOOD | {"question": blank}])
    scored = score_batch(frame, metrics=["faithfulness", "relevance"])
    assert list(scored["faithfulness_status"]) == ["scored", "scored"]
    assert list(scored["relevance_status"]) == ["scored", "no_question"]


@pytest.mark.parametrize("as_frame", [True, False])
def test_a_text_that_is_not_utf8_spoils_its_row_only(as_frame):
    blobs = pa.array([SHOP.encode(), b"\xff\xfe\xff", SHOP.encode()], pa.binary())
    answers = pa.Array.from_buffers(pa.string(), 3, blobs.buffers())
    columns = {"question": ["When?"] * 3, "answer": answers, "contexts": [[SHOP]] * 3}
    table = pa.table(columns)
    if as_frame:
        table = table.to_pandas(types_mapper=pd.ArrowDtype, split_blocks=True)
    scored = score_batch(table, metrics=["faithfulness"])
    problems = list(scored["faithfulness_error"])
    statuses = [str(status) for status in scored["faithfulness_status"]]
    assert statuses == ["scored", "bad_row", "scored"]
    assert "the response's column holds a value that is not text" in str(problems[1])


def test_half_a_surrogate_pair_is_scored_and_written_as_unicode():
    answer = "The \ud800 shop opens at 9."
    frame = pd.DataFrame({k: pd.Series([v], dtype=object) for k, v in GOOD.items()})
    frame.at[0, "answer"] = answer
    frame.at[0, "contexts"] = [{"text": answer, "id": "a\udfff"}]
    scored = score_batch(frame)
    (claim,) = scored["faithfulness_claims"][0]
    assert claim["text"] == "The \ufffd shop opens at 9."
    assert claim["evidence_chunk_ids"] == ["a\ufffd"]


TEXTS = st.one_of(st.none(), st.text(max_size=30))
CONTEXTS = st.one_of(
    st.none(),
    st.text(max_size=30),
    st.lists(st.one_of(st.text(max_size=30), st.none()), max_size=3),
    st.lists(st.fixed_dictionaries({"text": st.text(max_size=30)}), max_size=3),
)
ANY_ROW = st.fixed_dictionaries({"question": TEXTS, "answer": TEXTS, "contexts": CONTEXTS})


def checked(scored, number):
    assert [row["place"] for row in scored.to_pylist()] == list(range(number))
    assert pa.schema(list(scored.schema)[4:]) == score_batch_schema()
    for row in scored.to_pylist():
        assert row["answer"] or row["faithfulness_status"] in ("bad_row", "empty_answer")
        assert (row["faithfulness_score"] is None) == (row["faithfulness_passed"] is None)
        assert (row["faithfulness_error"] is None) == (row["faithfulness_status"] != "bad_row")
        supported = sum(c["verdict"] == "SUPPORTED" for c in row["faithfulness_claims"])
        if row["faithfulness_status"] == "scored":
            assert row["faithfulness_score"] == supported / len(row["faithfulness_claims"])


@settings(max_examples=25)
@given(st.lists(ANY_ROW, max_size=8))
def test_any_frame_comes_back_row_by_row_in_its_order(rows):
    frame = pd.DataFrame(rows, columns=["question", "answer", "contexts"], dtype=object)
    frame.insert(0, "place", range(len(rows)))
    scored = score_batch(frame, concurrency=3)
    assert (
        scored["contexts"].tolist() == frame["contexts"].tolist() or frame["contexts"].isna().any()
    )
    kept = scored.drop(columns=["contexts"])
    kept.insert(3, "contexts", None)
    checked(pa.Table.from_pandas(kept, preserve_index=False), len(rows))


LISTS = st.one_of(st.none(), st.lists(st.one_of(st.none(), st.text(max_size=30)), max_size=3))


@settings(max_examples=25)
@given(st.lists(st.tuples(TEXTS, TEXTS, LISTS), max_size=8))
def test_any_arrow_table_comes_back_row_by_row_in_its_order(rows):
    schema = pa.schema(
        [
            ("place", pa.int64()),
            ("question", pa.string()),
            ("answer", pa.large_string()),
            ("contexts", pa.list_(pa.string())),
        ]
    )
    named = [dict(zip(schema.names, (place, *row), strict=True)) for place, row in enumerate(rows)]
    table = pa.Table.from_pylist(named, schema=schema)
    scored = score_batch(table, concurrency=3)
    assert scored.select(schema.names) == table
    checked(scored, len(rows))
