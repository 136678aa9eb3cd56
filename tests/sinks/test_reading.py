from __future__ import annotations

import asyncio
import math
import os
import statistics
from datetime import UTC, datetime

import pytest

from ragaliq import ConfigurationError
from ragaliq.core.results import Status
from ragaliq.sinks.sqlite import (
    RecordFilter,
    SQLiteStore,
    read_records,
    score_buckets,
    score_histogram,
    status_counts,
    store_totals,
    worst_records,
)

START = 1_700_000_000.0
SCORES = [0.1, 0.9, 0.5, None, 1.0, 0.9]
"""Of six runs, one a second; the fourth is a failure."""


@pytest.fixture
def path(tmp_path, record_of, result_of):
    def results(score):
        if score is None:
            return [result_of(None, status=Status.JUDGE_TIMEOUT, error_type="JudgeTimeoutError")]
        return [result_of(score), result_of(0.8, name="relevance")]

    store = SQLiteStore(tmp_path / "store.db")
    records = [
        record_of(
            number,
            results(score),
            pipeline="zoo" if number % 2 else "shop",
            sampling_probability=0.5 if number == 0 else 1.0,
        )
        for number, score in enumerate(SCORES)
    ]

    async def fill():
        await store.write(records)
        await store.aclose()

    asyncio.run(fill())
    return store.path


def runs(records):
    return [record.run.run_id.removeprefix("run-") for record in records]


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ({}, "012345"),
        ({"newest_first": True}, "543210"),
        ({"limit": 2}, "01"),
        ({"since": START + 2}, "2345"),
        ({"until": START + 2}, "01"),
        ({"since": datetime.fromtimestamp(START + 4, UTC)}, "45"),
        ({"pipeline": "zoo"}, "135"),
        ({"pipeline": ""}, ""),
        ({"metric": "relevance"}, "01245"),
        ({"status": "judge_timeout"}, "3"),
        ({"metric": "relevance", "status": "judge_timeout"}, ""),
        ({"verdict": "CONTRADICTED"}, "01245"),
        ({"verdict": "NOT_ENOUGH_INFO"}, ""),
    ],
)
def test_records_are_chosen_by_time_pipeline_metric_status_and_verdict(path, which, expected):
    assert "".join(runs(read_records(path, **which))) == expected


def test_a_time_without_a_zone_is_refused(path):
    with pytest.raises(ConfigurationError, match="zone"):
        list(read_records(path, since=datetime(2026, 1, 1)))  # noqa: DTZ001 - that is the point


def test_records_are_read_as_they_are_asked_for(path):
    records = read_records(path)
    assert next(records).run.run_id == "run-0"
    records.close()


def test_reading_writes_nothing(path):
    before = path.read_bytes()
    list(read_records(path))
    status_counts(path)
    assert path.read_bytes() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_store_in_a_folder_that_may_not_be_written_is_read(path):
    path.parent.chmod(0o500)
    try:
        assert len(list(read_records(path))) == 6
    finally:
        path.parent.chmod(0o700)


def test_statuses_are_counted_by_metric(path):
    assert status_counts(path) == {
        "faithfulness": {"judge_timeout": 1, "scored": 5},
        "relevance": {"scored": 5},
    }
    assert status_counts(path, RecordFilter(pipeline="shop", metric="faithfulness")) == {
        "faithfulness": {"scored": 3}
    }


def test_totals_say_what_a_store_holds(path):
    totals = store_totals(path)
    assert (totals.records, totals.first, totals.last) == (6, START, START + 5)
    assert totals.tokens == 11 * 12
    assert math.isclose(totals.cost_usd, 0.011)
    assert totals.unknown_costs == 0
    assert totals.pipelines == {"shop": 3, "zoo": 3}


def test_scores_over_time_leave_failures_out_of_means(path):
    first, second = score_buckets(path, "faithfulness", seconds=4.0)
    assert (first.start, second.start) == (START, START + 4)
    assert (first.evaluations, first.measured, first.passed) == (4, 3, 1)
    assert math.isclose(first.mean, 0.5)
    assert math.isclose(first.variance, statistics.variance([0.1, 0.9, 0.5]))
    # The first run stands for two.
    assert math.isclose(first.weighted_mean, (2 * 0.1 + 0.9 + 0.5) / 4)
    assert math.isclose(second.variance, statistics.variance([1.0, 0.9]))


def test_a_span_of_time_with_failures_alone_has_no_mean(path):
    (bucket,) = score_buckets(
        path, "faithfulness", seconds=1.0, which=RecordFilter(status="judge_timeout")
    )
    assert (bucket.evaluations, bucket.measured, bucket.passed) == (1, 0, 0)
    assert (bucket.mean, bucket.variance, bucket.weighted_mean) == (None, None, None)


def test_a_span_of_time_must_have_a_length(path):
    with pytest.raises(ConfigurationError, match="seconds"):
        score_buckets(path, "faithfulness", seconds=0.0)


def test_a_histogram_puts_the_best_score_into_the_last_part(path):
    assert score_histogram(path, "faithfulness", bins=4) == [1, 0, 1, 3]


def test_the_worst_answers_come_first_and_failures_are_not_among_them(path):
    assert runs(worst_records(path, "faithfulness")) == ["0", "2", "5", "1", "4"]
    assert runs(worst_records(path, "faithfulness", limit=1)) == ["0"]


def test_where_lower_is_better_the_highest_score_is_the_worst(tmp_path, record_of, result_of):
    store = SQLiteStore(tmp_path / "low.db")
    records = [
        record_of(n, [result_of(s, higher_is_better=False)]) for n, s in enumerate((0.2, 0.9))
    ]
    asyncio.run(store.write(records))
    assert runs(worst_records(store.path, "faithfulness")) == ["1", "0"]
    asyncio.run(store.aclose())
