"""The same cases from every format."""

import csv
import gzip
import io
import json
import tracemalloc

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet as pq

from ragaliq import DatasetError
from ragaliq.datasets import read_cases

ROWS = [
    {
        "id": "a",
        "question": "Wie viel?",
        "contexts": ["Eins.", 'Zwei, "drei"\nvier.'],
        "answer": "5 €",
    },
    {"id": "b", "question": "何?", "contexts": [], "answer": "それ。"},
]


def table(rows, **dialect):
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, fieldnames=list(rows[0]), **dialect)
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def parquet():
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), file)
    return file.getvalue()


MARK = "\ufeff"
LINES = [json.dumps(row) for row in ROWS]
JSON_LISTS = [row | {"contexts": json.dumps(row["contexts"])} for row in ROWS]
NUMBERED = [
    {name: value for name, value in row.items() if name != "contexts"}
    | {f"context_{n}": "".join(row["contexts"][n - 1 : n]) for n in (1, 2)}
    for row in ROWS
]
FILES = {
    "cases.json": json.dumps(ROWS),
    "wrapped.json": MARK + json.dumps({"version": 1, "data": ROWS}),
    "cases.jsonl": "\n\n".join(LINES) + "\n",
    "marked.ndjson": MARK + "\r\n".join(LINES),
    "old-macs.jsonl": "\r".join(LINES),
    "old-macs.csv": table(JSON_LISTS, lineterminator="\r"),
    "cases.jsonl.gz": gzip.compress("\n".join(LINES).encode()),
    "json-lists.csv": table(JSON_LISTS),
    "semicolons.csv": MARK + table(JSON_LISTS, delimiter=";"),
    "numbered.tsv": table(NUMBERED, delimiter="\t"),
    "cases.parquet": parquet(),
}


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_cases(tmp_path, name):
    cases = list(read_cases(written(tmp_path / name, FILES[name])))

    assert [(c.id, c.query, c.context_texts, c.response) for c in cases] == [
        (row["id"], row["question"], row["contexts"], row["answer"]) for row in ROWS
    ]


def test_a_reader_starts_from_the_beginning_each_time(tmp_path):
    reader = read_cases(written(tmp_path / "cases.jsonl", FILES["cases.jsonl"]))
    cases = list(reader)

    assert len(cases) == 2
    assert list(reader) == cases


def test_json_lines_are_read_in_bounded_memory(tmp_path):
    path = tmp_path / "big.jsonl"
    with path.open("w") as file:
        for number in range(1500):
            row = {
                "id": number,
                "query": "Q",
                "context": ["x" * 4000, str(number)],
                "response": "A",
            }
            file.write(json.dumps(row | {"pad": "y" * 16_000}) + "\n")
    tracemalloc.start()
    try:
        count = sum(1 for _ in read_cases(path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert count == 1500
    assert peak < path.stat().st_size / 10


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"))


@given(st.lists(st.fixed_dictionaries(dict.fromkeys(["query", "response", "note"], TEXT))))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_survives_csv(tmp_path, rows):
    missing = {"", "nan", "NaN", "<NA>"}  # as pandas writes a cell without a value
    rows = [r for r in rows if missing.isdisjoint({r["query"].strip(), r["response"].strip()})]
    if not rows:
        return

    path = written(tmp_path / "any.csv", table(rows))
    cases = list(read_cases(path, on_error="skip"))

    assert [(case.query, case.response) for case in cases] == [
        (row["query"], row["response"]) for row in rows
    ]


CELLS = {
    "Refunds take five days.|They come in cash.": "|",
    "[Refunds take five days., They come in cash.]": ",",
    "Refunds take five days. | They come in cash. |": "|",
}


@pytest.mark.parametrize("cell", CELLS)
def test_chunks_in_one_cell_are_split_where_asked_and_else_noted(tmp_path, caplog, cell):
    path = tmp_path / "answers.csv"
    path.write_text(table([{"question": "q", "context": cell, "answer": "a"}] * 2))
    separator = CELLS[cell]

    assert [len(case.context) for case in read_cases(path)] == [1, 1]
    (note,) = caplog.messages
    assert f"--split-context '{separator}'" in note
    assert "row 1" in note
    assert "Refunds" not in note

    caplog.clear()
    for case in read_cases(path, split_context=separator):
        assert case.context == ["Refunds take five days.", "They come in cash."]
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("cell", "chunks"),
    [
        ('["a|b", "c"]', ["a|b", "c"]),
        ("One chunk, with a comma.", ["One chunk, with a comma."]),
        ("| a | b |\n|---|---|\n| 1 | 2 |", ["| a | b |\n|---|---|\n| 1 | 2 |"]),
        ("[see the note]", ["[see the note]"]),
    ],
)
def test_a_list_as_json_a_text_and_a_table_are_not_noted(tmp_path, caplog, cell, chunks):
    path = tmp_path / "answers.csv"
    path.write_text(table([{"question": "q", "context": cell, "answer": "a"}]))
    (case,) = read_cases(path)
    assert case.context == chunks
    assert caplog.messages == []


@pytest.mark.parametrize("separator", [";", ",", "|"])
def test_excels_line_that_names_the_separator_is_no_header(tmp_path, separator):
    path = tmp_path / "excel.csv"
    text = table([{"question": "q", "answer": "a, b; c|"}] * 2, delimiter=separator)
    path.write_text(f"sep={separator}\r\n{text}x\r\n")
    cases = iter(read_cases(path))
    assert [next(cases).response, next(cases).response] == ["a, b; c|"] * 2
    with pytest.raises(DatasetError, match=r"row 3 \(line 5\): it has 1 cells, the header 2"):
        next(cases)
