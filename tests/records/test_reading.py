import asyncio
import os
from datetime import UTC, datetime

import pytest

from ragaliq import ConfigurationError
from ragaliq.core.results import Status
from ragaliq.records.store import SQLiteStore, read_records

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


def test_reading_writes_nothing(path):
    before = path.read_bytes()
    list(read_records(path))
    assert path.read_bytes() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_store_in_a_folder_that_may_not_be_written_is_read(path):
    path.parent.chmod(0o500)
    try:
        assert len(list(read_records(path))) == 6
    finally:
        path.parent.chmod(0o700)


@pytest.mark.parametrize("verdict", ["WRONG", "supported > 0 OR m.supported", ""])
def test_a_verdict_that_is_not_one_is_refused_and_no_part_of_a_query(path, verdict):
    with pytest.raises(ConfigurationError, match="verdict must be one of SUPPORTED, CONTRADICTED"):
        list(read_records(path, verdict=verdict))
