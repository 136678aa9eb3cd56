"""Chains written with `|`: whatever the plumbing, the question, the contexts and the answer."""

from operator import itemgetter

import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough, chain
from rag_parts import (
    ANSWER,
    PROMPT,
    QUESTION,
    REFUNDS,
    SHIPPING,
    FixedRetriever,
    documents,
    joined,
    model,
    rag_chain,
)

EXPECTED = (QUESTION, REFUNDS, ANSWER)


@pytest.mark.parametrize("key", ["question", "query", "input", "user_input", "anything_else"])
def test_a_dictionary_input_with_an_itemgetter(watch, invoke, key):
    sources = {
        "context": itemgetter(key) | FixedRetriever() | joined,
        "question": itemgetter(key),
    }
    invoke(sources | PROMPT | model() | StrOutputParser(), {key: QUESTION}, watch.config)
    assert watch.only == EXPECTED


def test_only_the_answer_picked_from_an_assigned_dictionary(watch, invoke):
    assigned = RunnablePassthrough.assign(
        context=itemgetter("question") | FixedRetriever() | joined
    ).assign(answer=PROMPT | model() | StrOutputParser())
    assert invoke(assigned.pick("answer"), {"question": QUESTION}, watch.config) == ANSWER
    assert watch.only == EXPECTED


def test_contexts_returned_as_texts_beside_the_answer(watch, invoke):
    def answer(question):
        return {"question": question, "contexts": REFUNDS, "answer": ANSWER}

    invoke(RunnableLambda(answer), QUESTION, watch.config)
    assert watch.only == EXPECTED


def test_an_empty_list_beside_the_documents_does_not_hide_them(watch, invoke):
    def answer(question):
        return {"context": [], "source_documents": documents(), "answer": ANSWER}

    invoke(RunnableLambda(answer), QUESTION, watch.config)
    assert watch.only == EXPECTED


def test_a_decorated_function_that_calls_retriever_and_model_itself(watch, invoke):
    @chain
    def answer(question):
        docs = FixedRetriever().invoke(question)
        return (PROMPT | model()).invoke({"context": joined(docs), "question": question}).text

    invoke(answer, QUESTION, watch.config)
    assert watch.only == EXPECTED


def test_a_chain_inside_another_is_one_run(watch, invoke):
    inner = rag_chain()
    outer = (
        {"question": itemgetter("q")}
        | RunnableLambda(itemgetter("question"))
        | inner
        | RunnableLambda(lambda text: {"final": text.upper()})
    )
    assert invoke(outer, {"q": QUESTION}, watch.config) == {"final": ANSWER.upper()}
    assert watch.stats.started == 1
    assert watch.only.question == QUESTION
    assert watch.only.contexts == REFUNDS


def test_a_chain_without_retrieval_has_no_context_and_is_counted_so(new_watch, invoke):
    watch = new_watch(evaluators=["faithfulness"])
    invoke(ChatPromptTemplate.from_template("{question}") | model(), QUESTION, watch.config)
    assert watch.only == (QUESTION, [], ANSWER)
    assert watch.stats.outcomes == {"no_context": 1}


def test_a_retrieval_that_finds_nothing_has_no_context(new_watch, invoke):
    watch = new_watch(evaluators=["faithfulness"])
    invoke(rag_chain(FixedRetriever(texts=[])), QUESTION, watch.config)
    assert watch.only == (QUESTION, [], ANSWER)
    assert watch.stats.outcomes == {"no_context": 1}


def test_an_empty_question_and_an_empty_answer_are_counted_and_not_judged(watch, invoke):
    invoke(rag_chain(), "  ", watch.config)
    invoke(rag_chain(llm=model("")), QUESTION, watch.config)
    assert watch.incomplete == {"no_question": 1, "no_answer": 1}


def test_a_chain_that_ends_in_a_prompt_has_not_answered(watch, invoke):
    sources = {"context": FixedRetriever() | joined, "question": RunnablePassthrough()}
    invoke(sources | PROMPT, QUESTION, watch.config)
    assert watch.incomplete == {"no_answer": 1}


def test_a_chain_that_returns_documents_has_not_answered(watch, invoke):
    rewriting = model("refund duration") | StrOutputParser() | FixedRetriever()
    invoke(rewriting, QUESTION, watch.config)
    assert watch.incomplete == {"no_answer": 1}


def test_documents_are_taken_as_they_were_when_retrieved(watch, invoke):
    found = []

    def keep(docs):
        found.extend(docs)
        return joined(docs)

    def cut(message):
        for doc in found:
            doc.page_content = doc.page_content[:3]
        return message

    sources = {"context": FixedRetriever() | keep, "question": RunnablePassthrough()}
    invoke(sources | PROMPT | model() | cut, QUESTION, watch.config)
    assert watch.only == EXPECTED


def test_document_ids_become_chunk_ids(watch, invoke):
    invoke(rag_chain(FixedRetriever(prefix="doc-")), QUESTION, watch.config)
    assert watch.only == EXPECTED
    assert watch.results[0].case.chunk_ids == ["doc-0", "doc-1"]


def test_pieces_of_one_document_that_share_its_id_are_kept_apart(watch, invoke):
    def shared(_):
        docs = documents(REFUNDS + SHIPPING)
        for doc in docs:
            doc.id = "handbook"
        return docs

    invoke(rag_chain(RunnableLambda(shared)), QUESTION, watch.config)
    assert watch.only.contexts == REFUNDS + SHIPPING
    assert watch.results[0].case.chunk_ids == [0, 1, 2, 3]


def test_the_runs_name_and_its_conversation_are_known(watch, invoke):
    config = {**watch.config, "run_name": "support", "metadata": {"session_id": "s-1"}}
    invoke(rag_chain(), QUESTION, config)
    assert watch.only == EXPECTED
    run = watch.results[0].run
    assert (run.pipeline, run.session_id, run.framework) == ("support", "s-1", "langchain")


def test_a_pipeline_name_given_to_the_handler_wins(new_watch, invoke):
    watch = new_watch(handler={"pipeline": "helpdesk"})
    invoke(rag_chain().with_config(run_name="rag"), QUESTION, watch.config)
    assert watch.only == EXPECTED
    assert watch.results[0].pipeline == "helpdesk"
