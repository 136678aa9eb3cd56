"""Columns by their names, contexts in every form, and what is said when one is missing."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ragaliq import ConfigurationError, DatasetError, score_batch, score_batch_schema

SHOP = "The shop opens at 9."
ROW = {"question": "When?", "answer": SHOP, "contexts": ["The street is long.", SHOP]}


def frame_of(context):
    cells = pd.Series([None], dtype=object)
    cells[0] = context
    return pd.DataFrame({"question": ["When?"], "answer": [SHOP], "contexts": cells})


@pytest.mark.parametrize(
    ("context", "chunk"),
    [
        (["Long.", SHOP], "1"),
        (("Long.", SHOP), "1"),
        (np.array(["Long.", SHOP], dtype=object), "1"),
        (np.array([{"text": "Long."}, {"text": SHOP, "id": "opening"}], dtype=object), "opening"),
        ([{"page_content": SHOP, "id": 7, "metadata": {"page": 1}, "score": 0.5}], "7"),
        (json.dumps(["Long.", SHOP]), "1"),
        (json.dumps([{"text": SHOP, "doc_id": "a"}]), "a"),
        (SHOP, "0"),
    ],
)
def test_a_context_may_be_written_in_many_ways(context, chunk):
    (claims,) = score_batch(frame_of(context))["faithfulness_claims"]
    assert [claim["verdict"] for claim in claims] == ["SUPPORTED"]
    assert claims[0]["evidence_chunk_ids"] == [chunk]


@pytest.mark.parametrize("absent", [None, float("nan"), pd.NA, pd.NaT])
def test_what_pandas_has_for_nothing_is_no_context(absent):
    scored = score_batch(frame_of(absent), metrics=["faithfulness"])
    assert scored["faithfulness_status"][0] == "no_context"


def test_chunks_may_be_structs_of_arrow():
    chunks = [{"text": "Long.", "id": None}, {"text": SHOP, "id": "opening"}]
    table = pa.Table.from_pylist([ROW | {"contexts": chunks}])
    (claims,) = score_batch(table).column("faithfulness_claims").to_pylist()
    assert claims[0]["evidence_chunk_ids"] == ["opening"]


@pytest.mark.parametrize(
    "names",
    [
        ("user_input", "response", "retrieved_contexts"),
        ("input", "actual_output", "retrieval_context"),
        ("Question", "Generated Answer", "source-documents"),
    ],
)
def test_columns_go_by_the_names_that_files_use(names):
    renamed = dict(zip(names, ROW.values(), strict=True))
    scored = score_batch(pa.Table.from_pylist([renamed]))
    assert scored.column("faithfulness_score").to_pylist() == [1.0]


def test_own_names_win():
    row = {"frage": "When?", "said": SHOP, "run.saw": [SHOP], "answer": "Not this."}
    where = {"query": "frage", "response": "said", "context": "run.saw"}
    scored = score_batch(pa.Table.from_pylist([row]), columns=where)
    assert scored.column("faithfulness_score").to_pylist() == [1.0]


def test_the_retrieved_context_is_taken_where_an_ideal_one_is_beside_it():
    table = pa.Table.from_pylist([ROW | {"context": ["Nothing of it."]}])
    assert score_batch(table).column("faithfulness_score").to_pylist() == [1.0]


def test_expected_facts_reach_the_metrics_that_need_them():
    table = pa.Table.from_pylist([ROW | {"ground_truth": SHOP}])
    scored = score_batch(table, metrics=["context_recall"])
    assert scored.column("context_recall_score").to_pylist() == [1.0]


@pytest.mark.parametrize("missing", ["question", "answer", "contexts"])
def test_a_missing_column_is_an_error_that_says_which_there_are(make, missing):
    table = make([{k: v for k, v in ROW.items() if k != missing} | {"page": 1}])
    with pytest.raises(DatasetError, match=r"no column was found for the .*'page'.*columns=\{"):
        score_batch(table)


def test_relevance_alone_needs_no_context(make, read):
    table = make([{"question": "When?", "answer": SHOP}])
    assert read(score_batch(table, metrics=["relevance"]))[0]["relevance_status"] == "scored"


def test_two_columns_for_one_field_are_an_error_until_one_is_named(make, read):
    table = make([ROW | {"prompt": "Answer: when?"}])
    with pytest.raises(DatasetError, match=r"'question' and 'prompt' both look like the query"):
        score_batch(table)
    assert read(score_batch(table, columns={"query": "question"}))


def test_two_columns_of_one_name_are_an_error_only_where_they_are_meant():
    frame = pd.DataFrame([["When?", SHOP, [SHOP], 1, 2]])
    frame.columns = ["question", "answer", "contexts", "page", "page"]
    assert list(score_batch(frame).columns)[:5] == list(frame.columns)
    frame.columns = ["question", "answer", "contexts", "answer", "page"]
    with pytest.raises(DatasetError, match="'answer' and 'answer' both look like the response"):
        score_batch(frame)
    with pytest.raises(DatasetError, match="2 columns are called 'answer'"):
        score_batch(frame, columns={"response": "answer"})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"columns": {"frage": "question"}}, "columns: a case has no field 'frage'"),
        ({"columns": {"query": "frage"}}, r"no column 'frage' for the query: .* 'question'"),
        ({"concurrency": 0}, "concurrency must be at least 1, got 0"),
        ({"metrics": ["faith"]}, "no metric 'faith'"),
        ({"judge": "oracle"}, "no judge 'oracle'"),
    ],
)
def test_a_wrong_setting_is_an_error_at_once(make, settings, message):
    with pytest.raises(ConfigurationError, match=message):
        score_batch(make([ROW]), **settings)


def test_a_table_scored_before_is_refused(make, read):
    with pytest.raises(ConfigurationError, match=r"'faithfulness_score' already.*rename it"):
        score_batch(score_batch(make([ROW])))
    (row,) = read(score_batch(make([ROW]), claims=False))
    assert set(score_batch_schema(claims=False).names) < set(row)


@pytest.mark.parametrize(
    ("thing", "advice"),
    [
        ({"question": np.array(["When?"])}, "batch_format='pyarrow'"),
        ([ROW], "got builtins.list"),
        ("cases.parquet", "got builtins.str"),
    ],
)
def test_what_is_no_table_is_refused(thing, advice):
    with pytest.raises(ConfigurationError, match=advice):
        score_batch(thing)
