"""The handbook and the questions: well-formed, found by the retrievers, told apart by kind."""

import re
from typing import get_args

import pytest

from handbook.corpus import CORPUS, load_chunks
from handbook.embedding import HashedWords
from handbook.errors import DemoError
from handbook.playback import Playback
from handbook.questions import Kind, load_questions
from handbook.session import load_handbook

QUESTIONS = load_questions()
CHUNKS = {chunk.id: chunk for chunk in load_chunks()}
ANSWERED = [item for item in QUESTIONS if item.sources]


def by_id(item):
    return item.id


@pytest.fixture(scope="module")
def handbook():
    return load_handbook(QUESTIONS)


def test_the_corpus_has_ten_to_fourteen_documents_of_readable_length():
    lengths = {path.name: len(path.read_text(encoding="utf-8").split()) for path in documents()}
    assert 10 <= len(lengths) <= 14
    assert {name: words for name, words in lengths.items() if not 150 <= words <= 300} == {}


def test_every_document_holds_figures():
    assert all(len(re.findall(r"\d+", path.read_text())) > 5 for path in documents())


def test_chunk_ids_are_unique_and_name_document_and_section():
    chunks = load_chunks()
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    assert all(chunk.id.startswith(f"{chunk.document}/") for chunk in chunks)


def test_a_folder_without_documents_is_reported(tmp_path):
    with pytest.raises(DemoError, match="no documents"):
        load_chunks(tmp_path)


def test_a_document_without_sections_is_reported_by_name(tmp_path):
    (tmp_path / "flat.md").write_text("# Title\nText.")
    with pytest.raises(DemoError, match=r"flat\.md has no section"):
        load_chunks(tmp_path)


def test_there_are_about_a_dozen_questions_with_unique_ids_and_texts():
    assert 10 <= len(QUESTIONS) <= 14
    assert len({item.id for item in QUESTIONS}) == len(QUESTIONS)
    assert len({item.question for item in QUESTIONS}) == len(QUESTIONS)


def test_every_kind_of_answer_is_present():
    assert {item.kind for item in QUESTIONS} == set(get_args(Kind))


def test_answers_the_judge_gets_wrong_are_labelled_in_both_directions():
    labelled = [item for item in QUESTIONS if item.kind == "judge_gets_wrong"]
    assert {item.grounded for item in labelled} == {True, False}
    assert all(item.note.startswith("Shown on purpose:") for item in labelled)


@pytest.mark.parametrize("item", QUESTIONS, ids=by_id)
def test_the_reader_label_fits_the_kind(item):
    if item.kind != "judge_gets_wrong":
        expected = {"faithful": True, "refusal": None, "no_claims": None}.get(item.kind, False)
        assert item.grounded is expected


@pytest.mark.parametrize("item", QUESTIONS, ids=by_id)
def test_sources_are_sections_that_exist(item):
    assert set(item.sources) <= set(CHUNKS)
    assert bool(item.sources) == (item.grounded is not None)


def test_a_missing_question_file_is_reported(tmp_path):
    with pytest.raises(DemoError, match=r"cannot read none\.json"):
        load_questions(tmp_path / "none.json")


def test_a_malformed_question_file_is_reported_with_the_place(tmp_path):
    path = tmp_path / "questions.json"
    path.write_text('{"about": "", "questions": [{"id": 1}]}')
    with pytest.raises(DemoError, match=r"questions\.json is malformed at questions\.0"):
        load_questions(path)


def test_embeddings_have_length_one_and_texts_without_words_are_all_zero():
    words = HashedWords(["the red bike", "the blue bike"])
    assert sum(value * value for value in words.embed("red bike")) == pytest.approx(1.0)
    assert set(words.embed("?!")) == {0.0}


def test_the_embedding_is_the_same_in_every_process():
    vector = HashedWords(["red bike"]).embed("red bike")
    assert [i for i, value in enumerate(vector) if value] == [235, 478]


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


@pytest.mark.parametrize("item", QUESTIONS, ids=by_id)
def test_langchain_chain_plays_back_the_recorded_answer(item, handbook):
    from langchain_demo import build_chain

    assert build_chain(handbook).invoke(item.question) == item.answer


def test_a_prompt_without_a_recorded_question_is_an_error():
    with pytest.raises(DemoError, match="no recorded answer"):
        Playback(QUESTIONS).answer("What is the capital of France?")


def test_a_question_that_begins_like_a_longer_one_gets_its_own_answer():
    short = QUESTIONS[0].model_copy(update={"question": "Why", "answer": "short"})
    long = QUESTIONS[0].model_copy(update={"question": "Why not", "answer": "long"})
    assert Playback([short, long]).answer("Q: Why not?") == "long"
    assert Playback([short, long]).answer("Q: Why?") == "short"


def documents():
    return sorted(CORPUS.glob("*.md"))
