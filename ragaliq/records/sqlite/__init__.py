"""The embedded store and its reading side."""

from ragaliq.records.sqlite.reading import read_records
from ragaliq.records.sqlite.store import SQLiteStore

__all__ = ["SQLiteStore", "read_records"]
