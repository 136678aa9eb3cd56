"""Files that are wrong in every way files are wrong."""

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


MALFORMED = {
    "empty.jsonl": (b"", "there are no rows"),
    "blank.jsonl": (b"\n \n\n", "there are no rows"),
    "empty-list.json": (b"[]", "there are no rows"),
    "header-only.csv": (HEADER, "there are no rows"),
    "latin1.jsonl": (b'{"query": "caf\xe9"}', "row 1: byte 0xe9 in column 15 is not UTF-8"),
    "latin1.csv": (HEADER + b"1,caf\xe9,x\n", "line 2: byte 0xe9 in column 6 is not"),
    "latin1.json": (b'[\n{"query": "caf\xe9"}]', "line 2: byte 0xe9 in column 15 is not UTF-8"),
    "old-macs.json": (b'[\r{"query": "caf\xe9"}]', "line 2: byte 0xe9 in column 15 is not UTF-8"),
    "old-macs.csv": (HEADER[:-1] + b"\r1,caf\xe9,x\r", "line 2: byte 0xe9 in column 6 is not"),
    "returns.csv": (HEADER + b'1,"a\rb",c\n2,caf\xe9,x\n', "line 3: byte 0xe9 in column 6 is not"),
    "return.csv": (HEADER + b"1,secret\r2,x,y\n", "a carriage return alone ends no line"),
    "cut.jsonl": (GOOD + b"\n" + GOOD[:20], "row 2: it is not JSON"),
    "open.jsonl": (
        b'{"query": "secret\n',
        "row 1: it is not JSON: Unterminated string in column 11",
    ),
    "control.jsonl": (b'{"query": "\x01"}', "it is not JSON: Invalid control character in column"),
    "comma.jsonl": (GOOD[:-1] + b"\n", "it is not JSON: Expecting ',' delimiter in column 50"),
    "cut.json": (b"[" + GOOD + b",", "line 1: it is not JSON"),
    "lines.json": (GOOD + b"\n" + GOOD, "end its name in .jsonl"),
    "number.json": (b"7", "expected a list of objects, found int"),
    "object.json": (GOOD, "the file holds one object"),
    "list-of-texts.json": (b'["secret"]', "row 1: expected an object, found str"),
    "list.jsonl": (b'["secret"]', "row 1: expected an object, found list"),
    "deep.jsonl": (b"[" * 100_000, "row 1: it is nested too deeply"),
    "digits.jsonl": (b'{"id": ' + b"9" * 6000 + b"}", "row 1: it is not JSON that can be read"),
    "no-query.jsonl": (b'{"response": "secret"}', "row 1: no query and no context were found"),
    "query-object.jsonl": (
        b'{"query": {"secret": 1}, "response": "x"}',
        "row 1: field 'query' must be a text, not an object",
    ),
    "nested-null.jsonl": (
        b'{"query": "q", "response": "x", "context": [null]}',
        "row 1: field 'context[0]' must be a text, not empty",
    ),
    "chunk-without-text.jsonl": (
        b'{"query": "q", "response": "x", "context": [{"secret": 1}]}',
        "row 1: context[0] has no text",
    ),
    "chunk-ids.jsonl": (
        b'{"query": "q", "answer": "x", "docs": [{"text": "", "id": 1}, {"text": "b", "id": 1}]}',
        "two context chunks have the id 1",
    ),
    "tags.jsonl": (
        b'{"query": "q", "response": "x", "tags": {"a": 1}}',
        "row 1: field 'tags[0]' must be a text, not an object",
    ),
    "metadata.jsonl": (
        b'{"query": "q", "response": "x", "metadata": [1]}',
        "row 1: field 'metadata' must be an object, not a list",
    ),
    "same-id.jsonl": (GOOD + b"\n" + GOOD, "row 2: its id is also that of row 1"),
    "few-cells.csv": (HEADER + b"1,secret\n", "row 1 (line 2): it has 2 cells, the header 3"),
    "open-quote.csv": (HEADER + b'1,"secret,x\n', "it is not CSV"),
    "same-column.csv": (b"id,query,query\n1,a,b\n", "line 1: two columns are called 'query'"),
    "no-names.csv": (b",,\n1,2,3\n", "line 1: the header is empty"),
    "bars.csv": (HEADER.replace(b",", b"|"), "line 1: there is one column; put commas, semicolons"),
    "no-answers.csv": (b"question\nsecret\n", "no response and no context were found"),
    "commas.tsv": (HEADER, "line 1: there is one column; put a tab between columns"),
    "no-header.csv": (b"1,secret,x\n2,b,y\n", "none of its 3 columns has a known name"),
    "text.parquet": (b"secret", "not a readable Parquet file"),
    "footer.parquet": (b"PAR1" + b"\xff" * 50 + b"\x32\0\0\0PAR1", "deserialize"),
    "plain.jsonl.gz": (GOOD, "not a complete gzip file"),
    "table.xlsx": (b"PK\x03\x04", "workbooks are not read; save the table as CSV (UTF-8)"),
    "unknown.txt": (GOOD, "the name does not tell the format"),
    "store.db": (b"SQLite format 3\x00", "`ragaliq cases` makes cases of stored results"),
    "mark-in-the-middle.jsonl": (GOOD + b"\n\xef\xbb\xbf" + GOOD, "row 2: it is not JSON"),
    "joined.csv": (
        HEADER + b"1,a,b\n\xef\xbb\xbf" + HEADER + b"2,c,d\n",
        "row 2 (line 3): it is the header again; join files without their headers",
    ),
    "overlong.jsonl": (b'{"query": "\xc0\xaf"}', "row 1: byte 0xc0 in column 12 is not UTF-8"),
    "key-twice.jsonl": (
        b'{"query": "a", "query": "secret", "response": "x"}',
        "row 1: an object has a key twice",
    ),
    "infinity.jsonl": (
        b'{"query": Infinity, "response": "x"}',
        "row 1: field 'query' must be a text, not inf",
    ),
    "many-columns.csv": (
        ",".join(f"c{n}" for n in range(10_000)).encode() + b"\n" + b"1," * 9_999 + b"1\n",
        "'c11' and 9,988 more; say where they are: --field query=COLUMN",
    ),
    "cases.yaml": (b"- query: secret\n", "YAML is not read; write an object a line as JSON"),
    "excel.csv": ("query,response\nq,secret\n".encode("utf-16"), "or name its encoding (enc"),
    "marked.jsonl": (GOOD.decode().encode("utf-16-le").join([b"\xff\xfe", b""]), "in UTF-16"),
    "wide.jsonl": (GOOD.decode().encode("utf-32"), "in UTF-16 or UTF-32; save the file as UTF-8"),
    "python-lists.csv": (
        b"query,response,context\nq,r,\"['secret', 'b']\"\n",
        "row 1 (line 2): field 'context' is a list as Python prints it; write lists as JSON",
    ),
    "numpy.csv": (
        b"user_input,retrieved_contexts,response\nq,\"['secret'\n 'c d']\",r\n",
        "field 'context' is a list as Python prints it; write lists as JSON",
    ),
    "documents.csv": (
        b"query,response,context\nq,r,\"[Document(page_content='secret')]\"\n",
        "field 'context' is a list as Python prints it",
    ),
    "zipped.json": (b"PK\x03\x04\x14\x00" + b"\xff" * 50, "a zip archive or an Excel workbook"),
    "gzipped.jsonl": (gzip.compress(GOOD), "compressed with gzip; end its name in .gz"),
    "table.jsonl": (table(query=["q"], response=["r"]), "a Parquet file; end its name in"),
    "nulls.parquet": (
        table(query=["q"], response=["r"], contexts=[[None, "secret"]]),
        "row 1: field 'context[0]' must be a text, not empty",
    ),
    "bytes.parquet": (
        table(query=[b"secret"], response=["r"]),
        "row 1: field 'query' must be a text, not of type bytes",
    ),
    "not-utf8.parquet": (not_utf8(), "after row 0: a value cannot be read (UnicodeDecodeError)"),
    "same-column.parquet": (twice_named(), "two columns are called 'query'; rename one"),
    "no-rows.parquet": (table(query=pa.array([], pa.string())), "there are no rows"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_file_is_refused_with_place_and_reason_and_without_its_text(tmp_path, name):
    content, expected = MALFORMED[name]
    path = tmp_path / name
    path.write_bytes(content)

    with pytest.raises(DatasetError) as refused:
        list(read_cases(path))

    message = str(refused.value)
    assert expected in message
    assert message.startswith(str(path))
    assert "secret" not in message.replace(str(path), "")


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(DatasetError, match="there is no such file"):
        read_cases(tmp_path / "nowhere.jsonl")
    with pytest.raises(DatasetError, match="is a folder"):
        read_cases(tmp_path)


@pytest.mark.parametrize(("encoding", "is_advised"), [(None, True), ("cp1252", False)])
def test_to_name_an_encoding_is_advised_where_none_was_named(tmp_path, encoding, is_advised):
    path = tmp_path / "cases.csv"
    path.write_bytes(HEADER + b"1,\x81,x\n")
    with pytest.raises(DatasetError, match=r"line 2: byte 0x81 in column 3.*UTF-8") as refused:
        list(read_cases(path, encoding=encoding))
    assert ("encoding='cp1252', --encoding cp1252" in str(refused.value)) is is_advised


def test_a_huge_line_is_refused_and_the_next_one_read(tmp_path, monkeypatch):
    monkeypatch.setattr("ragaliq.datasets.rows.MAX_LINE", 100)
    path = tmp_path / "huge.jsonl"
    path.write_bytes(b'{"query": "' + b"x" * 1000 + b'"}\n' + GOOD + b"\n")
    reader = read_cases(path, on_error="skip")

    assert [case.id for case in reader] == ["1"]
    assert "row 1" in reader.skipped_rows[0].where


def test_bad_rows_can_be_skipped_and_are_counted_with_their_place(tmp_path):
    path = tmp_path / "mixed.jsonl"
    path.write_bytes(b"\n".join([GOOD, b"{", b'{"query": "q"}', b"7", GOOD.replace(b"1", b"2")]))
    reader = read_cases(path, on_error="skip")

    assert [case.id for case in reader] == ["1", "2"]
    assert reader.skipped == 3
    assert [row.where for row in reader.skipped_rows] == ["row 2", "row 3", "row 4"]


def peak_of(path, expected):
    """Bytes of Python's memory that refusing the file took."""
    tracemalloc.start()
    try:
        with pytest.raises(DatasetError, match=expected):
            list(read_cases(path))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_small_archive_of_a_huge_document_takes_little_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("ragaliq.datasets.rows.MAX_JSON", 1_000_000)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b" " * 50_000_000, compresslevel=1))

    assert peak_of(path, "larger than 1000000 characters.*JSON Lines") < 5_000_000


def test_a_quote_that_is_never_closed_takes_little_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("ragaliq.datasets.rows.MAX_LINE", 1_000_000)
    path = tmp_path / "open.csv"
    path.write_bytes(HEADER + b'1,"secret,x\n' + b"2,a,b\n" * 5_000_000)

    # The cell is Unicode of four bytes a character, and its buffer doubles as it grows.
    assert peak_of(path, "it is not CSV: field larger than field limit") < 20_000_000


def test_a_row_is_what_an_experiment_of_langsmith_has_in_it(tmp_path):
    path = tmp_path / "experiment.csv"
    path.write_text(
        "inputs.question,outputs.answer,outputs.documents,error,reference.answer,"
        "feedback.correct,execution_time,example_id,id\n"
        'When?,At 9.,"[""It opens at 9.""]",,At nine.,1.0,2.3,example-1,run-1\n'
    )

    [case] = read_cases(path)

    # The example is the same in the next experiment; the run is not.
    assert (case.id, case.query, case.response) == ("example-1", "When?", "At 9.")
    assert [str(chunk) for chunk in case.context] == ["It opens at 9."]
    assert case.expected_answer == "At nine."
    assert case.metadata["feedback.correct"] == "1.0"


@pytest.mark.parametrize(("rows", "is_said"), [("q,c,a\nq,c\n", True), ("q,c\nq,c,a\n", False)])
def test_a_bad_row_among_good_ones_is_named_with_the_option_that_skips_it(tmp_path, rows, is_said):
    path = tmp_path / "cases.csv"
    path.write_text(f"question,context,answer\n{rows}")

    with pytest.raises(DatasetError, match="it has 2 cells, the header 3") as refused:
        list(read_cases(path))

    assert ("--skip-bad-rows" in str(refused.value)) is is_said


# By name of a file: its text, and what its one case has.
ODD = {
    "a carriage return inside a line.jsonl": (
        '{"query":"a",\r"response":"x"}\n',
        {"query": "a", "response": "x"},
    ),
    "formulas.csv": (
        'query,response\n"=HYPERLINK(""x"")",@cmd\n',
        {"query": '=HYPERLINK("x")', "response": "@cmd"},
    ),
    "nothing as pandas writes it.jsonl": (
        (
            '{"user_input": "q", "response": "r", "retrieved_contexts": ["a"], "rubrics": null, '
            '"reference_contexts": ["b"], "reference": NaN, "faithfulness": NaN}'
        ),
        {"expected_answer": None, "context": ["a"], "metadata": {"reference_contexts": ["b"]}},
    ),
    "columns of one name as pandas tells them apart.csv": (
        "query,response,context,context.1,context.2\nq,r,a,b,c\n",
        {"context": ["a", "b", "c"]},
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_what_only_looks_malformed_is_read(tmp_path, name):
    text, found = ODD[name]
    (tmp_path / name).write_text(text)
    [case] = read_cases(tmp_path / name)
    assert {field: getattr(case, field) for field in found} == found
