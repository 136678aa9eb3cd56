"""The names by which traces are read are those by which the handlers read the objects."""

from __future__ import annotations

from langchain_ragaliq import documents as live_documents
from langchain_ragaliq import extract as live_shapes
from ragaliq.traces import documents, shapes


def test_documents():
    assert documents.DOCUMENT_KEYS == live_documents.DOCUMENT_KEYS
    assert documents.TEXT_KEYS == live_documents.TEXT_KEYS
    assert documents.SCORE_KEYS == live_documents.SCORE_KEYS


def test_answers():
    assert shapes.ANSWER_KEYS == live_shapes.ANSWER_KEYS


def test_questions():
    """Those of LlamaIndex's methods come after LangChain's."""
    live = live_shapes.QUESTION_KEYS
    assert shapes.QUESTION_KEYS[: len(live)] == live
