"""Guards around query engines and chat engines."""

import asyncio

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.chat_engine import (
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.query_engine import CustomQueryEngine, SubQuestionQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import QueryEngineTool
from llama_index_parts import Reply, Search, memory, model

from llama_index.evaluation.ragaliq import (
    GuardedChatEngine,
    GuardedQueryEngine,
    attach,
)
from question_generators import OneQuestionEach
from ragaliq import ConfigurationError, Guard, GuardRejected, Monitor, suppress
from ragaliq.testing import ScriptedJudge

QUESTION = "How long do refunds take?"
ANSWER = "Refunds take five days."
WRONG = "Refunds take nine days."
FALLBACK = "I do not know."

# Building an agent makes LlamaIndex look at every attribute of a pydantic model.
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")


@pytest.fixture
def guard_of():
    made = []

    def build(**options):
        made.append(Guard(**{"judge": ScriptedJudge(), "fallback": FALLBACK, **options}))
        return made[-1]

    yield build
    for guard in made:
        guard.monitor.close(1.0)


@pytest.fixture
def llm_of(scripted_llm):
    """A model that gives these answers in turn, and the prompts it was given."""

    def build(*replies):
        prompts = []

        def reply(prompt):
            prompts.append(prompt)
            return replies[min(len(prompts), len(replies)) - 1]

        return scripted_llm(reply=reply), prompts

    return build


# Query engines


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
    """Answers with a response object or a text."""

    response: object

    def custom_query(self, query_str):
        return self.response


def test_an_answer_below_is_replaced_annotated_or_stopped(guarded, query):
    response = query(guarded(WRONG))
    assert isinstance(response, Response)
    assert response.response == FALLBACK
    response = query(guarded(WRONG, action="annotate"))
    assert response.response == WRONG
    assert response.metadata["ragaliq"]["scores"] == {"faithfulness": 0.0}
    with pytest.raises(GuardRejected) as caught:
        query(guarded(WRONG, action="raise"))
    assert "nine" not in str(caught.value)


def test_the_judge_is_given_the_question_and_what_was_retrieved(guarded, query):
    got = []
    engine = guarded(ANSWER, on_result=got.append)
    assert query(engine).response == ANSWER
    assert engine.guard.monitor.flush(5)
    assert (got[0].case.query, got[0].case.context_texts) == (
        QUESTION,
        [ANSWER, "The shop opens at nine."],
    )


@pytest.mark.parametrize(("reply", "shown"), [(ANSWER, ANSWER), (WRONG, FALLBACK)])
async def test_a_stream_is_held_back_and_comes_in_one_piece(guarded, reply, shown):
    response = guarded(reply, streaming=True).query(QUESTION)
    assert isinstance(response, StreamingResponse)
    assert list(response.response_gen) == [shown]
    response = await guarded(reply, streaming=True).aquery(QUESTION)
    assert isinstance(response, AsyncStreamingResponse)
    assert [piece async for piece in response.async_response_gen()] == [shown]


def test_a_structured_answer_is_replaced_by_what_a_function_makes(guard_of, nodes, query):
    class Days(BaseModel):
        days: str

    inner = Given(response=PydanticResponse(Days(days=WRONG), source_nodes=nodes(ANSWER)))
    guard = guard_of(fallback=lambda result: Days(days="unknown"))
    assert query(GuardedQueryEngine(inner, guard)).response == Days(days="unknown")
    assert query(GuardedQueryEngine(inner, guard_of())).response == FALLBACK


@pytest.mark.parametrize(("said", "shown"), [(WRONG, FALLBACK), (ANSWER, ANSWER)])
def test_a_structured_answer_is_guarded_by_its_text(engine, guard_of, said, shown):
    llm = model(("Reply", {"answer": said, "confidence": 0.9}))
    response = GuardedQueryEngine(engine(llm=llm, output_cls=Reply), guard_of()).query(QUESTION)
    assert getattr(response.response, "answer", response.response) == shown


def test_a_models_intermediate_answer_does_not_support_itself(engine, guard_of):
    tool = QueryEngineTool.from_defaults(
        engine(llm=model(WRONG)), name="policy", description="Policy."
    )
    inner = SubQuestionQueryEngine(
        OneQuestionEach("{}"), get_response_synthesizer(llm=model(WRONG)), [tool], use_async=False
    )
    assert GuardedQueryEngine(inner, guard_of()).query(QUESTION).response == FALLBACK


def test_an_engine_that_returns_a_text_is_checked(guard_of):
    class Plain(CustomQueryEngine):
        def custom_query(self, query_str):
            found = Search(ANSWER).retrieve(query_str)
            return str(model(WRONG).complete(f"{found[0].text}\n\n{query_str}"))

    assert GuardedQueryEngine(Plain(), guard_of()).query(QUESTION).response == FALLBACK


class Unprintable:
    """A lazy attribute whose row is gone."""

    def __str__(self):
        raise LookupError("gone")

    __repr__ = __str__


def test_metadata_that_cannot_be_read_costs_itself_only(guard_of, query):
    row = {"row": Unprintable()}
    node = TextNode(text=ANSWER, metadata=row, excluded_llm_metadata_keys=["row"])
    guard = guard_of()
    engine = Given(response=Response(WRONG, [NodeWithScore(node=node)]))
    assert query(GuardedQueryEngine(engine, guard)).response == FALLBACK
    assert guard.monitor.stats().outcomes == {"evaluated": 1}


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


@pytest.mark.parametrize("action", ["fallback", "annotate"])
def test_a_guarded_answer_is_scored_once(handler, monitor, guarded, query, action):
    for reply in (ANSWER, WRONG):
        engine = guarded(reply, action=action)
        query(engine)
        assert engine.guard.monitor.stats().outcomes == {"evaluated": 1}
    assert monitor.outcomes == {}


def test_also_by_the_same_monitor(engine, query):
    monitor = Monitor(judge=ScriptedJudge(), metrics=["faithfulness"])
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


# Chat engines


@pytest.fixture
def chat_of(retriever, guard_of, llm_of):
    def build(*replies, **options):
        llm, prompts = llm_of(*replies)
        inner = ContextChatEngine.from_defaults(retriever=retriever, llm=llm, memory=memory())
        return GuardedChatEngine(inner, guard_of(**options)), prompts

    return build


def texts(engine):
    return [message.content for message in engine.chat_history]


@pytest.fixture(params=["chat", "achat", "stream_chat", "astream_chat"])
def chat(request):
    """Ask a chat engine in each of its four ways, and read the answer."""

    async def read(engine, message):
        if request.param == "achat":
            return (await engine.achat(message)).response
        response = await engine.astream_chat(message)
        return "".join([piece async for piece in response.async_response_gen()])

    def ask(engine, message=QUESTION):
        if request.param == "chat":
            return engine.chat(message).response
        if request.param == "stream_chat":
            return "".join(engine.stream_chat(message).response_gen)
        return asyncio.run(read(engine, message))

    return ask


def test_the_conversation_keeps_the_answer_that_went_out_which_is_scored_once(
    handler, monitor, chat_of, chat
):
    for reply, shown in ((ANSWER, ANSWER), (WRONG, FALLBACK)):
        engine, _ = chat_of(reply)
        assert chat(engine) == shown
        assert texts(engine) == [QUESTION, shown]
    assert monitor.outcomes == {}


def test_the_next_turn_sees_what_went_out(chat_of, chat):
    engine, prompts = chat_of(WRONG, ANSWER)
    assert chat(engine) == FALLBACK
    assert chat(engine, "And then?") == ANSWER
    assert FALLBACK in prompts[1]
    assert WRONG not in prompts[1]
    assert texts(engine) == [QUESTION, FALLBACK, "And then?", ANSWER]


def test_what_was_stopped_is_forgotten(chat_of, chat):
    engine, _ = chat_of(WRONG, action="raise")
    with pytest.raises(GuardRejected):
        chat(engine)
    assert texts(engine) == []


def test_a_conversation_may_be_handed_in_and_started_anew(chat_of):
    engine, _ = chat_of(WRONG)
    engine.chat(QUESTION, [ChatMessage(content="Hello")])
    assert texts(engine) == ["Hello", QUESTION, FALLBACK]
    engine.reset()
    assert texts(engine) == []


@pytest.mark.parametrize(("otherwise", "shown"), [("pass", WRONG), ("block", FALLBACK)])
def test_an_answer_without_sources_goes_out_where_the_guard_says_so(guard_of, otherwise, shown):
    inner = SimpleChatEngine.from_defaults(llm=model(WRONG), memory=memory())
    guarded = GuardedChatEngine(inner, guard_of(on_unscored=otherwise))
    assert guarded.chat(QUESTION).response == shown


def test_an_answer_to_a_condensed_question_is_guarded(engine, guard_of, llm_of, chat):
    llm, _ = llm_of(WRONG)
    inner = CondenseQuestionChatEngine.from_defaults(engine(llm=llm), llm=llm, memory=memory())
    guarded = GuardedChatEngine(inner, guard_of())
    assert chat(guarded) == FALLBACK
    assert texts(guarded) == [QUESTION, FALLBACK]
