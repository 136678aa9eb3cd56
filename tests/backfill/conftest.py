"""The same rows as each kind of table, and judges whose use can be counted."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

ROWS = [
    {
        "note": 1,
        "question": "When does the shop open?",
        "answer": "The shop opens at 9. It has a red door.",
        "contexts": ["The shop opens at 9.", "The street is long."],
    },
    {"note": 2, "question": "When?", "answer": None, "contexts": ["The shop opens at 9."]},
    {"note": 3, "question": "Thanks?", "answer": "You are welcome!", "contexts": []},
]


@pytest.fixture
def rows():
    return [dict(row) for row in ROWS]


@pytest.fixture(params=["table", "record_batch", "frame"])
def make(request):
    """Makes a table of one kind from rows."""
    return {
        "table": pa.Table.from_pylist,
        "record_batch": pa.RecordBatch.from_pylist,
        "frame": pd.DataFrame,
    }[request.param]


@pytest.fixture
def read():
    """The rows of a table of any kind, with None for nothing."""

    def rows_of(table):
        if isinstance(table, pd.DataFrame):
            table = pa.Table.from_pandas(table, preserve_index=False)
        return table.to_pylist()

    return rows_of
