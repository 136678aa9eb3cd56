import re

import pytest
from pydantic import ValidationError

from ragaliq import ContextChunk, RAGTestCase


class FrameworkText(str):
    """As LangChain gives a message's text."""

    __slots__ = ()


def test_half_a_surrogate_pair_in_a_frameworks_own_text_is_taken_as_in_any_other():
    text = FrameworkText("Five days \ud83d.")
    chunks = [text, ContextChunk(text=text)]
    case = RAGTestCase(query=text, context=chunks, response=text)
    assert {type(each) for each in (case.query, case.response, *case.context_texts)} == {str}


def test_plain_strings_are_known_by_their_position_and_chunks_by_their_own_ids():
    case = RAGTestCase(query="q", context=["a", ContextChunk(text="b", id="doc-7")], response="r")
    assert (case.context_texts, case.chunk_ids) == (["a", "b"], [0, "doc-7"])
    with pytest.raises(ValidationError, match="frozen"):
        case.response = "other"


@pytest.mark.parametrize(
    ("values", "given", "error", "message"),
    [
        (
            (),
            {"question": "q", "contexts": ["a"], "answer": "r"},
            TypeError,
            "write query= for question=, context= for contexts=, response= for answer=",
        ),
        (("q", ["a"], "r"), {}, TypeError, "name each value: query=, context=, response="),
        ((), {"query": "q", "context": "a", "response": "r"}, TypeError, "must be a list; for one"),
        (
            (),
            {"query": "q", "context": ["a", None], "response": "r"},
            ValidationError,
            "context.1\n  a chunk must be a text, such as document.page_content, or a ContextChunk",
        ),
    ],
    ids=["names of other tools", "no names", "a text as context", "no text"],
)
def test_a_case_that_is_written_wrong_is_refused_with_what_to_write(values, given, error, message):
    with pytest.raises(error, match=re.escape(message)):
        RAGTestCase(*values, **given)


def test_ids_are_given_when_missing_and_kept_when_not():
    assert RAGTestCase(query="q", response="r").id != RAGTestCase(query="q", response="r").id
    assert RAGTestCase(id="7", query="q", response="r").id == "7"


@pytest.mark.parametrize(("context", "there"), [([], False), ([" \n"], False), (["", "x"], True)])
def test_blank_chunks_are_no_context(context, there):
    assert RAGTestCase(query="q", context=context, response="r").has_context is there


def test_a_case_survives_json():
    case = RAGTestCase(
        query="q", context=["a", ContextChunk(text="b", id="i", score=0.5)], response="r"
    )
    assert RAGTestCase.model_validate_json(case.model_dump_json()) == case


def test_a_changed_copy_has_its_own_chunks():
    case = RAGTestCase(query="q", context=["a"], response="r")
    assert case.context_texts == ["a"]
    copy = case.model_copy(update={"context": ["b", ContextChunk(text="c", id="doc")]})
    assert (copy.context_texts, copy.chunk_ids) == (["b", "c"], [0, "doc"])


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"response": None}, "response"),
        ({"context": [ContextChunk(text="Zanzibar", id="x7")] * 2}, "'x7'"),
        ({"context": ["Zanzibar", 5]}, "context.1"),
        ({"questoin": "Zanzibar"}, "questoin"),
        ({"context": [{"text": "Zanzibar", "id": ["Zanzibar"]}]}, "context.0"),
    ],
)
def test_an_error_names_the_field_and_quotes_nothing(wrong, named):
    fields = {"query": "Where is Zanzibar?", "response": "Zanzibar is far."} | wrong
    with pytest.raises(ValidationError, match=named) as caught:
        RAGTestCase(**fields)
    assert "Zanzibar" not in str(caught.value)
