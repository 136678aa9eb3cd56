import asyncio
import sqlite3
import stat
from contextlib import closing

import pytest

from ragaliq import ConfigurationError, DatasetError, SinkError
from ragaliq.core.results import Status
from ragaliq.records.sqlite_file import SCHEMA_VERSION
from ragaliq.records.store import SQLiteStore, read_records


def write(store, *records):
    async def both():
        try:
            await store.write(records)
        finally:
            await store.aclose()

    asyncio.run(both())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def test_what_is_written_is_read_again(path, record_of):
    records = [record_of(number) for number in range(3)]
    write(SQLiteStore(f"sqlite:///{path}"), *records)
    assert list(read_records(f"sqlite:///{path}")) == records


def test_a_record_written_twice_is_there_once(path, record_of):
    store = SQLiteStore(path)
    write(store, record_of(), record_of())
    write(store, record_of())
    assert len(list(read_records(path))) == 1
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM metrics").fetchone() == (1,)


def test_a_failure_never_replaces_a_score_but_a_score_replaces_a_failure(
    path, record_of, result_of
):
    store = SQLiteStore(path)
    failed = [result_of(None, status=Status.JUDGE_ERROR, error_type="JudgeAPIError")]
    write(store, record_of(results=failed))
    write(store, record_of())
    write(store, record_of(results=failed))
    (record,) = read_records(path)
    assert record.results["faithfulness"].score == 0.5


def test_only_its_owner_may_read_the_store_and_what_sqlite_puts_beside_it(path, record_of):
    store = SQLiteStore(path)
    asyncio.run(store.write([record_of()]))
    files = list(path.parent.iterdir())
    assert {file.name for file in files} == {"store.db", "store.db-wal", "store.db-shm"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    asyncio.run(store.aclose())


def test_a_folder_that_is_missing_is_made_for_the_owner_alone(tmp_path, record_of):
    path = tmp_path / "some" / "where" / "store.db"
    write(SQLiteStore(path), record_of())
    assert len(list(read_records(path))) == 1
    made = path.parent, path.parent.parent
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in made} == {0o700}


async def test_results_do_not_go_to_a_file_that_was_deleted(path, record_of, caplog):
    store = SQLiteStore(path)
    await store.write([record_of(run_id="before")])
    for file in list(path.parent.iterdir()):
        file.unlink()
    await store.write([record_of(run_id="after")])
    await store.write([record_of(run_id="later")])
    await store.aclose()
    assert {record.run.run_id for record in read_records(path)} == {"after", "later"}
    assert caplog.text.count("was deleted or replaced while it was open") == 1


def test_an_address_may_be_relative_to_where_the_process_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = SQLiteStore("sqlite:///data/live%20runs.db?max_age_days=30&max_rows=10")
    assert store.path == tmp_path / "data" / "live runs.db"
    assert SQLiteStore("sqlite:////srv/live.db").path.as_posix() == "/srv/live.db"


@pytest.mark.parametrize(
    "address",
    [
        "",
        "sqlite://",
        "sqlite://host/live.db",
        "sqlite:///",
        "sqlite:///:memory:",
        "postgresql://user:secret@host/live",
        "sqlite:///live.db?max_age=3",
        "sqlite:///live.db?max_rows=many",
        "sqlite:///live.db?max_rows=0",
    ],
)
def test_a_wrong_address_is_refused_when_the_store_is_made(address):
    with pytest.raises(ConfigurationError) as caught:
        SQLiteStore(address)
    assert "secret" not in str(caught.value)


# --- limits ---------------------------------------------------------------------------------


def test_the_oldest_records_beyond_the_limit_are_deleted(path, record_of):
    write(SQLiteStore(path, max_rows=3), *(record_of(number) for number in range(8)))
    assert [record.run.run_id for record in read_records(path)] == ["run-5", "run-6", "run-7"]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM metrics").fetchone() == (3,)


def test_records_that_are_too_old_are_deleted(path, record_of):
    import time

    now = time.time()
    records = [record_of(1, created_at=now - 3 * 86_400), record_of(2, created_at=now - 3600)]
    write(SQLiteStore(path, max_age_days=2), *records)
    assert [record.run.run_id for record in read_records(path)] == ["run-2"]


def test_deleting_gives_the_space_back(path, record_of, captured):
    write(SQLiteStore(path), *(record_of(number, content=captured) for number in range(500)))
    before = path.stat().st_size
    write(SQLiteStore(path, max_rows=10), record_of(9999))
    assert path.stat().st_size < before / 2


# --- newer forms ------------------------------------------------------------------


def test_a_store_of_a_later_form_is_neither_written_nor_read(path, record_of):
    write(SQLiteStore(path), record_of())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with pytest.raises(SinkError, match="update ragaliq") as caught:
        write(SQLiteStore(path), record_of())
    assert caught.value.permanent
    with pytest.raises(DatasetError, match="update ragaliq"):
        list(read_records(path))


def test_a_record_of_a_later_form_is_refused_by_name(path, record_of):
    write(SQLiteStore(path), record_of())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "UPDATE records SET record = replace(record, '_version\":1', '_version\":9')"
        )
    with pytest.raises(DatasetError, match="cannot read"):
        list(read_records(path))


def test_another_applications_database_is_left_alone(path, record_of):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE customers (name)")
    with pytest.raises(SinkError, match="not a store of ragaliq"):
        write(SQLiteStore(path), record_of())
    with pytest.raises(DatasetError, match="not a store of ragaliq"):
        list(read_records(path))


# --- bad files ------------------------------------------------------------------------------


def failure_of(store, record):
    with pytest.raises(SinkError) as caught:
        write(store, record)
    return caught.value


def test_a_file_that_is_no_database_is_a_permanent_failure_with_its_name(path, record_of):
    path.write_text("This is a text about zebras, and longer than a header.\n" * 100)
    error = failure_of(SQLiteStore(path), record_of())
    assert (error.kind, error.permanent) == ("corrupt", True)
    assert str(path) in str(error)
    with pytest.raises(DatasetError, match="not a database"):
        list(read_records(path))


def test_a_damaged_store_is_a_counted_failure(path, record_of, captured):
    write(SQLiteStore(path), *(record_of(number, content=captured) for number in range(200)))
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    assert failure_of(SQLiteStore(path), record_of(9)).kind == "corrupt"


def test_a_full_disk_is_a_failure_that_may_pass(path, record_of):
    store = SQLiteStore(path)
    asyncio.run(store.write([record_of(1)]))
    # SQLite answers to its page limit exactly as it does to a full disk.
    with store._connection.transaction() as connection:
        connection.execute("PRAGMA max_page_count = 1")
    with pytest.raises(SinkError) as caught:
        asyncio.run(store.write([record_of(number) for number in range(500)]))
    assert (caught.value.kind, caught.value.permanent) == ("disk_full", False)
    write(store, record_of(2))
    assert len(list(read_records(path))) == 2


def test_a_file_held_by_another_process_is_a_failure_that_may_pass(path, record_of):
    write(SQLiteStore(path), record_of(1))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        error = failure_of(SQLiteStore(path, busy_timeout=0.01), record_of(2))
    assert (error.kind, error.permanent) == ("locked", False)


def test_a_folder_and_a_path_through_a_file_are_counted_failures(tmp_path, record_of):
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "store.db"):
        assert failure_of(SQLiteStore(path), record_of()).kind == "cannot_open"
