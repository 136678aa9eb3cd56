"""Line 6: what the model was not shown is no context."""

from __future__ import annotations

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_parts import (
    HOURS,
    PARKING,
    REFUNDS,
    Answer,
    Finding,
    generate,
    graph,
    model,
    rag,
    retrieve,
)
from langgraph.types import Command
from pydantic import Field
from rag_parts import PROMPT, QUESTION, joined


class Reranking(BaseRetriever):
    """Asks another retriever without passing callbacks on, and keeps the first."""

    base: BaseRetriever = Field(default_factory=Finding)

    def _get_relevant_documents(self, query, *, run_manager):
        return self.base.invoke(query)[:1]


def test_what_a_reranking_retriever_rejected_is_no_context(watch):
    rag(Reranking()).invoke(QUESTION, watch.config)
    assert watch.only.context_texts == [REFUNDS]


def test_a_fusion_of_documents_with_scores_keeps_what_it_passes_on(watch):
    def fuse(lists):
        ranked = [(document, 0.5) for found in lists.values() for document in found]
        return [pair for pair in ranked if pair[0].page_content != HOURS]

    search = {"a": Finding(), "b": Finding(texts=[PARKING, HOURS])}
    rag(search | RunnableLambda(fuse) | (lambda pairs: [d for d, _ in pairs])).invoke(
        QUESTION, watch.config
    )
    assert watch.only.context_texts == [REFUNDS, PARKING]


def test_self_rag_with_an_output_schema_counts_what_the_grader_let_through(watch):
    def grade(state):
        kept = [d for d in state["documents"] if model("yes").invoke(d.page_content)][:1]
        return Command(update={"documents": kept})

    graph(retrieve, grade, generate, output=Answer).invoke({"question": QUESTION}, watch.config)
    assert watch.only.context_texts == [REFUNDS]


def test_the_examples_and_memories_that_a_query_writer_was_shown_are_no_context(watch):
    memories = Finding(texts=["The user once asked about parking in the yard."])

    def rewrite(question):
        asked = f"{joined(memories.invoke(question))} {question}"
        return model("refund duration").invoke(asked).text

    (RunnablePassthrough.assign() | {
        "context": (lambda given: rewrite(given["question"])) | Finding() | joined,
        "question": lambda given: given["question"],
    } | PROMPT | model()).invoke({"question": QUESTION}, watch.config)  # fmt: skip
    assert watch.only.context_texts == [REFUNDS, HOURS]
