"""A context that is not where it is looked for."""

from __future__ import annotations

import pytest

from ragaliq.datasets import read_cases
from ragaliq.errors import DatasetError

ROW = {"query": "secret", "response": "secret"}


@pytest.mark.parametrize(("value", "kind"), [(42, "int"), (True, "bool"), (0.5, "float")])
def test_a_context_that_is_no_text_is_refused_with_its_place(cases_of, value, kind):
    with pytest.raises(DatasetError) as refused:
        cases_of(ROW | {"contexts": ["fine"]}, ROW | {"contexts": value})

    assert "cases.jsonl, row 2: field 'context' must be a text or a list of them" in str(
        refused.value
    )
    assert f"not of type {kind}" in str(refused.value)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_named_column_that_no_row_has_is_an_error(cases_of, on_error):
    rows = [ROW | {"context": ["C"]}, ROW | {"context": ["C"], "note": 1}]
    with pytest.raises(DatasetError) as refused:
        cases_of(*rows, fields={"context": "ctx"}, on_error=on_error)

    assert str(refused.value).endswith(
        "cases.jsonl: no row has 'ctx' (did you mean 'context'?), which was named as the context; "
        "the rows have 'query', 'response', 'context', 'note'"
    )


def test_a_named_column_that_one_row_has_is_enough(cases_of):
    cases = cases_of(ROW, ROW | {"ctx": ["C"]}, fields={"context": "ctx"})

    assert [case.context_texts for case in cases] == [[], ["C"]]


def test_a_named_column_may_be_nested_and_empty(cases_of):
    row = ROW | {"inputs": {"ctx": None}}

    assert cases_of(row, fields={"context": "inputs.ctx"})[0].context == []


def test_a_table_without_a_header_is_not_quoted(tmp_path):
    path = tmp_path / "bare.csv"
    path.write_text("secret,text\nother,row\n")
    with pytest.raises(DatasetError) as refused:
        list(read_cases(path, fields={"context": "ctx"}, on_error="skip"))

    assert "the rows have 2 columns, none under a known name" in str(refused.value)
    assert "secret" not in str(refused.value)
