"""Field names of other tools."""

from __future__ import annotations

import pytest

from ragaliq.datasets import read_cases
from ragaliq.errors import ConfigurationError, DatasetError

ROWS = {
    "ragaliq": {"query": "Q", "context": ["C"], "response": "A", "expected_answer": "E"},
    "ragas": {"user_input": "Q", "retrieved_contexts": ["C"], "response": "A", "reference": "E"},
    "ragas 0.1": {"question": "Q", "contexts": ["C"], "answer": "A", "ground_truth": "E"},
    "deepeval": {
        "input": "Q",
        "retrieval_context": ["C"],
        "context": ["ideal"],
        "actual_output": "A",
        "expected_output": "E",
    },
    "langsmith": {
        "inputs": {"question": "Q"},
        "outputs": {"answer": "A", "documents": [{"page_content": "C", "metadata": {}}]},
        "reference_outputs": {"answer": "E"},
    },
    "langsmith, as a table of JSON": {
        "Inputs": '{"question": "Q"}',
        "Outputs": '{"answer": "A", "documents": ["C"]}',
        "Reference Outputs": '{"answer": "E"}',
    },
    "langsmith, as a table of columns": {
        "inputs.question": "Q",
        "outputs.answer": "A",
        "outputs.documents": "['C']",
        "reference.answer": "E",
    },
    "one object a field": {
        "input": {"question": "Q"},
        "output": {"answer": "A", "contexts": ["C"]},
        "expected_output": {"answer": "E"},
    },
    "capitals and blanks": {"User Input": "Q", "Contexts": ["C"], "Answer": "A", "Reference": "E"},
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_the_names_of_each_tool_are_recognised(cases_of, row):
    [case] = cases_of(row)

    assert (case.query, case.response, case.expected_answer) == ("Q", "A", "E")
    assert case.context_texts == ["C"]


def test_a_users_own_names_win(cases_of):
    [case] = cases_of(
        {"frage": "Q", "question": "not this", "antwort": {"x": 1}, "answer": "A"},
        fields={"query": "frage"},
    )

    assert (case.query, case.response) == ("Q", "A")
    assert case.metadata == {"question": "not this", "antwort": {"x": 1}}


def test_an_answer_that_is_json_is_the_answer(cases_of):
    answer = '{"city": "Paris", "title": "Capital"}'
    [case] = cases_of({"input": '{"n": 1}', "output": answer, "contexts": ["C"]})

    assert (case.query, case.response) == ('{"n": 1}', answer)


def test_two_columns_for_one_field_are_refused_by_name(cases_of):
    with pytest.raises(DatasetError, match=r"row 1: 'question' and 'input' both look like"):
        cases_of({"question": "Q", "input": "secret", "answer": "A"})


def test_two_columns_that_say_the_same_are_one(cases_of):
    assert cases_of({"question": "Q", "input": "Q", "answer": "A"})[0].query == "Q"


def test_a_missing_field_is_named_with_what_the_row_has(cases_of):
    with pytest.raises(DatasetError) as refused:
        cases_of({"question": "secret", "reply": "x"})

    assert "no response was found; the row has 'question', 'reply'" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_an_unknown_field_in_the_mapping_is_refused(cases_of):
    with pytest.raises(ConfigurationError, match="no field 'querry'"):
        cases_of({}, fields={"querry": "x"})


def test_what_is_no_field_travels_as_metadata(cases_of):
    [case] = cases_of(
        {"query": "Q", "response": "A", "model": "m", "metadata": {"lang": "en"}, "empty": None}
    )

    assert case.metadata == {"model": "m", "lang": "en"}


def test_chunks_keep_id_score_and_metadata(cases_of):
    [case] = cases_of(
        {
            "query": "Q",
            "response": "A",
            "context": ["plain", {"text": "rich", "id": "d7", "score": 0.5, "metadata": {"p": 2}}],
        }
    )
    chunk = case.context[1]

    assert case.chunk_ids == [0, "d7"]
    assert (chunk.score, chunk.metadata) == (0.5, {"p": 2})


def test_several_reference_answers_are_facts(cases_of):
    [case] = cases_of({"query": "Q", "response": "A", "ground_truths": ["one", "two"]})

    assert (case.expected_answer, case.expected_facts) == (None, ["one", "two"])


def test_rows_without_an_id_are_named_after_their_number(cases_of):
    row = {"query": "Q", "response": "A"}

    assert [case.id for case in cases_of(row, row | {"id": 7}, row)] == ["row 1", "7", "row 3"]


@pytest.mark.parametrize("outputs", [None, {}, "", "{}"])
def test_a_run_without_outputs_as_langsmith_writes_one_that_failed_is_a_blank_answer(
    cases_of, outputs
):
    [case] = cases_of({"inputs": {"question": "Q"}, "outputs": outputs, "error": "Timeout"})

    assert (case.query, case.response) == ("Q", "")


@pytest.mark.parametrize("blank", [None, "", float("nan"), "nan", "NaN", "<NA>"])
def test_a_blank_question_or_answer_is_an_empty_text(cases_of, blank):
    [case] = cases_of({"query": blank, "response": blank, "expected_answer": blank})

    assert (case.query, case.response, case.expected_answer) == ("", "", None)


def test_a_row_keeps_its_number_whatever_lines_it_takes(tmp_path):
    path = tmp_path / "cases.csv"
    path.write_text('query,response\n"When?\nToday?",At 9.\n\n,\nWho?,Ann\nWhy?\n')
    reader = read_cases(path, on_error="skip")

    assert [case.id for case in reader] == ["row 1", "row 3"]
    assert [row.where for row in reader.skipped_rows] == ["row 4 (line 7)"]


@pytest.mark.parametrize(
    ("written", "named"),
    [("utf-16", None), ("cp1252", "cp1252"), ("utf-16-le", None), ("utf-16-be", None)],
)
@pytest.mark.parametrize("name", ["cases.csv", "cases.jsonl"])
def test_another_encoding_is_read_where_it_is_named_or_marked(tmp_path, name, written, named):
    texts = {
        "cases.csv": "id,query,response\n1,Où?,5 €\n",
        "cases.jsonl": '{"id": 1, "query": "Où?", "response": "5 €"}\n',
    }
    path = tmp_path / name
    path.write_bytes(texts[name].encode(written))

    [case] = read_cases(path, encoding=named)

    assert (case.query, case.response) == ("Où?", "5 €")


def test_a_wrong_encoding_is_refused(tmp_path):
    path = tmp_path / "cases.csv"
    path.write_bytes(b"query,response\nO\xf9?,x\n")
    with pytest.raises(DatasetError, match="byte 0xf9 in column 2 is not ASCII"):
        list(read_cases(path, encoding="ascii"))
    with pytest.raises(ConfigurationError, match="there is no encoding 'klingon'"):
        list(read_cases(path, encoding="klingon"))


@pytest.mark.parametrize(
    ("row", "options", "says"),
    [
        ({"question": "Q", "anwser": "A"}, {}, "'anwser' ('anwser' looks like it); name it one of"),
        ({"qestion": "Q", "answer": "A"}, {}, "('qestion' looks like it)"),
        (
            {"Frage": "Q", "answer": "A"},
            {"fields": {"query": "frage"}},
            "no query was found; it has no 'frage' (did you mean 'Frage'?), which was named as",
        ),
        ({"qestion": "Q", "anwser": "A"}, {}, "a known name ('qestion' looks like it); name it"),
        (
            {"question": "Q", "answer": "A", "Kontext": "C"},
            {"fields": {"context": "kontxt"}},
            "no row has 'kontxt' (did you mean 'Kontext'?), which was named as the context",
        ),
    ],
)
def test_a_misspelt_column_is_named(cases_of, row, options, says):
    with pytest.raises(DatasetError) as refused:
        cases_of(row, **options)
    assert says in str(refused.value)


@pytest.mark.parametrize("field", ["qurey", "question", "prompt"])
def test_a_misspelt_field_and_another_word_for_it_are_named(cases_of, field):
    with pytest.raises(ConfigurationError, match="did you mean 'query'"):
        cases_of({"q": "Q", "answer": "A"}, fields={field: "q"})


def test_files_of_one_name_in_two_folders_are_told_apart_by_their_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("may", "june"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "cases.csv").write_text("query,response\nWho?,Ann\n")

    ids = [case.id for case in read_cases("may/cases.csv", "june/cases.csv")]

    assert ids == ["may/cases.csv row 1", "june/cases.csv row 1"]
