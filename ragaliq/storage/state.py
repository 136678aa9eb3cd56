"""A small key/value area in the store, for work that must survive a restart.

Each kind of work has a namespace, such as `batches`; values are JSON. Every call is a transaction
of its own, so that several processes may share a namespace.
"""

from __future__ import annotations

import json
import sqlite3
import time
from typing import Any

from ragaliq.errors import DatasetError
from ragaliq.storage.connection import WriterConnection
from ragaliq.storage.failures import store_error
from ragaliq.storage.location import Location, parse_location

__all__ = ["StateArea"]


class StateArea:
    """One namespace of a store's state. Calls wait for the disk: not for the request path.

    Args:
        location: The store, as for `SQLiteStore`.
        namespace: Whose state it is.
        busy_timeout: Seconds to wait for another process that writes.
    """

    def __init__(self, location: Location, *, namespace: str, busy_timeout: float = 5.0) -> None:
        self._path = parse_location(location)
        self._namespace = namespace
        self._connection = WriterConnection(self._path, busy_timeout=busy_timeout)

    def get(self, key: str) -> Any:
        """The value, or None."""
        rows = self._run("SELECT value FROM state WHERE namespace = ? AND key = ?", key)
        return json.loads(rows[0][0]) if rows else None

    def items(self) -> dict[str, Any]:
        """All keys with their values, in order of the keys."""
        rows = self._run("SELECT key, value FROM state WHERE namespace = ? ORDER BY key")
        return {key: json.loads(value) for key, value in rows}

    def put(self, key: str, value: Any) -> None:
        """Set a value, over the one that is there."""
        self._run(
            "INSERT INTO state VALUES (?, ?, ?, ?) ON CONFLICT (namespace, key) "
            "DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at RETURNING key",
            key,
            json.dumps(value),
            time.time(),
        )

    def add(self, key: str, value: Any) -> bool:
        """Set a value where there is none; of several processes exactly one gets True."""
        rows = self._run(
            "INSERT INTO state VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING key",
            key,
            json.dumps(value),
            time.time(),
        )
        return bool(rows)

    def replace(self, key: str, old: Any, new: Any) -> bool:
        """Set a value where it still is `old`; of several processes exactly one gets True."""
        rows = self._run(
            "UPDATE state SET value = ?3, updated_at = ?4 "
            "WHERE namespace = ?1 AND key = ?2 AND value = ?5 RETURNING key",
            key,
            json.dumps(new),
            time.time(),
            json.dumps(old),
        )
        return bool(rows)

    def delete(self, key: str) -> bool:
        """Remove a value; whether there was one. Of several processes exactly one gets True."""
        return bool(
            self._run("DELETE FROM state WHERE namespace = ? AND key = ? RETURNING key", key)
        )

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        self._connection.close()

    def _run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            with self._connection.transaction() as connection:
                return connection.execute(statement, (self._namespace, *values)).fetchall()
        except (sqlite3.Error, OSError, DatasetError) as error:
            raise store_error(error, self._path) from error
