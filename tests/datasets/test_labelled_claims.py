"""Labelled claims from files."""

import gzip
import json

import pytest

from ragaliq import DatasetError
from ragaliq.datasets import read_labelled_claims

ROW = {"claim": "It opens at 9.", "context": ["The shop opens at 9."], "label": 1}


def written(tmp_path, *rows, name="claims.jsonl"):
    path = tmp_path / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("label", "is_supported", "verdict"),
    [
        (1, True, "SUPPORTED"),
        (True, True, "SUPPORTED"),
        ("1", True, "SUPPORTED"),
        ("supported", True, "SUPPORTED"),
        (0, False, None),
        ("false", False, None),
        ("CONTRADICTED", False, "CONTRADICTED"),
        ("REFUTES", False, "CONTRADICTED"),
        ("NOT_ENOUGH_INFO", False, "NOT_ENOUGH_INFO"),
        ("not enough info", False, "NOT_ENOUGH_INFO"),
    ],
)
def test_labels_are_read_as_people_write_them(tmp_path, label, is_supported, verdict):
    [claim] = read_labelled_claims(written(tmp_path, ROW | {"label": label}))
    assert (claim.is_supported, claim.verdict) == (is_supported, verdict)


def test_all_fields_are_read_and_extra_columns_passed_over(tmp_path):
    row = ROW | {"id": "a", "question": "When?", "group": "shops", "annotator": "x"}
    [claim] = read_labelled_claims(written(tmp_path, row))
    assert (claim.id, claim.claim, claim.context) == ("a", ROW["claim"], tuple(ROW["context"]))
    assert (claim.question, claim.group) == ("When?", "shops")


def test_a_context_may_be_one_text_or_chunks(tmp_path):
    chunks = [{"page_content": "The shop opens at 9.", "id": 4}]
    path = written(tmp_path, ROW | {"context": "One text."}, ROW | {"context": chunks})
    one, other = read_labelled_claims(path)
    assert (one.context, other.context) == (("One text.",), ("The shop opens at 9.",))
    assert one.id == "row 1"


def test_claims_over_one_context_are_one_cluster(tmp_path):
    path = written(tmp_path, ROW, ROW | {"claim": "x"}, ROW | {"context": ["Other."]})
    a, b, c = (claim.cluster for claim in read_labelled_claims(path))
    assert a == b != c


def test_gzip_and_csv_are_read(tmp_path):
    packed = tmp_path / "claims.jsonl.gz"
    packed.write_bytes(gzip.compress(json.dumps(ROW).encode() + b"\n"))
    table = tmp_path / "claims.csv"
    table.write_text("claim,context,label\nIt opens at 9.,The shop opens at 9.,0\n")
    [one], [other] = read_labelled_claims(packed), read_labelled_claims(table)
    assert one.is_supported
    assert not other.is_supported
    assert other.context == one.context


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (ROW | {"label": "perhaps"}, "field 'label' is none of 1, 0"),
        (ROW | {"label": 0.5}, "field 'label' is none of"),
        ({"claim": "a", "label": 1}, "no context was found; name it one of"),
        ({"context": ["a"], "label": 1}, "no claim was found"),
        ({"context": ["a"], "claim": "b"}, "no label was found"),
        (ROW | {"claim": " "}, "field 'claim' is empty"),
        (ROW | {"claim": {"a": 1}}, "field 'claim' must be a text"),
        (ROW | {"context": [3, None]}, r"field 'context\[1\]' must be a text"),
        (ROW | {"id": "same"}, "its id is also that of row 1"),
    ],
)
def test_a_bad_row_is_named_with_file_row_and_field_but_not_quoted(tmp_path, row, problem):
    path = written(tmp_path, ROW | {"id": "same"}, row)
    with pytest.raises(DatasetError, match=problem) as raised:
        list(read_labelled_claims(path))
    assert str(raised.value).startswith(f"{path}, row 2: ")
    assert "perhaps" not in str(raised.value)


def test_a_file_that_is_missing_or_empty_is_refused(tmp_path):
    with pytest.raises(DatasetError, match="no such file"):
        list(read_labelled_claims(tmp_path / "missing.jsonl"))
    with pytest.raises(DatasetError, match="is a folder; name a file in it"):
        list(read_labelled_claims(tmp_path))
    with pytest.raises(DatasetError, match="no rows"):
        list(read_labelled_claims(written(tmp_path)))
    with pytest.raises(DatasetError, match="does not tell the format"):
        list(read_labelled_claims(written(tmp_path, ROW, name="claims.txt")))
