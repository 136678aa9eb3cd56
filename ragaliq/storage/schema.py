"""The store's tables, and the way from each older form to the present one.

A step is never changed once it is released: a store written years ago takes the steps it lacks.
The number of steps taken is kept in `PRAGMA user_version`.
"""

from __future__ import annotations

import sqlite3

from ragaliq.errors import DatasetError

__all__ = ["APPLICATION_ID", "SCHEMA_VERSION", "migrate", "require_readable"]

APPLICATION_ID = 0x52474C51
"""Marks the file as a store of ragaliq (`PRAGMA application_id`); the letters RGLQ."""

# 1: evaluations and metrics hold what is asked for often, in short rows that are quick to go
# through; the whole record is kept beside them, as JSON.
_RECORDS = """
CREATE TABLE evaluations (
    evaluation_id TEXT PRIMARY KEY,
    run_id TEXT NOT NULL,
    case_id TEXT NOT NULL,
    pipeline TEXT NOT NULL,
    framework TEXT NOT NULL,
    trace_id TEXT,
    span_id TEXT,
    session_id TEXT,
    sampling_probability REAL NOT NULL,
    created_at REAL NOT NULL,
    measured INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    cost_usd REAL
) WITHOUT ROWID;
CREATE INDEX evaluations_by_time ON evaluations (created_at);
CREATE INDEX evaluations_by_pipeline ON evaluations (pipeline, created_at);
CREATE TABLE metrics (
    evaluation_id TEXT NOT NULL REFERENCES evaluations ON DELETE CASCADE,
    name TEXT NOT NULL,
    metric_id TEXT NOT NULL,
    status TEXT NOT NULL,
    score REAL,
    passed INTEGER,
    higher_is_better INTEGER NOT NULL,
    judge TEXT NOT NULL,
    model TEXT,
    supported INTEGER NOT NULL,
    contradicted INTEGER NOT NULL,
    not_enough_info INTEGER NOT NULL,
    unverified INTEGER NOT NULL,
    weight REAL NOT NULL,
    PRIMARY KEY (evaluation_id, name)
) WITHOUT ROWID;
CREATE INDEX metrics_by_score ON metrics (name, score);
CREATE TABLE records (
    evaluation_id TEXT PRIMARY KEY REFERENCES evaluations ON DELETE CASCADE,
    record TEXT NOT NULL
);
"""

# 2: a small key/value area, for work that must survive a restart.
_STATE = """
CREATE TABLE state (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    updated_at REAL NOT NULL,
    PRIMARY KEY (namespace, key)
) WITHOUT ROWID;
"""

# 3: requests on their way through the Message Batches API, and who waits for them. The long texts
# come last, so that SQLite need not go through them to reach what is asked for often.
_BATCHES = """
CREATE TABLE batch_requests (
    request_id TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    state TEXT NOT NULL,
    size INTEGER NOT NULL,
    submission TEXT,
    batch_id TEXT,
    charged_to TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    asked_at REAL NOT NULL,
    changed_at REAL NOT NULL,
    params TEXT NOT NULL,
    outcome TEXT
);
CREATE INDEX batch_requests_by_digest ON batch_requests (digest);
CREATE INDEX batch_requests_by_state ON batch_requests (endpoint, state);
CREATE INDEX batch_requests_by_submission ON batch_requests (submission);
CREATE INDEX batch_requests_by_batch ON batch_requests (batch_id);
CREATE TABLE batch_holds (
    request_id TEXT NOT NULL REFERENCES batch_requests ON DELETE CASCADE,
    owner TEXT NOT NULL,
    delivered INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (request_id, owner)
) WITHOUT ROWID;
CREATE INDEX batch_holds_by_owner ON batch_holds (owner, delivered);
"""

_STEPS = (_RECORDS, _STATE, _BATCHES)
SCHEMA_VERSION = len(_STEPS)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a store to the present form; does nothing to one that has it.

    Raises:
        DatasetError: The file is something else, or was written by a later version.
    """
    if _version(connection) == SCHEMA_VERSION:
        return
    # Several processes may open a new file at the same time: one migrates, the others wait here.
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in _STEPS[_version(connection) :]:
            for statement in step.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def require_readable(connection: sqlite3.Connection) -> int:
    """The form of a store that is only read.

    Raises:
        DatasetError: It is no store, or of a later version.
    """
    version = _version(connection)
    if version == 0:
        raise DatasetError("the file is empty: nothing has been stored in it yet")
    return version


def _version(connection: sqlite3.Connection) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    mark = int(connection.execute("PRAGMA application_id").fetchone()[0])
    tables = int(connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])
    if tables and mark != APPLICATION_ID:
        raise DatasetError("the file is a database, but not a store of ragaliq; name another file")
    if version > SCHEMA_VERSION:
        raise DatasetError(
            f"the store has form {version}, and this version of ragaliq knows forms up to "
            f"{SCHEMA_VERSION}; update ragaliq"
        )
    return version
