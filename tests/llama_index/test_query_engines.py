"""Question, context and answer of every kind of query engine."""

from __future__ import annotations

import pytest
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import (
    CustomQueryEngine,
)

QUESTION = "How long do refunds take?"
ANSWER = "Refunds take five days."


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
