"""Runs side by side never mix, and nothing stays behind."""

import asyncio
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import CompletionResponse
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import FunctionTool
from llama_index_parts import memory, model

RUNS = 40


def number_in(text):
    return re.findall(r"\d+", text)[-1]


@pytest.fixture
def numbered(engine, retriever_class, scripted_llm, nodes):
    """An engine whose documents and answer carry the number in the question."""

    class Numbered(retriever_class):
        async def _aretrieve(self, query_bundle: QueryBundle):
            await asyncio.sleep(0)
            return self._retrieve(query_bundle)

    def find(question):
        number = number_in(question)
        return nodes(f"Document {number}a.", f"Document {number}b.", prefix=f"{number}-")

    class Slow(scripted_llm):
        @llm_completion_callback()
        async def acomplete(self, prompt, formatted=False, **kwargs):
            await asyncio.sleep(0)
            return CompletionResponse(text=self.reply(prompt))

    def reply(prompt):
        return f"Answer {number_in(re.search('Query: (.*)', prompt)[1])}."

    def build(**settings):
        return engine(retriever=Numbered(find), llm=Slow(reply=reply), **settings)

    return build


def assert_each_run_has_its_own(monitor):
    assert monitor.outcomes == {"evaluated": RUNS}
    for case in monitor.cases:
        number = number_in(case.query)
        assert case.context_texts == [f"Document {number}a.", f"Document {number}b."]
        assert case.response == f"Answer {number}."
    assert len({case.query for case in monitor.cases}) == RUNS


def test_many_threads_keep_their_documents_and_answers(numbered, monitor, handler):
    engine, start = numbered(), threading.Barrier(RUNS)

    def ask(number):
        start.wait()
        engine.query(f"Question {number}")

    with ThreadPoolExecutor(RUNS) as pool:
        list(pool.map(ask, range(RUNS)))
    assert_each_run_has_its_own(monitor)


async def test_many_streams_read_in_turns_keep_their_documents_and_answers(
    numbered, monitor, handler
):
    engine = numbered(streaming=True)

    async def ask(number):
        response = await engine.aquery(f"Question {number}")
        async for _ in response.async_response_gen():
            await asyncio.sleep(0)

    await asyncio.gather(*(ask(number) for number in range(RUNS)))
    assert_each_run_has_its_own(monitor)


ANSWER = "Refunds take five days in every shop."


# Building an agent makes LlamaIndex look at every attribute of a pydantic model.
@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")
@pytest.mark.usefixtures("handler")
@pytest.mark.parametrize("asked_by", ["another user's thread", "another user's task", "the tool"])
async def test_equal_texts_never_join_runs(asked_by, engine, scripted_llm, monitor, docs):
    """Whoever asks while a tool is open, and gets what that tool says, has a run of their own."""
    answering = engine(llm=scripted_llm(reply=lambda _: ANSWER))
    is_open, asked = asyncio.Event(), asyncio.Event()

    async def look_up(topic: str) -> str:
        """Look up the policy."""
        if asked_by == "the tool":
            ask_in_a_thread("Question of a tool's own thread?")
        else:
            is_open.set()
            await asked.wait()
        return f"Policy: {ANSWER}"

    def ask_in_a_thread(question):
        thread = threading.Thread(target=answering.query, args=(question,))
        thread.start()
        thread.join()

    async def another_user():
        await is_open.wait()
        if asked_by == "another user's thread":
            ask_in_a_thread("Question of another user?")
        else:
            await answering.aquery("Question of another user?")
        asked.set()

    tool = FunctionTool.from_defaults(async_fn=look_up)
    agent = FunctionAgent(
        tools=[tool], llm=model(("look_up", {"topic": "refunds"}), "It takes five days.")
    )
    other = None if asked_by == "the tool" else asyncio.create_task(another_user())
    await agent.run(user_msg="Question of the first user?", memory=memory())
    if other is not None:
        await other
    assert monitor.outcomes == {"evaluated": 2}
    theirs, first = sorted(monitor.cases, key=lambda case: "first" in case.query)
    assert theirs.context_texts == docs
    assert theirs.response == ANSWER
    assert first.context_texts == [f"Policy: {ANSWER}"]


def test_nothing_grows_over_runs_of_every_ending(engine, scripted_llm, monitor, handler):
    def fail(prompt):
        raise TimeoutError

    whole, streaming, broken = (
        engine(),
        engine(streaming=True),
        engine(llm=scripted_llm(reply=fail)),
    )
    for _ in range(30):
        whole.query("Question?")
        stream = streaming.query("Question?").response_gen
        next(stream)
        stream.close()
        with pytest.raises(TimeoutError):
            broken.query("Question?")
    assert monitor.outcomes == {"evaluated": 30, "truncated": 30, "errored": 30}
    assert handler.runs_in_progress == 0
    kept = [value for value in vars(handler).values() if isinstance(value, list | dict)]
    assert not any(kept)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_a_forked_child_starts_without_the_parents_runs(engine, monitor, handler):
    unread = engine(streaming=True).query("Question?")
    child = os.fork()
    if child == 0:
        try:
            clean = handler.runs_in_progress == 0 and not handler._runs.runs
            engine().query("In the child?")
            os._exit(0 if clean and len(monitor.cases) == 1 else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert handler.runs_in_progress == 1
    str(unread)
