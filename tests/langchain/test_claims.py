"""Several handlers of one monitor count each run once, the one given to the chain going first."""

import uuid

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool
from rag_parts import ANSWER, QUESTION, REFUNDS, FixedRetriever, calling, model, rag_chain

from langchain_ragaliq import RagaliqCallbackHandler, attach, detach

EXPECTED = (QUESTION, REFUNDS, ANSWER)


@pytest.fixture
def another(watch):
    """A handler of the same monitor, which knows better what the question is."""
    handler = RagaliqCallbackHandler(
        watch.monitor, extract=lambda inputs, outputs: {"question": "Refunds?"}
    )
    yield handler
    assert (handler.open_runs, handler.errors) == (0, 0)


def test_the_handler_given_to_a_chain_goes_before_the_attached_one(watch, another, invoke, stream):
    attach(watch.handler)
    invoke(rag_chain(), QUESTION, {"callbacks": [another]})
    stream(rag_chain().with_config(callbacks=[another]), QUESTION)
    assert watch.triples == [("Refunds?", REFUNDS, ANSWER)] * 2
    assert watch.stats.started == 2


def test_the_first_of_two_that_were_given_counts(watch, another, invoke):
    invoke(rag_chain(), QUESTION, {"callbacks": [watch.handler, another]})
    assert watch.only == EXPECTED


def test_what_runs_inside_is_no_run_of_the_others_either(watch, another, invoke):
    @tool
    def ask(query: str) -> str:
        """Answers questions."""
        return rag_chain().invoke(query)

    agent = create_agent(model(calling("ask", query="refunds"), ANSWER), [ask])
    callbacks = {"callbacks": [watch.handler, another]}
    invoke(agent, {"messages": [("user", QUESTION)]}, callbacks)
    assert watch.only == EXPECTED


def test_detaching_leaves_the_run_to_the_handler_of_its_chain(watch, another):
    attach(another)
    answer = rag_chain().stream(QUESTION, watch.config)
    next(answer)
    detach()
    assert list(answer)
    assert watch.only == EXPECTED


def test_an_id_that_is_used_again_is_another_run(watch, another, invoke):
    run_id = uuid.uuid4()
    for _ in range(2):
        config = {"callbacks": [watch.handler, another], "run_id": run_id}
        invoke(rag_chain(FixedRetriever()), QUESTION, config)
    assert watch.triples == [EXPECTED] * 2
    assert watch.stats.started == 2
