"""Files that are wrong on purpose, or that another tool wrote in a way of its own."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc

import pyarrow as pa
import pytest
from pyarrow import parquet

from ragaliq.datasets import read_cases
from ragaliq.errors import DatasetError

GOOD = json.dumps({"id": 1, "query": "secret", "response": "secret"}).encode()
HEADER = b"id,query,response\n"


def table(**columns):
    file = io.BytesIO()
    parquet.write_table(pa.table(columns), file)
    return file.getvalue()


def twice_named():
    file = io.BytesIO()
    columns = [pa.array(["a"]), pa.array(["b"]), pa.array(["c"])]
    parquet.write_table(pa.table(columns, names=["query", "query", "response"]), file)
    return file.getvalue()


def not_utf8():
    buffers = [None, pa.py_buffer(b"\0\0\0\0\x02\0\0\0"), pa.py_buffer(b"\xff\xfe")]
    return table(query=pa.Array.from_buffers(pa.string(), 1, buffers), response=["r"])


NASTY = {
    "carriage-returns.csv": (HEADER.replace(b"\n", b"\r") + b"1,secret,x\r", "it is not CSV"),
    "mixed-ends.csv": (HEADER + b"1,a,b\r\n2,c,d\n3,e,f\r4,g,h\n", "line 4: it is not CSV"),
    "carriage-returns.jsonl": (GOOD + b"\r" + GOOD, "line 1: it is not JSON: Extra data"),
    "raw-nul.jsonl": (b'{"query": "secret\x00"}', "line 1: it is not JSON: Invalid control"),
    "mark-in-the-middle.jsonl": (GOOD + b"\n\xef\xbb\xbf" + GOOD, "line 2: it is not JSON"),
    "joined.csv": (
        HEADER + b"1,a,b\n\xef\xbb\xbf" + HEADER + b"2,c,d\n",
        "line 3: it is the header again; join files without their headers",
    ),
    "overlong.jsonl": (b'{"query": "\xc0\xaf"}', "line 1: byte 0xc0 in column 12 is not UTF-8"),
    "surrogate.jsonl": (b'{"query": "\xed\xa0\x80"}', "line 1: byte 0xed in column 12 is not"),
    "key-twice.jsonl": (
        b'{"query": "a", "query": "secret", "response": "x"}',
        "line 1: an object has a key twice",
    ),
    "key-twice.json": (b'[{"query": "a", "query": "secret"}]', "an object has a key twice"),
    "nan.jsonl": (b'{"query": "q", "response": NaN}', "line 1: no response was found"),
    "infinity.jsonl": (
        b'{"query": Infinity, "response": "x"}',
        "line 1: field 'query' must be a text, not inf",
    ),
    "nan-chunk.jsonl": (
        b'{"query": "q", "response": "x", "context": [NaN]}',
        "line 1: field 'context[0]' must be a text, not nan",
    ),
    "many-columns.csv": (
        ",".join(f"c{n}" for n in range(10_000)).encode() + b"\n" + b"1," * 9_999 + b"1\n",
        "none of its 10000 columns has a known name",
    ),
    "hexadecimal.yaml": (
        b"- query: 0x" + b"9" * 10_000 + b"\n  response: x\n",
        "record 1: field 'query' is a number of too many digits",
    ),
    "digits.yaml": (b"- query: " + b"9" * 10_000 + b"\n", "a value cannot be read"),
    "no-such-day.yaml": (b"- query: 2020-13-45\n", "a value cannot be read"),
    "deep.yaml": (b"- " * 20_000 + b"secret", "it is nested too deeply"),
    "bomb.yaml": (b"a: &a [x, x]\nb: &b [*a, *a]\n", "aliases (*name) are not read"),
    "list-as-key.yaml": (b"- ? [a, b]\n  : x\n", "it is not YAML that can be read"),
    "documents.yaml": (b"---\n- query: a\n---\n- query: b\n", "another document"),
    "set.yaml": (b"- !!set {query, response}\n", "record 1: it is a set, not an object"),
    "workbook.csv": (b"PK\x03\x04\x14\x00" + b"\xff" * 50, "a zip archive or an Excel workbook"),
    "zipped.json": (b"PK\x03\x04\x14\x00" + b"\xff" * 50, "a zip archive or an Excel workbook"),
    "gzipped.jsonl": (gzip.compress(GOOD), "compressed with gzip; end its name in .gz"),
    "table.jsonl": (table(query=["q"], response=["r"]), "a Parquet file; end its name in"),
    "garbled.jsonl.gz": (
        gzip.compress(GOOD)[:12] + b"\xff" * 30,
        "it is no complete gzip file",
    ),
    "nulls.parquet": (
        table(query=["q"], response=["r"], contexts=[[None, "secret"]]),
        "row 1: field 'context[0]' must be a text, not empty",
    ),
    "null-query.parquet": (
        table(query=pa.array([None], pa.string()), response=["secret"]),
        "row 1: no query was found",
    ),
    "bytes.parquet": (
        table(query=[b"secret"], response=["r"]),
        "row 1: field 'query' must be a text, not of type bytes",
    ),
    "nested.parquet": (
        table(query=[{"secret": 1}], response=["r"]),
        "row 1: field 'query' must be a text, not an object",
    ),
    "not-utf8.parquet": (not_utf8(), "after row 0: a value cannot be read (UnicodeDecodeError)"),
    "same-column.parquet": (twice_named(), "two columns are called 'query'; rename one"),
    "no-rows.parquet": (table(query=pa.array([], pa.string())), "there are no rows"),
}


@pytest.mark.parametrize("name", NASTY)
def test_a_nasty_file_is_refused_with_place_and_reason_and_without_its_text(tmp_path, name):
    content, expected = NASTY[name]
    path = tmp_path / name
    path.write_bytes(content)

    with pytest.raises(DatasetError) as refused:
        list(read_cases(path))

    message = str(refused.value)
    assert expected in message
    assert message.startswith(str(path))
    assert "secret" not in message.replace(str(path), "")


def peak_of(path, expected):
    """Bytes of Python's memory that refusing the file took."""
    tracemalloc.start()
    try:
        with pytest.raises(DatasetError, match=expected):
            list(read_cases(path))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_a_small_archive_of_a_huge_document_takes_little_memory(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(f"ragaliq.datasets.rows.MAX_{ending.upper()}_BYTES", 1_000_000)
    path = tmp_path / f"bomb.{ending}.gz"
    path.write_bytes(gzip.compress(b" " * 50_000_000, compresslevel=1))

    assert peak_of(path, "larger than 1000000 bytes.*JSON Lines") < 5_000_000


def test_a_quote_that_is_never_closed_takes_little_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("ragaliq.datasets.rows.MAX_LINE_BYTES", 1_000_000)
    path = tmp_path / "open.csv"
    path.write_bytes(HEADER + b'1,"secret,x\n' + b"2,a,b\n" * 5_000_000)

    # The cell is Unicode of four bytes a character, and its buffer doubles as it grows.
    assert peak_of(path, "it is not CSV: field larger than field limit") < 20_000_000


def test_a_row_is_what_an_experiment_of_langsmith_has_in_it(tmp_path):
    path = tmp_path / "experiment.csv"
    path.write_text(
        "inputs.question,outputs.answer,outputs.documents,error,reference.answer,"
        "feedback.correct,execution_time,example_id,id\n"
        "When?,At 9.,\"['It opens at 9.']\",,At nine.,1.0,2.3,example-1,run-1\n"
    )

    [case] = read_cases(path)

    # The example is the same in the next experiment; the run is not.
    assert (case.id, case.query, case.response) == ("example-1", "When?", "At 9.")
    assert [str(chunk) for chunk in case.context] == ["It opens at 9."]
    assert case.expected_answer == "At nine."
    assert case.metadata["feedback.correct"] == "1.0"


def test_what_pandas_writes_for_nothing_is_nothing(tmp_path):
    path = tmp_path / "ragas.jsonl"
    path.write_text(
        '{"user_input": "q", "response": "r", "reference": NaN, "retrieved_contexts": ["a"],'
        ' "reference_contexts": ["b"], "rubrics": null, "faithfulness": NaN}'
    )

    [case] = read_cases(path)

    assert case.expected_answer is None
    assert case.context == ["a"]
    assert case.metadata == {"reference_contexts": ["b"]}


def test_columns_of_one_name_as_pandas_tells_them_apart_are_all_context(tmp_path):
    path = tmp_path / "columns.csv"
    path.write_text("query,response,context,context.1,context.2\nq,r,a,b,c\n")

    [case] = read_cases(path)

    assert case.context == ["a", "b", "c"]


def test_an_array_as_numpy_prints_it_is_the_texts_it_holds(tmp_path):
    path = tmp_path / "ragas.csv"
    path.write_text("user_input,retrieved_contexts,response\nq,\"['a b'\n 'c d']\",r\n")

    [case] = read_cases(path)

    assert case.context == ["a b", "c d"]
