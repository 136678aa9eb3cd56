"""Guards around chat engines."""

import asyncio

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.chat_engine import (
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.memory import ChatMemoryBuffer

from llama_index.evaluation.ragaliq import GuardedChatEngine
from ragaliq import GuardRejected

QUESTION = "How long do refunds take?"
ANSWER = "Refunds take five days."
WRONG = "Refunds take nine days."
FALLBACK = "I do not know."


def memory():
    """LlamaIndex's default leaves a database connection open."""
    return ChatMemoryBuffer.from_defaults(token_limit=3000, tokenizer_fn=str.split)


@pytest.fixture
def chat_of(retriever, guard_of, llm_of):
    def build(*replies, **options):
        llm, prompts = llm_of(*replies)
        inner = ContextChatEngine.from_defaults(
            retriever=retriever,
            llm=llm,
            memory=memory(),
        )
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


def test_neither_rejected_answers_nor_feedback_stay_in_the_conversation(chat_of, chat):
    engine, prompts = chat_of(WRONG, ANSWER, action="retry")
    assert chat(engine) == ANSWER
    assert f"- {WRONG}" in prompts[1]
    assert texts(engine) == [QUESTION, ANSWER]
    assert chat(engine, "And then?") == ANSWER
    assert texts(engine) == [QUESTION, ANSWER, "And then?", ANSWER]


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


def test_an_answer_without_sources_is_left_alone(guard_of, llm_of):
    llm, _ = llm_of(WRONG)
    inner = SimpleChatEngine.from_defaults(llm=llm, memory=memory())
    assert GuardedChatEngine(inner, guard_of()).chat(QUESTION).response == WRONG


def test_an_answer_to_a_condensed_question_is_guarded(engine, guard_of, llm_of, chat):
    llm, _ = llm_of(WRONG)
    inner = CondenseQuestionChatEngine.from_defaults(engine(llm=llm), llm=llm, memory=memory())
    guarded = GuardedChatEngine(inner, guard_of())
    assert chat(guarded) == FALLBACK
    assert texts(guarded) == [QUESTION, FALLBACK]
