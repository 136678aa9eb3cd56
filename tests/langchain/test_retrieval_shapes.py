"""The contexts are what the answer was made from, however many steps fetched and reworked them."""

import threading

import pytest
from langchain_classic.retrievers import (
    EnsembleRetriever,
    MergerRetriever,
)
from langchain_classic.retrievers.multi_query import MultiQueryRetriever
from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from rag_parts import (
    ANSWER,
    PROMPT,
    QUESTION,
    REFUNDS,
    SHIPPING,
    FixedRetriever,
    TopicRetriever,
    documents,
    joined,
    model,
    rag_chain,
)


def best(docs):
    return docs[:1]


@pytest.fixture
def contexts(watch, invoke):
    """The contexts of one call, whose question and answer are as everywhere."""

    def call(chain, value=QUESTION):
        invoke(chain, value, watch.config)
        assert watch.only.question == QUESTION
        assert watch.only.answer == ANSWER
        return watch.only.contexts

    return call


def test_a_vector_stores_retriever_in_rank_order(contexts):
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=32))
    store.add_documents(documents(REFUNDS + SHIPPING))
    retriever = store.as_retriever(search_kwargs={"k": 3})
    ranked = [doc.page_content for doc in retriever.invoke(QUESTION)]
    assert contexts(rag_chain(retriever)) == ranked


def test_a_text_that_two_retrievers_find_counts_once(contexts):
    sources = {
        "a": FixedRetriever(),
        "b": FixedRetriever(texts=[REFUNDS[1], *SHIPPING]),
        "question": RunnablePassthrough(),
    }
    merged = RunnablePassthrough.assign(context=lambda s: joined(s["a"] + s["b"]))
    assert sorted(contexts(sources | merged | PROMPT | model())) == sorted(REFUNDS + SHIPPING)


def test_many_retrievers_that_end_at_the_same_moment_are_all_kept(watch, invoke):
    count = 5
    gate = threading.Barrier(count)

    def branch(number):
        def fetch(question):
            gate.wait(30)
            return documents([f"Part {number}."])

        return RunnableLambda(fetch)

    parts = RunnableParallel({f"part{n}": branch(n) for n in range(count)})
    config = {**watch.config, "max_concurrency": count}
    for _ in range(5):
        invoke(parts | str | model(), QUESTION, config)
    assert [sorted(t.contexts) for t in watch.triples] == [
        sorted(f"Part {n}." for n in range(count))
    ] * 5


def test_what_a_model_inside_a_retriever_writes_is_never_the_answer(watch, invoke):
    retriever = MultiQueryRetriever.from_llm(FixedRetriever(), model("first\nsecond"))
    invoke(retriever | RunnableLambda(lambda docs: {"found": len(docs)}), QUESTION, watch.config)
    assert watch.incomplete == {"no_answer": 1}


def test_a_multi_query_retriever_whose_queries_find_different_things(contexts):
    retriever = MultiQueryRetriever.from_llm(TopicRetriever(), model("first query\nsecond query"))
    assert sorted(contexts(rag_chain(retriever))) == [
        "About first query",
        "About second query",
        "Common to all.",
    ]


@pytest.mark.parametrize("kind", [EnsembleRetriever, MergerRetriever])
def test_a_retriever_of_retrievers_counts_with_its_final_list(contexts, kind):
    retriever = kind(retrievers=[FixedRetriever(), FixedRetriever(texts=SHIPPING)])
    final = [doc.page_content for doc in retriever.invoke(QUESTION)]
    assert sorted(final) == sorted(REFUNDS + SHIPPING)
    assert contexts(rag_chain(retriever)) == final


def test_one_reranker_per_list_of_documents(contexts):
    fused = (
        RunnableLambda(lambda q: [q, q + " fast"])
        | TopicRetriever().map()
        | RunnableLambda(best).map()
        | RunnableLambda(lambda lists: [doc for docs in lists for doc in docs])
    )
    assert contexts(rag_chain(fused)) == [f"About {QUESTION}", f"About {QUESTION} fast"]


def test_a_parallel_retrieval_merged_by_a_function(contexts):
    fused = RunnableParallel(a=FixedRetriever(), b=FixedRetriever(texts=SHIPPING)) | RunnableLambda(
        lambda found: [found["b"][0], found["a"][0]]
    )
    assert contexts(rag_chain(fused)) == [SHIPPING[0], REFUNDS[0]]


def test_a_function_whose_inner_retriever_finds_more_than_it_returns(contexts):
    found = RunnableLambda(lambda q: FixedRetriever().invoke(q)[:1])
    assert contexts(rag_chain(found)) == REFUNDS[:1]


def test_a_custom_event_names_the_contexts_whatever_else_was_seen(contexts, mode):
    def tell(question):
        dispatch_custom_event("ragaliq.contexts", {"contexts": list(SHIPPING)})
        dispatch_custom_event("ragaliq.contexts", [Document(page_content="Told as a document.")])
        dispatch_custom_event("something.else", {"contexts": ["not ours"]})
        return question

    async def atell(question):
        await adispatch_custom_event("ragaliq.contexts", {"contexts": list(SHIPPING)})
        await adispatch_custom_event(
            "ragaliq.contexts", [Document(page_content="Told as a document.")]
        )
        return question

    assert contexts(RunnableLambda(tell, afunc=atell) | rag_chain()) == [
        *SHIPPING,
        "Told as a document.",
    ]
