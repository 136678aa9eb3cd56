"""Runs without a chain around them: plain functions, and what the application frames by hand."""

import asyncio
import logging

import pytest
from rag_parts import ANSWER, QUESTION, REFUNDS, FixedRetriever, joined, model

from langchain_ragaliq import attach, detach
from ragaliq import ConfigurationError

INVENTED = "They come in cash."


def counted(watch):
    return {outcome: count for outcome, count in watch.stats.outcomes.items() if count}


def search_and_ask(config, question=QUESTION, retriever=None, llm=None):
    documents = (retriever or FixedRetriever()).invoke(question, config)
    prompt = f"Use this:\n{joined(documents)}\n\nQuestion: {question}"
    return (llm or model()).invoke(prompt, config).text


def test_a_plain_function_that_searches_and_asks_is_a_run(watch):
    search_and_ask(watch.config)
    assert watch.only == (QUESTION, REFUNDS, ANSWER)


async def test_search_and_call_of_one_task_belong_together_and_those_of_two_do_not(watch):
    async def ask(question):
        documents = await FixedRetriever().ainvoke(question, watch.config)
        await asyncio.sleep(0)
        return await model().ainvoke(f"{joined(documents)}\n{question}", watch.config)

    async def chat():
        return await model("Hello.").ainvoke("Say hello.", watch.config)

    await asyncio.gather(ask("How long?"), chat(), ask("How soon?"))
    assert await watch.monitor.aflush(10)
    assert sorted(each.case.query for each in watch.results) == ["How long?", "How soon?"]
    assert counted(watch) == {"evaluated": 2, "not_rag": 1}


def test_a_lone_call_of_a_model_is_counted_and_the_remedy_said_once(watch, caplog):
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            model("Hello.").invoke("Say hello.", watch.config)
    assert counted(watch) == {"not_rag": 3}
    assert sum("handler.trace" in line for line in caplog.messages) <= 1


def test_a_search_that_no_model_is_shown_is_counted_once_nobody_can_be_any_more(watch):
    attach(watch.handler)
    FixedRetriever(texts=["The shop is closed on Monday."]).invoke(QUESTION)
    assert counted(watch) == {}
    search_and_ask({})
    detach()
    assert counted(watch) == {"evaluated": 1, "not_rag": 1}


def test_a_framed_block_is_one_run_whatever_happens_inside(watch):
    with watch.handler.run(QUESTION, pipeline="desk") as run:
        model("refunds").invoke("Rewrite the question.", watch.config)
        run.answer = search_and_ask(watch.config, "refunds") + f" {INVENTED}"
    assert counted(watch) == {"evaluated": 1}
    [evaluation] = watch.results
    case = evaluation.case
    assert (case.query, case.context_texts) == (QUESTION, REFUNDS)
    assert case.response == f"{ANSWER} {INVENTED}"
    assert evaluation.run.pipeline == "desk"


def test_the_last_reply_is_the_answer_of_a_block_that_names_none(watch):
    with watch.handler.run(QUESTION):
        search_and_ask(watch.config)
    assert watch.only == (QUESTION, REFUNDS, ANSWER)


def test_a_block_that_fails_is_counted_and_raises(watch):
    with pytest.raises(KeyError), watch.handler.run(QUESTION):
        raise KeyError
    assert watch.stats.incomplete == {"errored": 1}


def test_each_call_of_a_traced_function_is_a_run(watch):
    @watch.handler.trace
    def ask(config, question):
        return {"answer": search_and_ask(config, question)}

    ask(watch.config, QUESTION)
    assert watch.only == (QUESTION, REFUNDS, ANSWER)


def test_coroutines_and_generators_are_followed_to_their_end(watch):
    @watch.handler.trace(pipeline="async")
    async def ask(question):
        documents = await FixedRetriever().ainvoke(question, watch.config)
        return (await model().ainvoke(f"{joined(documents)}\n{question}", watch.config)).text

    @watch.handler.trace(question="about")
    def stream(first, about):
        yield from search_and_ask(watch.config, about).split(" ", 1)

    @watch.handler.trace
    async def astream(question):
        documents = await FixedRetriever().ainvoke(question, watch.config)
        async for piece in model().astream(f"{joined(documents)}\n{question}", watch.config):
            yield piece

    async def read():
        return "".join([piece.text async for piece in astream("three?")])

    assert asyncio.run(ask("one?")) == ANSWER
    assert " ".join(stream("x", about="two?")) == ANSWER
    assert asyncio.run(read()) == ANSWER
    assert [each.question for each in watch.triples] == ["one?", "two?", "three?"]
    assert [each.contexts for each in watch.triples] == [REFUNDS] * 3


def test_a_generator_that_its_reader_leaves_is_cancelled_and_frames_nothing_outside(watch):
    @watch.handler.trace
    def stream(question):
        yield "Refunds "
        yield "take five days."

    items = stream(QUESTION)
    next(items)
    search_and_ask(watch.config, "between?")
    items.close()
    assert [each.question for each in watch.triples] == ["between?"]
    assert watch.stats.incomplete == {"cancelled": 1}


def test_a_question_that_is_no_parameter_is_refused(watch):
    with pytest.raises(ConfigurationError, match="no parameter 'q'"):
        watch.handler.trace(lambda question: question, question="q")


def test_a_framed_function_inside_another_is_a_part_of_its_run(watch):
    @watch.handler.trace
    def look_up(question):
        return search_and_ask(watch.config, question)

    @watch.handler.trace
    def advise(question):
        return f"{look_up('refunds?')} {INVENTED}"

    advise(QUESTION)
    assert watch.only == (QUESTION, REFUNDS, f"{ANSWER} {INVENTED}")


def test_a_traced_function_that_returns_a_stream_ends_with_its_last_token(watch):
    @watch.handler.trace
    def ask(question):
        documents = FixedRetriever().invoke(question, watch.config)
        return model().stream(f"{joined(documents)}\n{question}", watch.config)

    assert "".join(piece.text for piece in ask(QUESTION)) == ANSWER
    assert watch.only == (QUESTION, REFUNDS, ANSWER)
