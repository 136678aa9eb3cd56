"""The same cases from every format."""

import csv
import gzip
import json
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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


def write_csv(path, rows, *, delimiter=",", encoding="utf-8"):
    with path.open("w", newline="", encoding=encoding) as file:
        table = csv.DictWriter(file, fieldnames=list(rows[0]), delimiter=delimiter)
        table.writeheader()
        table.writerows(rows)


def as_json(path):
    path.write_text(json.dumps(ROWS), encoding="utf-8")


def as_wrapped_json(path):
    path.write_text(json.dumps({"version": 1, "data": ROWS}), encoding="utf-8-sig")


def as_jsonl(path):
    path.write_text("\n\n".join(json.dumps(row) for row in ROWS) + "\n", encoding="utf-8")


def as_jsonl_with_mark(path):
    path.write_text("\r\n".join(json.dumps(row) for row in ROWS), encoding="utf-8-sig")


def as_jsonl_of_old_macs(path):
    path.write_bytes("\r".join(json.dumps(row) for row in ROWS).encode())


def as_csv_of_old_macs(path):
    write_csv(path, [row | {"contexts": json.dumps(row["contexts"])} for row in ROWS])
    path.write_bytes(path.read_bytes().replace(b"\r\n", b"\r"))


def as_gzipped_jsonl(path):
    path.write_bytes(gzip.compress("\n".join(json.dumps(row) for row in ROWS).encode()))


def as_csv_of_json_lists(path):
    write_csv(path, [row | {"contexts": json.dumps(row["contexts"])} for row in ROWS])


def as_csv_of_python_lists(path):
    rows = [row | {"contexts": str(row["contexts"])} for row in ROWS]
    write_csv(path, rows, delimiter=";", encoding="utf-8-sig")


def as_csv_with_numbered_columns(path):
    rows = []
    for row in ROWS:
        one, two = [*row["contexts"], "", ""][:2]
        rest = {name: value for name, value in row.items() if name != "contexts"}
        rows.append(rest | {"context_1": one, "context_2": two})
    write_csv(path, rows, delimiter="\t")


def as_yaml(path):
    import yaml

    path.write_text(yaml.safe_dump(ROWS, allow_unicode=True), encoding="utf-8")


def as_parquet(path):
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pylist(ROWS), path)


WRITERS = {
    "cases.json": as_json,
    "wrapped.json": as_wrapped_json,
    "cases.jsonl": as_jsonl,
    "marked.ndjson": as_jsonl_with_mark,
    "old-macs.jsonl": as_jsonl_of_old_macs,
    "old-macs.csv": as_csv_of_old_macs,
    "cases.jsonl.gz": as_gzipped_jsonl,
    "json-lists.csv": as_csv_of_json_lists,
    "python-lists.csv": as_csv_of_python_lists,
    "numbered.tsv": as_csv_with_numbered_columns,
    "cases.yaml": as_yaml,
    "cases.parquet": as_parquet,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_cases(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](path)

    cases = list(read_cases(path))

    assert [(c.id, c.query, c.context_texts, c.response) for c in cases] == [
        (row["id"], row["question"], row["contexts"], row["answer"]) for row in ROWS
    ]


def test_a_reader_starts_anew_each_time(tmp_path):
    as_jsonl(tmp_path / "cases.jsonl")
    reader = read_cases(tmp_path / "cases.jsonl")

    assert list(reader) == list(reader)


def test_a_format_can_be_named(tmp_path):
    as_jsonl(tmp_path / "export.txt")

    assert len(list(read_cases(tmp_path / "export.txt", file_format="jsonl"))) == 2


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
    path = tmp_path / "any.csv"
    missing = {"", "nan", "NaN", "<NA>"}  # as pandas writes a cell without a value
    rows = [r for r in rows if missing.isdisjoint({r["query"].strip(), r["response"].strip()})]
    if not rows:
        return
    write_csv(path, rows)

    cases = list(read_cases(path, on_error="skip"))

    assert [(case.query, case.response) for case in cases] == [
        (row["query"], row["response"]) for row in rows
    ]
