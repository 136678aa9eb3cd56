"""Real chains chosen for their tags, their errors and their passages' scores."""

import uuid

import pytest
from langchain.agents import create_agent
from langchain.tools import ToolException, tool
from langchain_core.documents import Document
from langchain_core.documents.compressor import BaseDocumentCompressor
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from rag_parts import (
    ANSWER,
    QUESTION,
    REFUNDS,
    BrokenRetriever,
    calling,
    documents,
    model,
    rag_chain,
)

from ragaliq import OnCondition, OnError, OnFeedback, OnLowScore, OnTag, Sampling

DOWN = ConnectionError("the model is down")


class ScoredRetriever(BaseRetriever):
    """Finds documents whose scores are noted under a key of their metadata."""

    scores: list
    key: str = "score"

    def _get_relevant_documents(self, query, *, run_manager):
        return [
            Document(page_content=text, metadata={self.key: score})
            for text, score in zip(REFUNDS, self.scores, strict=True)
        ]


@pytest.fixture
def chosen_by(new_watch):
    """A watch on runs that nothing but these rules chooses."""
    return lambda *rules, **sampling: new_watch(
        sampling=Sampling(rate=0.0, rules=rules, **sampling)
    )


def reasons(watch):
    assert watch.stats.pending == 0
    return [result.run.sampling_reason for result in watch.results]


def test_a_chain_with_a_tag(chosen_by, invoke):
    watch = chosen_by(OnTag("beta"))
    invoke(rag_chain(), QUESTION, {**watch.config, "tags": ["x", "beta"]})
    invoke(rag_chain(), QUESTION, {**watch.config, "tags": ["x"]})
    assert reasons(watch) == ["tag"]
    assert watch.results[0].case.tags == ["x", "beta"]
    assert watch.stats.outcomes == {"evaluated": 1, "sampled_out": 1}


def test_a_model_that_failed_and_another_that_answered(chosen_by, invoke, stream):
    watch = chosen_by(OnError())
    flaky = rag_chain(llm=model(DOWN).with_fallbacks([model()]))
    invoke(flaky, QUESTION, watch.config)
    stream(flaky, QUESTION, watch.config)
    invoke(rag_chain(), QUESTION, watch.config)
    assert reasons(watch) == ["error", "error"]
    assert watch.triples[0] == (QUESTION, REFUNDS, ANSWER)


def test_a_retriever_that_failed_unnoticed(chosen_by, invoke):
    watch = chosen_by(OnError())

    def find(question):
        try:
            return BrokenRetriever().invoke(question)
        except ConnectionError:
            return documents()

    chain = {"context": RunnableLambda(find), "question": RunnablePassthrough()} | RunnableLambda(
        lambda _: ANSWER
    )
    invoke(chain, QUESTION, watch.config)
    assert reasons(watch) == ["error"]


@pytest.mark.parametrize("handled", [True, False])
def test_an_agent_whose_tool_failed(chosen_by, invoke, handled):
    @tool
    def search(query: str) -> str:
        """Searches the handbook."""
        if handled:
            raise ToolException("nothing found")
        return "Refunds take five days."

    search.handle_tool_error = True
    watch = chosen_by(OnError())
    agent = create_agent(model(calling("search", query="refunds"), ANSWER), [search])
    invoke(agent, {"messages": [("user", QUESTION)]}, watch.config)
    assert reasons(watch) == ["error"] * handled


@pytest.mark.parametrize(
    ("key", "scores", "is_low"),
    [
        ("score", [0.2, 0.1], True),
        ("relevance_score", [0.2, 0.1], True),
        ("score", [0.2, 0.9], False),
        ("score", ["?", None], False),
    ],
)
def test_poor_passages(chosen_by, invoke, key, scores, is_low):
    watch = chosen_by(OnLowScore(0.3))
    invoke(rag_chain(ScoredRetriever(scores=scores, key=key)), QUESTION, watch.config)
    assert reasons(watch) == ["low_score"] * is_low
    if is_low:
        assert [chunk.score for chunk in watch.results[0].case.context] == scores


def test_scores_that_a_reranker_notes_on_the_same_documents(chosen_by, invoke):
    class Reranker(BaseDocumentCompressor):
        def compress_documents(self, documents, query, callbacks=None):
            return [
                Document(page_content=d.page_content, metadata={"relevance_score": 0.1})
                for d in documents[:1]
            ]

    def rerank(state):
        return {**state, "context": Reranker().compress_documents(state["context"], QUESTION)}

    watch = chosen_by(OnLowScore(0.3))
    chain = (
        {"context": ScoredRetriever(scores=[0.8, 0.9]), "question": RunnablePassthrough()}
        | RunnableLambda(rerank)
        | RunnableLambda(lambda _: ANSWER)
    )
    invoke(chain, QUESTION, watch.config)
    assert reasons(watch) == ["low_score"]
    assert watch.only == (QUESTION, REFUNDS[:1], ANSWER)


def test_a_complaint_by_the_id_the_application_gave_the_run(new_watch, invoke):
    watch = new_watch(sampling=Sampling(rate=0.0, rules=[OnFeedback()]))
    run_id = uuid.uuid4()
    invoke(rag_chain(), QUESTION, {**watch.config, "run_id": run_id})
    assert watch.triples == []
    assert watch.monitor.feedback(run_id, value=False)
    assert watch.only == (QUESTION, REFUNDS, ANSWER)


def test_a_subgraph_that_hands_over_to_its_parent_has_not_failed(chosen_by, invoke):
    def hand_over(state):
        return Command(graph=Command.PARENT, goto="answer", update={"context": REFUNDS})

    inner = StateGraph(dict)
    inner.add_node("hand_over", hand_over)
    inner.add_edge(START, "hand_over")
    outer = StateGraph(dict)
    outer.add_node("inner", inner.compile())
    outer.add_node("answer", lambda state: {"question": QUESTION, "answer": ANSWER})
    outer.add_edge(START, "inner")
    errors = []
    watch = chosen_by(OnError(), OnCondition(lambda run: errors.append(run.had_errors)))
    invoke(outer.compile(), {"question": QUESTION}, watch.config)
    assert watch.stats.outcomes == {"sampled_out": 1}
    assert errors == [False]
