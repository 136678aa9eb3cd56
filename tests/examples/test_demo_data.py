"""The handbook and the questions: well-formed, found by the retrievers, told apart by kind."""

import pytest

from handbook.corpus import load_chunks
from handbook.questions import load_questions
from handbook.session import load_handbook

QUESTIONS = load_questions()
CHUNKS = {chunk.id: chunk for chunk in load_chunks()}
ANSWERED = [item for item in QUESTIONS if item.sources]


def by_id(item):
    return item.id


@pytest.fixture(scope="module")
def handbook():
    return load_handbook(QUESTIONS)


def test_answers_the_judge_gets_wrong_are_labelled_in_both_directions():
    labelled = [item for item in QUESTIONS if item.kind == "judge_gets_wrong"]
    assert {item.grounded for item in labelled} == {True, False}
    assert all(item.note.startswith("Shown on purpose:") for item in labelled)


@pytest.mark.parametrize("item", QUESTIONS, ids=by_id)
def test_sources_are_sections_that_exist(item):
    assert set(item.sources) <= set(CHUNKS)
    assert bool(item.sources) == (item.grounded is not None)


@pytest.mark.parametrize("item", ANSWERED, ids=by_id)
def test_langchain_retriever_finds_the_sections_that_answer(item, handbook):
    pytest.importorskip("langchain_ragaliq")
    from langchain_core.vectorstores import InMemoryVectorStore

    from langchain_demo import HashedWordsEmbeddings, _document

    store = InMemoryVectorStore(HashedWordsEmbeddings(handbook.words))
    store.add_documents([_document(chunk) for chunk in handbook.chunks])
    found = store.similarity_search(item.question, k=handbook.top_k)
    assert set(item.sources) <= {document.id for document in found}


@pytest.mark.parametrize("item", ANSWERED, ids=by_id)
def test_llama_index_retriever_finds_the_sections_that_answer(item, handbook):
    from llama_index_demo import build_engine

    response = build_engine(handbook).query(item.question)
    assert set(item.sources) <= {node.node_id for node in response.source_nodes}
    assert str(response) == item.answer
