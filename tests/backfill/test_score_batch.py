"""A table in, the same kind out, with scores, statuses and claims."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pyarrow as pa
import pytest

from ragaliq import ClaimsResult, JudgeAPIError, ScoringPolicy, score_batch, score_batch_schema
from ragaliq.judges.local import LocalJudge

ADDED = score_batch_schema().names
BOTH = ["faithfulness", "relevance"]


def test_the_kind_the_rows_and_the_own_columns_stay(make, read, rows):
    table = make(rows)
    scored = score_batch(table)
    assert type(scored) is type(table)
    own = list(rows[0])
    assert list(read(scored)[0]) == [*own, *ADDED]
    assert [row["note"] for row in read(scored)] == [1, 2, 3]
    assert list(read(table)[0]) == own


def test_scores_claims_and_statuses_are_in_their_row(make, read, rows):
    first, blank, thanks = read(score_batch(make(rows), policy=ScoringPolicy.RAGALIQ))
    assert (first["faithfulness_score"], first["faithfulness_passed"]) == (0.5, False)
    assert first["faithfulness_status"] == "scored"
    claims = first["faithfulness_claims"]
    assert [(claim["text"], claim["verdict"]) for claim in claims] == [
        ("The shop opens at 9.", "SUPPORTED"),
        ("It has a red door.", "NOT_ENOUGH_INFO"),
    ]
    assert claims[0]["evidence_chunk_ids"] == ["0"]
    assert 0.5 < claims[0]["confidence"] < 1
    assert (blank["faithfulness_status"], blank["faithfulness_score"]) == ("empty_answer", 1.0)
    assert (blank["faithfulness_error"], blank["faithfulness_claims"]) == (None, [])
    assert (thanks["faithfulness_status"], thanks["faithfulness_score"]) == ("no_claims", 1.0)


def test_who_judged_and_what_it_cost_are_in_each_row(make, read, rows):
    for row in read(score_batch(make(rows))):
        assert (row["ragaliq_judge"], row["ragaliq_model"]) == ("local", None)
        assert (row["ragaliq_tokens"], row["ragaliq_cost_usd"]) == (0, 0.0)


def test_without_claims_no_text_of_the_answer_is_added(make, read, rows):
    scored = score_batch(make(rows), claims=False)
    added = {name: row[name] for row in read(scored) for name in row if name not in rows[0]}
    assert set(added) == set(score_batch_schema(claims=False).names)
    assert not any("shop" in str(value) for value in added.values())


def test_a_judge_that_fails_leaves_a_status_and_no_score(make, read, rows):
    class Down(LocalJudge):
        async def extract_statements(self, query: str, response: str) -> ClaimsResult:
            raise JudgeAPIError("the service is away")

    first = read(score_batch(make(rows), judge=Down(), metrics=BOTH))[0]
    assert (first["faithfulness_status"], first["faithfulness_score"]) == ("judge_error", None)
    assert first["faithfulness_error"] == "the service is away"
    assert first["relevance_status"] == "scored"


def test_without_a_policy_an_answer_with_nothing_to_verify_has_no_score(make, read, rows):
    _, blank, thanks = read(score_batch(make(rows)))
    assert (blank["faithfulness_status"], blank["faithfulness_score"]) == ("empty_answer", None)
    assert (thanks["faithfulness_status"], thanks["faithfulness_score"]) == ("no_context", None)


def test_an_undefined_score_is_nan_and_not_nothing(rows):
    table = pa.Table.from_pylist(rows[2:])
    scored = score_batch(table, policy=ScoringPolicy.RAGAS, metrics=["faithfulness"])
    scores = scored.column("faithfulness_score")
    assert scores.null_count == 1  # RAGAS does not allow a case without context
    full = pa.Table.from_pylist([rows[2] | {"contexts": ["Something."]}])
    scores = score_batch(full, policy=ScoringPolicy.RAGAS).column("faithfulness_score")
    assert scores.null_count == 0
    assert scores[0].as_py() != scores[0].as_py()


@pytest.mark.parametrize("claims", [True, False])
@pytest.mark.parametrize("kept", [[], [1], [2], [0, 1, 2]])
def test_the_schema_depends_on_no_row(make, rows, kept, claims):
    table = make(rows)
    part = table.iloc[kept] if isinstance(table, pd.DataFrame) else table.take(pa.array(kept, "i8"))
    scored = score_batch(part, claims=claims)
    if isinstance(scored, pd.DataFrame):
        scored = pa.Table.from_pandas(scored, preserve_index=False)
    promised = score_batch_schema(claims=claims)
    assert pa.schema(list(scored.schema)[len(rows[0]) :]) == promised
    assert scored.num_rows == len(kept)


def test_a_frame_keeps_its_index_and_may_be_asked_for_what_passed(rows):
    frame = pd.DataFrame(rows, index=[7, 7, 9])
    scored = score_batch(frame, policy=ScoringPolicy.RAGALIQ)
    assert list(scored.index) == [7, 7, 9]
    assert list(scored[scored["faithfulness_passed"]]["note"]) == [2, 3]
    assert scored["faithfulness_score"].mean() == 2.5 / 3


def test_an_arrow_table_keeps_its_metadata_its_types_and_its_chunks(rows):
    schema = pa.Table.from_pylist(rows).schema.with_metadata({"owner": "shop"})
    table = pa.concat_tables([pa.Table.from_pylist([row], schema=schema) for row in rows])
    scored = score_batch(table)
    assert scored.schema.metadata == {b"owner": b"shop"}
    assert scored.schema.field("note") == schema.field("note")
    assert scored.column("note").to_pylist() == [1, 2, 3]
    scored.validate(full=True)


def test_several_threads_and_a_running_loop_may_score_at_once(rows):
    tables = [pa.Table.from_pylist(rows[i:] + rows[:i]) for i in range(3)] * 4
    expected = [score_batch(table) for table in tables]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(score_batch, tables)) == expected

    async def inside():
        return score_batch(tables[0])

    assert asyncio.run(inside()) == expected[0]


def test_rows_in_work_at_once_are_as_many_as_asked_for(rows):
    class Counting(LocalJudge):
        now = most = 0

        async def evaluate_relevance(self, query, response):
            Counting.now += 1
            Counting.most = max(Counting.most, Counting.now)
            await asyncio.sleep(0.01)
            Counting.now -= 1
            return await super().evaluate_relevance(query, response)

    table = pa.Table.from_pylist([rows[0]] * 20)
    score_batch(table, judge=Counting(), metrics=["relevance"], concurrency=3)
    assert Counting.most == 3


def test_a_table_is_scored_as_its_judge_is_shown_it(make, read, rows):
    scored = read(score_batch(make(rows), redact_for_judge=lambda text, kind: text.upper()))
    assert scored[0]["faithfulness_claims"][0]["text"] == "THE SHOP OPENS AT 9."
    assert [row["note"] for row in scored] == [1, 2, 3]
