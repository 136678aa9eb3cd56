"""Guards around query engines and chat engines."""

import asyncio

import pytest
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.query_engine import CustomQueryEngine

from llama_index.evaluation.ragaliq import GuardedQueryEngine, attach
from ragaliq import ConfigurationError, Guard, GuardRejected, Monitor, suppress
from ragaliq.testing import ScriptedJudge

QUESTION = "How long do refunds take?"
ANSWER = "Refunds take five days."
WRONG = "Refunds take nine days."
FALLBACK = "I do not know."


@pytest.fixture(params=["sync", "async"])
def query(request):
    def sync_call(engine, question=QUESTION):
        return engine.query(question)

    def async_call(engine, question=QUESTION):
        return asyncio.run(engine.aquery(question))

    return sync_call if request.param == "sync" else async_call


@pytest.fixture
def guarded(engine, guard_of, llm_of):
    def build(*replies, **options):
        settings = {"streaming": options.pop("streaming", False)}
        return GuardedQueryEngine(engine(llm=llm_of(*replies)[0], **settings), guard_of(**options))

    return build


class Given(CustomQueryEngine):
    """Answers with a response object."""

    response: object

    def custom_query(self, query_str):
        return self.response


def test_an_answer_below_is_replaced(guarded, query):
    response = query(guarded(WRONG))
    assert isinstance(response, Response)
    assert response.response == FALLBACK


def test_it_is_annotated_or_raises_when_told_so(guarded, query):
    response = query(guarded(WRONG, action="annotate"))
    assert response.response == WRONG
    assert response.metadata["ragaliq"]["scores"] == {"faithfulness": 0.0}
    with pytest.raises(GuardRejected) as caught:
        query(guarded(WRONG, action="raise"))
    assert "nine" not in str(caught.value)


def test_it_is_made_again_with_feedback_and_retrieved_for_by_the_question_alone(
    engine, retriever, guard_of, llm_of, query
):
    embedded = []

    class Embedding(type(retriever)):
        def _retrieve(self, query_bundle):
            embedded.append(query_bundle.embedding_strs)
            return super()._retrieve(query_bundle)

    llm, prompts = llm_of(WRONG, ANSWER)
    got = []
    guard = guard_of(action="retry", on_result=got.append)
    inner = engine(llm=llm, retriever=Embedding(retriever.find))
    assert query(GuardedQueryEngine(inner, guard)).response == ANSWER
    assert f"- {WRONG}" in prompts[1]
    assert embedded == [[QUESTION], [QUESTION]]
    assert guard.monitor.flush(5)
    assert [result.case.query for result in got] == [QUESTION, QUESTION]
    assert got[0].case.context_texts == [ANSWER, "The shop opens at nine."]


@pytest.mark.parametrize(("reply", "shown"), [(ANSWER, ANSWER), (WRONG, FALLBACK)])
async def test_a_stream_is_held_back_and_comes_in_one_piece(guarded, reply, shown):
    response = guarded(reply, streaming=True).query(QUESTION)
    assert isinstance(response, StreamingResponse)
    assert list(response.response_gen) == [shown]
    response = await guarded(reply, streaming=True).aquery(QUESTION)
    assert isinstance(response, AsyncStreamingResponse)
    assert [piece async for piece in response.async_response_gen()] == [shown]


def test_a_structured_answer_is_replaced_by_what_a_function_makes(guard_of, nodes, query):
    class Reply(BaseModel):
        days: str

    inner = Given(response=PydanticResponse(Reply(days=WRONG), source_nodes=nodes(ANSWER)))
    guard = guard_of(fallback=lambda result: Reply(days="unknown"))
    assert query(GuardedQueryEngine(inner, guard)).response == Reply(days="unknown")
    assert query(GuardedQueryEngine(inner, guard_of())).response == FALLBACK


def test_with_the_guard_off_the_engine_answers_as_it_does(guarded, query):
    assert query(guarded(WRONG, enabled=False)).response == WRONG
    with suppress():
        assert query(guarded(WRONG)).response == WRONG


def test_a_guard_and_options_for_one_exclude_each_other(engine, guard_of):
    with pytest.raises(ConfigurationError, match="not both"):
        GuardedQueryEngine(engine(), guard_of(), action="raise")


async def test_the_event_loop_is_free_while_an_answer_is_judged(guarded):
    loop = asyncio.get_running_loop()

    class NeedsTheLoop(ScriptedJudge):
        async def extract_statements(self, query, response):
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(30)
            return await super().extract_statements(query, response)

    assert (await guarded(WRONG, judge=NeedsTheLoop()).aquery(QUESTION)).response == FALLBACK


# --- beside an attached handler ---------------------------------------------------------------


@pytest.mark.parametrize("action", ["fallback", "annotate", "retry"])
def test_a_guarded_answer_is_scored_once(handler, monitor, guarded, query, action):
    for reply in (ANSWER, WRONG):
        engine = guarded(reply, action=action, max_retries=0)
        query(engine)
        assert engine.guard.monitor.stats().outcomes == {"evaluated": 1}
    assert monitor.outcomes == {}


def test_also_by_the_same_monitor(engine, query):
    monitor = Monitor(judge=ScriptedJudge(), evaluators=["faithfulness"])
    attach(monitor)
    query(GuardedQueryEngine(engine(), Guard(monitor)))
    assert monitor.flush(5)
    stats = monitor.stats()
    assert (stats.started, stats.outcomes) == (1, {"evaluated": 1})
    monitor.close(1.0)


def test_an_answer_made_from_a_guarded_one_is_another_answer(handler, monitor, guarded, query):
    class Shouting(CustomQueryEngine):
        inner: object

        def custom_query(self, query_str):
            return Response(self.inner.query(query_str).response.upper(), source_nodes=[])

    query(Shouting(inner=guarded(ANSWER)))
    (case,) = monitor.cases
    assert case.response == ANSWER.upper()
