"""The embedded store, its reading side, and a small area for work that must survive a restart."""

from ragaliq.sinks.sqlite.aggregates import (
    ScoreBucket,
    StoreTotals,
    score_buckets,
    score_histogram,
    status_counts,
    store_totals,
    worst_records,
)
from ragaliq.sinks.sqlite.reading import RecordFilter, open_store, read_records
from ragaliq.sinks.sqlite.store import SQLiteStore

__all__ = [
    "RecordFilter",
    "SQLiteStore",
    "ScoreBucket",
    "StoreTotals",
    "open_store",
    "read_records",
    "score_buckets",
    "score_histogram",
    "status_counts",
    "store_totals",
    "worst_records",
]
