"""Runs without an engine around them: plain functions, and what the application frames by hand."""

import asyncio

import pytest
from llama_index.core.instrumentation import get_dispatcher

from llama_index.evaluation.ragaliq import attach
from ragaliq import ConfigurationError

QUESTION = "How long do refunds take?"
ANSWER = "Refunds take five days."


def search_and_ask(retriever, llm, question=QUESTION):
    nodes = retriever.retrieve(question)
    texts = "\n".join(node.get_content() for node in nodes)
    return llm.complete(f"Use this:\n{texts}\n\nQuestion: {question}").text


def test_a_plain_function_that_searches_and_asks_is_a_run(retriever, llm, docs, monitor, handler):
    search_and_ask(retriever, llm)
    assert monitor.only == (QUESTION, docs, ANSWER)


def test_a_function_under_the_dispatchers_span_is_followed(retriever, llm, docs, monitor, handler):
    get_dispatcher("shop").span(search_and_ask)(retriever, llm)
    assert monitor.only == (QUESTION, docs, ANSWER)


def test_a_function_under_the_dispatchers_span_is_one_run_whatever_it_asks(
    engine, retriever, llm, docs, handler
):
    @get_dispatcher("shop").span
    def advise(question):
        engine().query("refunds?")
        llm.complete(f"Search words for: {question}")
        return f"{search_and_ask(retriever, llm, question)} They come in cash."

    advise(QUESTION)
    assert handler.monitor.only == (QUESTION, docs, f"{ANSWER} They come in cash.")


def test_a_function_that_returns_its_models_stream_ends_with_the_last_token(
    retriever, llm, docs, monitor, handler
):
    @get_dispatcher("shop").span
    def stream(question):
        texts = "\n".join(node.get_content() for node in retriever.retrieve(question))
        return llm.stream_complete(f"{texts}\n{question}")

    assert [piece.text for piece in stream(QUESTION)][-1] == ANSWER
    assert monitor.only == (QUESTION, docs, ANSWER)


def test_a_function_that_only_searches_is_no_run_but_its_callers_evidence(
    retriever, llm, docs, monitor, handler
):
    @get_dispatcher("shop").span
    def search(question):
        return "\n".join(node.get_content() for node in retriever.retrieve(question))

    llm.complete(f"{search(QUESTION)}\n{QUESTION}")
    assert monitor.only == (QUESTION, docs, ANSWER)
    assert monitor.stats().started == 1
    assert handler.runs_in_progress == 0


def test_nothing_below_a_function_that_is_sampled_out_is_followed(
    engine, retriever, llm, new_monitor
):
    monitor = new_monitor(sample_rate=0.0)
    handler = attach(monitor)

    @get_dispatcher("shop").span
    def advise(question):
        llm.complete(f"Search words for: {question}")
        engine().query(question)
        return search_and_ask(retriever, llm, question)

    advise(QUESTION)
    assert monitor.outcomes == {"sampled_out": 1}
    assert handler.runs_in_progress == 0


def test_a_stream_of_plain_code_ends_with_its_last_token(retriever, llm, docs, monitor, handler):
    texts = "\n".join(node.get_content() for node in retriever.retrieve(QUESTION))
    for piece in llm.stream_complete(f"{texts}\n{QUESTION}"):
        said = piece.text
    assert monitor.only == (QUESTION, docs, said)


async def test_search_and_call_of_two_tasks_do_not_belong_together(
    retriever_class, nodes, llm, monitor, handler
):
    retriever = retriever_class(lambda question: nodes("Boilers are set to 55 degrees."))

    async def ask():
        return llm.complete(f"Boilers are set to 55 degrees.\n{QUESTION}")

    await asyncio.create_task(retriever.aretrieve(QUESTION))
    await asyncio.create_task(ask())
    assert monitor.stats().outcomes == {"not_rag": 1}


def test_a_framed_block_is_one_run_whatever_happens_inside(engine, retriever, llm, docs, handler):
    monitor = handler.monitor
    with handler.run(QUESTION, pipeline="desk") as run:
        engine().query("refunds?")
        run.answer = f"{search_and_ask(retriever, llm, 'refunds')} They come in cash."
    assert monitor.only == (QUESTION, docs, f"{ANSWER} They come in cash.")
    assert monitor.results[0].pipeline == "desk"
    assert monitor.stats().started == 1


def test_a_block_that_fails_is_counted_and_raises(monitor, handler):
    with pytest.raises(KeyError), handler.run(QUESTION):
        raise KeyError
    assert monitor.outcomes == {"errored": 1}


def test_each_call_of_a_traced_function_is_a_run(retriever, llm, docs, monitor, handler):
    @handler.trace
    def ask(question):
        yield from search_and_ask(retriever, llm, question).split(" ", 1)

    assert " ".join(ask(QUESTION)) == ANSWER
    assert monitor.only[:2] == (QUESTION, docs)
    with pytest.raises(ConfigurationError, match="no parameter 'q'"):
        handler.trace(lambda question: question, question="q")


def test_a_framed_function_inside_another_is_a_part_of_its_run(engine, docs, monitor, handler):
    @handler.trace
    def look_up(question):
        return str(engine().query(question))

    @handler.trace
    def advise(question):
        return f"{look_up('refunds?')} They come in cash."

    advise(QUESTION)
    assert monitor.only == (QUESTION, docs, f"{ANSWER} They come in cash.")
    assert monitor.stats().started == 1


def test_nothing_inside_a_framed_function_that_is_sampled_out_is_followed(engine, new_monitor):
    monitor = new_monitor(sample_rate=0.0)
    handler = attach(monitor)

    @handler.trace
    def advise(question):
        return str(engine().query(question))

    advise(QUESTION)
    assert monitor.outcomes == {"sampled_out": 1}
    assert handler.runs_in_progress == 0


def test_a_traced_function_that_returns_a_stream_ends_with_its_last_token(
    retriever, llm, docs, monitor, handler
):
    @handler.trace
    def ask(question):
        texts = "\n".join(node.get_content() for node in retriever.retrieve(question))
        return llm.stream_complete(f"{texts}\n{question}")

    assert [piece.text for piece in ask(QUESTION)][-1] == ANSWER
    assert monitor.only == (QUESTION, docs, ANSWER)
