"""Field names of other tools."""

import pytest

from ragaliq.core.test_case import FIELDS, Turn
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
        "outputs.documents": '["C"]',
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


QA = {"query": "Q", "response": "A"}
JSON = '{"city": "Paris", "title": "Capital"}'
# By behaviour: a row, the fields that are named, and what its case has.
READ = {
    "a user's own names win": (
        {"frage": "Q", "question": "not this", "antwort": {"x": 1}, "answer": "A"},
        {"query": "frage"},
        QA | {"metadata": {"question": "not this", "antwort": {"x": 1}}},
    ),
    "a named column may be nested and empty": (
        QA | {"inputs": {"ctx": None}},
        {"context": "inputs.ctx"},
        {"context": []},
    ),
    "an answer that is JSON is the answer": (
        {"input": '{"n": 1}', "output": JSON, "contexts": ["C"]},
        {},
        {"query": '{"n": 1}', "response": JSON},
    ),
    "two columns that say the same are one": (
        {"input": "Q", "question": "Q", "answer": "A"},
        {},
        QA,
    ),
    "what is no field travels as metadata": (
        QA | {"model": "m", "metadata": {"lang": "en"}, "empty": None},
        {},
        {"metadata": {"model": "m", "lang": "en"}},
    ),
    "several reference answers are facts": (
        QA | {"ground_truths": ["one", "two"]},
        {},
        {"expected_answer": None, "expected_facts": ["one", "two"]},
    ),
    **{
        f"a run of LangSmith that failed has a blank answer, {outputs!r}": (
            {"inputs": {"question": "Q"}, "outputs": outputs, "error": "Timeout"},
            {},
            {"query": "Q", "response": ""},
        )
        for outputs in (None, {}, "", "{}")
    },
    **{
        f"a blank cell is an empty text, {blank!r}": (
            {"query": blank, "response": blank, "expected_answer": blank},
            {},
            {"query": "", "response": "", "expected_answer": None},
        )
        for blank in (None, "", float("nan"), "nan", "NaN", "<NA>")
    },
}


@pytest.mark.parametrize(("row", "fields", "found"), READ.values(), ids=READ)
def test_a_row_is_read_as_it_is_meant(cases_of, row, fields, found):
    [case] = cases_of(row, fields=fields)
    assert {name: getattr(case, name) for name in found} == found


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


@pytest.mark.parametrize("score", ["high", [1], float("nan"), 10**400])
def test_a_chunks_score_that_is_no_number_of_use_is_none(cases_of, score):
    chunk = {"text": "C", "score": score}
    [case] = cases_of({"query": "Q", "response": "A", "context": [chunk]})

    assert case.context[0].score is None


def test_rows_without_an_id_are_named_after_their_number(cases_of):
    row = {"query": "Q", "response": "A"}

    assert [case.id for case in cases_of(row, row | {"id": 7}, row)] == ["row 1", "7", "row 3"]


def test_a_row_keeps_its_number_whatever_lines_it_takes(tmp_path):
    path = tmp_path / "cases.csv"
    path.write_text('query,response\n"When?\nToday?",At 9.\n\n,\nWho?,Ann\nWhy?\n')
    reader = read_cases(path, on_error="skip")

    assert [case.id for case in reader] == ["row 1", "row 3"]
    assert [row.where for row in reader.skipped_rows] == ["row 4 (line 7)"]


@pytest.mark.parametrize(
    ("written", "named"),
    [("cp1252", "cp1252"), ("utf-16", "utf-16"), ("utf-8-sig", None)],
)
@pytest.mark.parametrize("name", ["cases.csv", "cases.jsonl"])
def test_another_encoding_is_read_where_it_is_named(tmp_path, name, written, named):
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


CTX = {"query": "secret", "response": "secret"}
NO_TEXT = "row 2: field 'context' must be a text or a list of them, not of type "
# What is wrong: the rows, the fields that are named, and what is said.
REFUSED = [
    (
        [{"question": "Q", "input": "secret", "answer": "A"}],
        {},
        "'question' and 'input' both look",
    ),
    (
        [{"question": "Q", "reply": "x"}],
        {},
        "no response and no context were found; the columns are 'question', 'reply'; say",
    ),
    ([{"q": "Q", "context": "C"}], {}, "--field query=COLUMN --field response=COLUMN (in Python"),
    ([{"q": "Q", "a": "secret"}], {}, "the columns are 'q', 'a'; say where they are"),
    (
        [{"What is it?": "Q", "It is a secret.": "A"}],  # a table without a header
        {},
        "none of its 2 columns has a known name; say where they are",
    ),
    (
        [{"questions": "Q", "antworten": "A", "contextes": "C"}],
        {},
        "--field query=COLUMN --field response=COLUMN --field context=COLUMN (in Python",
    ),
    (
        [{"Frage": "Q", "answer": "A", "context": "C"}],
        {"query": "frage"},
        "'Frage', 'answer', 'context', no column is called 'frage' (--field query=frage)",
    ),
    (
        [CTX | {"context": ["C"]}, CTX | {"context": ["C"], "note": 1}],
        {"context": "ctx"},
        "no row has 'ctx', which was named as the context; the rows have",
    ),
    *(
        ([CTX | {"contexts": ["fine"]}, CTX | {"contexts": value}], {}, f"{NO_TEXT}{kind}")
        for value, kind in ((42, "int"), (True, "bool"), (0.5, "float"))
    ),
    ([{}], {"querry": "x"}, "no field 'querry'"),
    *(
        ([{"q": "Q", "answer": "A"}], {field: "q"}, "did you mean 'query'")
        for field in ("qurey", "question", "prompt")
    ),
]


@pytest.mark.parametrize(("rows", "fields", "says"), REFUSED)
def test_a_column_that_is_wrong_or_missing_is_named_and_not_quoted(cases_of, rows, fields, says):
    with pytest.raises((DatasetError, ConfigurationError)) as refused:
        cases_of(*rows, fields=fields)
    assert says in str(refused.value)
    assert "secret" not in str(refused.value)


def test_every_field_of_a_case_is_read_from_a_row(cases_of):
    texts = ("id", "name", "query", "response", "prompt_context", "expected_answer")
    row = {field: f"a {field}" for field in texts} | {"metadata": {"page": 1}}
    row |= {field: [f"a {field}"] for field in ("context", "expected_facts", "tags")}
    row["history"] = [{"role": "user", "text": "Before?"}]
    assert row.keys() == FIELDS.keys()

    (case,) = cases_of(row)

    assert {field: getattr(case, field) for field in FIELDS} == row | {
        "history": [Turn(role="user", text="Before?")]
    }


def test_a_named_column_that_one_row_has_is_enough_and_none_is_an_error_of_no_row(cases_of):
    cases = cases_of(QA, QA | {"ctx": ["C"]}, fields={"context": "ctx"})
    assert [case.context_texts for case in cases] == [[], ["C"]]
    with pytest.raises(DatasetError, match="no row has 'ctx'"):
        cases_of(QA, fields={"context": "ctx"}, on_error="skip")


def test_a_table_without_a_header_is_not_quoted(tmp_path):
    path = tmp_path / "bare.csv"
    path.write_text("secret,text\nother,row\n")
    with pytest.raises(DatasetError) as refused:
        list(read_cases(path, fields={"context": "ctx"}, on_error="skip"))
    assert "the rows have 2 columns, none under a known name" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_files_of_one_name_in_two_folders_are_told_apart_by_their_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("may", "june"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "cases.csv").write_text("query,response\nWho?,Ann\n")

    ids = [case.id for case in read_cases("may/cases.csv", "june/cases.csv")]

    assert ids == ["may/cases.csv row 1", "june/cases.csv row 1"]
