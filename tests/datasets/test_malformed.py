"""Files that are wrong in every way files are wrong."""

from __future__ import annotations

import gzip
import json

import pytest

from ragaliq.datasets import read_cases
from ragaliq.errors import DatasetError

GOOD = json.dumps({"id": 1, "query": "secret", "response": "secret"}).encode()
HEADER = b"id,query,response\n"

MALFORMED = {
    "empty.jsonl": (b"", "there are no rows"),
    "blank.jsonl": (b"\n \n\n", "there are no rows"),
    "empty.json": (b"", "there are no rows"),
    "empty-list.json": (b"[]", "there are no rows"),
    "empty.csv": (b"", "there are no rows"),
    "header-only.csv": (HEADER, "there are no rows"),
    "empty.yaml": (b"", "there are no rows"),
    "latin1.jsonl": (b'{"query": "caf\xe9"}', "line 1: byte 0xe9 in column 15 is not UTF-8"),
    "latin1.csv": (HEADER + b"1,caf\xe9,x\n", "line 2: byte 0xe9 in column 6 is not"),
    "latin1.json": (b'[\n{"query": "caf\xe9"}]', "line 2: byte 0xe9 is not UTF-8"),
    "latin1.yaml": (b"- query: caf\xe9\n", "line 1: byte 0xe9 is not UTF-8"),
    "utf16.jsonl": (GOOD.decode().encode("utf-16"), "written in UTF-16; save it as UTF-8"),
    "utf32.csv": ("id,query".encode("utf-32"), "written in UTF-32; save it as UTF-8"),
    "cut.jsonl": (GOOD + b"\n" + GOOD[:20], "line 2: it is not JSON"),
    "cut.json": (b"[" + GOOD + b",", "line 1: it is not JSON"),
    "lines.json": (GOOD + b"\n" + GOOD, "end its name in .jsonl"),
    "number.json": (b"7", "holds a int, not a list of objects"),
    "object.json": (GOOD, "the file holds one object"),
    "list-of-texts.json": (b'["secret"]', "record 1: it is a str, not an object"),
    "list.jsonl": (b'["secret"]', "line 1: it holds a list, not an object"),
    "null.jsonl": (b"null", "line 1: it holds a NoneType, not an object"),
    "deep.jsonl": (b"[" * 100_000, "line 1: it is nested too deeply"),
    "digits.jsonl": (b'{"id": ' + b"9" * 6000 + b"}", "line 1: it is not JSON that can be read"),
    "no-query.jsonl": (b'{"response": "secret"}', "line 1: no query was found"),
    "null-query.jsonl": (b'{"query": null, "response": "x"}', "line 1: no query was found"),
    "query-object.jsonl": (
        b'{"query": {"secret": 1}, "response": "x"}',
        "line 1: field 'query' must be a text, not an object",
    ),
    "nested-null.jsonl": (
        b'{"query": "q", "response": "x", "context": [null]}',
        "line 1: field 'context[0]' must be a text, not empty",
    ),
    "chunk-without-text.jsonl": (
        b'{"query": "q", "response": "x", "context": [{"secret": 1}]}',
        "line 1: context[0] has no text",
    ),
    "chunk-ids.jsonl": (
        b'{"query": "q", "answer": "x", "docs": [{"text": "", "id": 1}, {"text": "b", "id": 1}]}',
        "two context chunks have the id 1",
    ),
    "tags.jsonl": (
        b'{"query": "q", "response": "x", "tags": {"a": 1}}',
        "line 1: field 'tags[0]' must be a text, not an object",
    ),
    "metadata.jsonl": (
        b'{"query": "q", "response": "x", "metadata": [1]}',
        "line 1: field 'metadata' must be an object, not a list",
    ),
    "same-id.jsonl": (GOOD + b"\n" + GOOD, "line 2: its id is also that of line 1"),
    "few-cells.csv": (HEADER + b"1,secret\n", "line 2: it has 2 cells, the header 3"),
    "many-cells.csv": (HEADER + b"1,secret,a,b\n", "line 2: it has 4 cells, the header 3"),
    "open-quote.csv": (HEADER + b'1,"secret,x\n', "it is not CSV"),
    "same-column.csv": (b"id,query,query\n1,a,b\n", "line 1: two columns are called 'query'"),
    "no-names.csv": (b",,\n1,2,3\n", "line 1: the header is empty"),
    "no-header.csv": (b"1,secret,x\n2,b,y\n", "none of its 3 columns has a known name"),
    "tag.yaml": (b"- query: !!python/object/apply:os.system [ls]\n", "tags (!name) are not read"),
    "alias.yaml": (
        b"- &a {query: secret}\n- *a\n",
        "line 2: it is not YAML that can be read: alia",
    ),
    "twice.yaml": (b"- {query: a, query: b}\n", "line 1: it is not YAML that can be read: a key"),
    "tab.yaml": (b"-\tquery: a\n\tb: c\n", "it is not YAML"),
    "control.yaml": (b"- query: \x07\n", "it is not YAML"),
    "scalar.yaml": (b"secret", "holds a str, not a list of objects"),
    "text.parquet": (b"secret", "no Parquet file"),
    "cut.jsonl.gz": (gzip.compress(GOOD)[:-9], "no complete gzip file"),
    "plain.jsonl.gz": (GOOD, "no complete gzip file"),
    "unknown.txt": (GOOD, "the name does not tell the format"),
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


def test_a_huge_line_is_refused_and_the_next_one_read(tmp_path, monkeypatch):
    monkeypatch.setattr("ragaliq.datasets.rows.MAX_LINE_BYTES", 100)
    path = tmp_path / "huge.jsonl"
    path.write_bytes(b'{"query": "' + b"x" * 1000 + b'"}\n' + GOOD + b"\n")
    reader = read_cases(path, on_error="skip")

    assert [case.id for case in reader] == ["1"]
    assert "line 1" in reader.skipped_rows[0].where


def test_bad_rows_can_be_skipped_and_are_counted_with_their_place(tmp_path):
    path = tmp_path / "mixed.jsonl"
    path.write_bytes(b"\n".join([GOOD, b"{", b'{"query": "q"}', b"7", GOOD.replace(b"1", b"2")]))
    reader = read_cases(path, on_error="skip")

    assert [case.id for case in reader] == ["1", "2"]
    assert reader.skipped == 3
    assert [row.where for row in reader.skipped_rows] == ["line 2", "line 3", "line 4"]


def test_a_formula_in_a_cell_is_read_as_the_text_it_is(tmp_path):
    path = tmp_path / "formulas.csv"
    path.write_bytes(HEADER + b'1,"=HYPERLINK(""x"")",@cmd\n')

    [case] = read_cases(path)

    assert (case.query, case.response) == ('=HYPERLINK("x")', "@cmd")
