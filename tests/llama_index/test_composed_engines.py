"""Query engines, those made of engines, retrievers made of retrievers: one run each."""

from functools import partial

import pytest
from llama_index.core import get_response_synthesizer
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.indices.query.query_transform.base import BaseQueryTransform
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import (
    CustomQueryEngine,
    MultiStepQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
)
from llama_index.core.retrievers import QueryFusionRetriever, RecursiveRetriever
from llama_index.core.schema import IndexNode, NodeWithScore, QueryBundle
from llama_index.core.tools import QueryEngineTool, ToolMetadata

from question_generators import OneQuestionEach

QUESTION = "How long do refunds take?"
ANSWER = "Refunds take five days."


class WithoutPrompts:
    def _get_prompts(self):
        return {}

    def _update_prompts(self, prompts):
        pass


class Choose(WithoutPrompts, BaseSelector):
    """Chooses the engines with these numbers."""

    def __init__(self, *chosen):
        self.chosen = chosen

    def _select(self, choices, query):
        return SelectorResult(
            selections=[SingleSelection(index=number, reason="") for number in self.chosen]
        )

    async def _aselect(self, choices, query):
        return self._select(choices, query)


class Rephrase(WithoutPrompts, BaseQueryTransform):
    def _run(self, query_bundle, metadata):
        return QueryBundle("a rephrased question")


@pytest.fixture
def tools(engine, retriever_class, nodes):
    """Two query engines with a document each."""

    def tool(name):
        found = nodes(f"Document on {name}.", prefix=name)
        query_engine = engine(retriever=retriever_class(lambda question: found))
        return QueryEngineTool(query_engine, metadata=ToolMetadata(description=name, name=name))

    return [tool("refunds"), tool("hours")]


def router(llm, tools):
    return RouterQueryEngine(Choose(0, 1), tools, llm=llm)


def sub_questions(llm, tools, *, use_async=False):
    synthesizer = get_response_synthesizer(llm)
    return SubQuestionQueryEngine(OneQuestionEach(), synthesizer, tools, use_async=use_async)


@pytest.mark.parametrize("make", [router, sub_questions, partial(sub_questions, use_async=True)])
def test_engines_of_engines_are_judged_by_the_documents_of_all_not_by_intermediate_answers(
    llm, tools, monitor, handler, make
):
    make(llm, tools).query(QUESTION)
    question, contexts, answer = monitor.only
    assert (question, answer) == (QUESTION, ANSWER)
    assert sorted(contexts) == ["Document on hours.", "Document on refunds."]


def test_several_steps_are_judged_by_documents(engine, llm, monitor, handler, docs):
    MultiStepQueryEngine(
        engine(),
        Rephrase(),
        response_synthesizer=get_response_synthesizer(llm),
        num_steps=2,
        early_stopping=False,
    ).query(QUESTION)
    assert monitor.only == (QUESTION, docs, ANSWER)


@pytest.mark.usefixtures("handler")
def test_a_fusion_of_retrievers_gives_the_fused_documents(
    engine, retriever_class, nodes, llm, monitor
):
    parts = [
        retriever_class(lambda question, name=name: nodes(f"From {name}.", prefix=name))
        for name in ("a", "b")
    ]
    fusion = QueryFusionRetriever(parts, llm=llm, num_queries=1, similarity_top_k=2)
    engine(retriever=fusion).query(QUESTION)
    assert sorted(monitor.only[1]) == ["From a.", "From b."]


def test_engines_asked_by_a_retriever_are_part_of_the_retrieval(
    engine, retriever_class, monitor, handler
):
    found = [NodeWithScore(node=IndexNode(text="table", index_id="table", id_="i"), score=1.0)]
    recursive = RecursiveRetriever(
        "root",
        retriever_dict={"root": retriever_class(lambda question: found)},
        query_engine_dict={"table": engine()},
    )
    engine(retriever=recursive).query(QUESTION)
    question, contexts, _ = monitor.only
    assert question == QUESTION
    assert any(ANSWER in context for context in contexts)


class KeepFirst(BaseNodePostprocessor):
    def _postprocess_nodes(self, nodes, query_bundle=None):
        return nodes[:1]


def test_chunks_carry_node_ids_and_scores(engine, monitor, handler):
    engine().query(QUESTION)
    (case,) = monitor.cases
    assert case.chunk_ids == ["n0", "n1"]
    assert [chunk.score for chunk in case.context] == [1.0, 0.9]


@pytest.mark.usefixtures("handler")
def test_nodes_changed_after_the_answer_was_written_do_not_change_the_context(
    engine, retriever_class, nodes, scripted_llm, monitor
):
    found = nodes("Refunds take five days.")

    def reply(prompt):
        found[0].node.set_content("trimmed")
        return ANSWER

    engine(retriever=retriever_class(lambda question: found), llm=scripted_llm(reply=reply)).query(
        QUESTION
    )
    assert monitor.only[1] == ["Refunds take five days."]


def test_what_is_said_where_nothing_was_found_is_no_answer(
    engine, retriever_class, monitor, handler
):
    engine(retriever=retriever_class(lambda question: [])).query(QUESTION)
    assert monitor.outcomes == {"no_answer": 1}


def test_an_answer_for_which_nothing_was_found_has_an_empty_context(
    llm, retriever_class, monitor, handler
):
    class Talkative(CustomQueryEngine):
        def custom_query(self, query_str):
            retriever_class(lambda question: []).retrieve(query_str)
            return llm.complete(query_str).text

    Talkative().query(QUESTION)
    assert monitor.only == (QUESTION, [], ANSWER)


def test_without_synthesizer_the_rerankers_result_counts(retriever, monitor, handler, docs):
    class Own(CustomQueryEngine):
        def custom_query(self, query_str):
            KeepFirst().postprocess_nodes(retriever.retrieve(query_str))
            return ANSWER

    Own().query(QUESTION)
    assert monitor.only[1] == docs[:1]
