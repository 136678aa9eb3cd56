"""Runs that fail, are retried, fall back or are cancelled: counted, never invented."""

import asyncio
import threading

import pytest
from langchain_core.runnables import RunnableGenerator, RunnableLambda
from rag_parts import (
    ANSWER,
    QUESTION,
    REFUNDS,
    SHIPPING,
    BrokenRetriever,
    FixedRetriever,
    model,
    rag_chain,
)

EXPECTED = (QUESTION, REFUNDS, ANSWER)
DOWN = ConnectionError("the model is down")


class SpoiledError(Exception):
    """What a step raises in the middle of its work."""


@pytest.mark.parametrize(
    "parts", [{"retriever": BrokenRetriever()}, {"llm": model(DOWN)}], ids=["retriever", "model"]
)
def test_an_error_reaches_the_application_and_is_counted(watch, invoke, parts):
    with pytest.raises(ConnectionError, match="is down"):
        invoke(rag_chain(**parts), QUESTION, watch.config)
    assert watch.incomplete == {"errored": 1}


def test_an_error_in_the_middle_of_a_stream_is_counted(watch, stream):
    def spoil(chunks):
        for chunk in chunks:
            yield chunk
            raise SpoiledError

    async def aspoil(chunks):
        async for chunk in chunks:
            yield chunk
            raise SpoiledError

    with pytest.raises(SpoiledError):
        stream(rag_chain() | RunnableGenerator(spoil, aspoil), QUESTION, watch.config)
    assert watch.incomplete == {"errored": 1}


def test_an_exit_of_the_application_is_not_held_up_and_is_counted(watch):
    def leave(_):
        raise SystemExit

    with pytest.raises(SystemExit):
        (rag_chain() | leave).invoke(QUESTION, watch.config)
    assert watch.incomplete == {"errored": 1}


def retried_whole():
    found = iter([SHIPPING, REFUNDS])
    retriever = RunnableLambda(lambda q: FixedRetriever(texts=next(found)).invoke(q))
    return rag_chain(retriever, model(DOWN, ANSWER)).with_retry(wait_exponential_jitter=False)


MADE_UP_FOR = {
    "another model": lambda: rag_chain(llm=model(DOWN).with_fallbacks([model()])),
    "the same model": lambda: rag_chain(
        llm=model(DOWN, DOWN, ANSWER).with_retry(wait_exponential_jitter=False)
    ),
    "the whole chain": retried_whole,
    "another chain": lambda: rag_chain(FixedRetriever(texts=SHIPPING), model(DOWN)).with_fallbacks(
        [rag_chain()]
    ),
}


@pytest.mark.parametrize("name", MADE_UP_FOR)
def test_what_made_up_for_a_failure_gives_context_and_answer(watch, invoke, name):
    invoke(MADE_UP_FOR[name](), QUESTION, watch.config)
    assert watch.only == EXPECTED


def test_of_a_batch_every_input_is_a_run_whatever_becomes_of_the_others(watch, mode):
    def answer(messages):
        if "2" in messages[-1].text:
            raise DOWN
        return f"Answer to {messages[-1].text}"

    questions = [f"Question {n}?" for n in range(4)]
    chain, config = rag_chain(llm=model(answer)), {**watch.config, "max_concurrency": 2}
    if mode == "sync":
        outputs = chain.batch(questions, config, return_exceptions=True)
    else:
        outputs = asyncio.run(chain.abatch(questions, config, return_exceptions=True))
    assert [isinstance(output, Exception) for output in outputs] == [False, False, True, False]
    answered = [(q, REFUNDS, f"Answer to {q}") for q in questions[:2] + questions[3:]]
    assert sorted(watch.triples) == answered
    assert watch.stats.outcomes == {"evaluated": 3, "incomplete_run": 1}
    assert watch.stats.incomplete == {"errored": 1}


def test_a_step_left_running_in_a_thread_after_the_end_is_not_a_run_of_its_own(watch):
    release, done = threading.Event(), threading.Event()

    def start_thread(text, config):
        def later():
            release.wait(30)
            rag_chain().invoke("Left over?", config)
            done.set()

        threading.Thread(target=later).start()
        return text

    (rag_chain() | RunnableLambda(start_thread)).invoke(QUESTION, watch.config)
    release.set()
    assert done.wait(30)
    assert watch.only == EXPECTED


def test_after_the_monitor_is_closed_the_chain_still_works(new_watch, invoke):
    watch = new_watch()
    watch.monitor.close(5)
    assert invoke(rag_chain(), QUESTION, watch.config) == ANSWER
    assert watch.stats.outcomes == {"shutdown": 1}
