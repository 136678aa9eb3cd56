"""Question, context and answer of every kind of chat engine."""

import asyncio
import gc

import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.chat_engine.types import StreamingAgentChatResponse
from llama_index.core.memory import ChatMemoryBuffer

QUESTION = "And how long does it take?"
ANSWER = "Refunds take five days."
HISTORY = [ChatMessage("Can I get a refund?"), ChatMessage("Yes.", role="assistant")]


@pytest.fixture
def memory():
    # The default memory keeps a database connection that nobody closes.
    return ChatMemoryBuffer.from_defaults(token_limit=10_000)


@pytest.fixture(params=["context", "condense_question", "condense_plus_context"])
def chat_engine(request, retriever, engine, scripted_llm, memory):
    """Every engine with retrieval; the model rewrites questions and answers the rewritten ones."""

    def reply(prompt):
        asked_to_rewrite = "standalone question" in prompt.lower()
        return "How long do refunds take?" if asked_to_rewrite else ANSWER

    llm = scripted_llm(reply=reply)
    if request.param == "context":
        return ContextChatEngine.from_defaults(retriever, llm=llm, memory=memory)
    if request.param == "condense_plus_context":
        return CondensePlusContextChatEngine.from_defaults(retriever, llm=llm, memory=memory)
    return CondenseQuestionChatEngine.from_defaults(engine(llm=llm), llm=llm, memory=memory)


def test_a_streamed_chat_is_submitted_once_written_to_the_history(
    chat_engine, monitor, handler, docs
):
    stream = chat_engine.stream_chat(QUESTION, HISTORY)
    assert "".join(stream.response_gen) == ANSWER
    assert monitor.only == (QUESTION, docs, ANSWER)


async def test_an_asynchronous_streamed_chat_gives_the_same(chat_engine, monitor, handler, docs):
    stream = await chat_engine.astream_chat(QUESTION, HISTORY)
    assert "".join([token async for token in stream.async_response_gen()]) == ANSWER
    assert monitor.only == (QUESTION, docs, ANSWER)


@pytest.mark.usefixtures("handler")
def test_a_chat_engine_around_another_counts_once(retriever, llm, memory, monitor, docs):
    class Polite(ContextChatEngine):
        def chat(self, message, chat_history=None, **kwargs):
            return super().chat(message, chat_history, **kwargs)

        def stream_chat(self, message, chat_history=None, **kwargs):
            return super().stream_chat(message, chat_history, **kwargs)

    polite = Polite.from_defaults(retriever, llm=llm, memory=memory)
    polite.chat(QUESTION)
    list(polite.stream_chat(QUESTION).response_gen)
    assert monitor.outcomes == {"evaluated": 2}
    assert [case.context_texts for case in monitor.cases] == [docs, docs]


@pytest.mark.parametrize("method", ["chat", "stream_chat"])
def test_a_chat_without_retrieval_is_no_rag(llm, memory, monitor, handler, method):
    reply = getattr(SimpleChatEngine.from_defaults(llm=llm, memory=memory), method)(QUESTION)
    if method == "stream_chat":
        list(reply.response_gen)
    assert monitor.outcomes == {"not_rag": 1}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_chat_stream_that_fails_is_errored(retriever, scripted_llm, memory, monitor, handler):
    def reply(prompt):
        raise ConnectionError("gone")

    chat = ContextChatEngine.from_defaults(retriever, llm=scripted_llm(reply=reply), memory=memory)
    with pytest.raises(ConnectionError):  # LlamaIndex 0.14.22 to 0.14.24: from `stream_chat`
        list(chat.stream_chat(QUESTION).response_gen)
    assert monitor.outcomes == {"errored": 1}


async def test_a_chat_stream_whose_reading_is_cancelled_is_cancelled(
    retriever, scripted_llm, memory, monitor, handler
):
    reached = asyncio.Event()

    class Stuck(scripted_llm):
        async def astream_complete(self, prompt, formatted=False, **kwargs):
            async def words():
                yield CompletionResponse(text="Refunds", delta="Refunds")
                reached.set()
                await asyncio.Event().wait()

            return words()

    llm = Stuck(reply=lambda prompt: ANSWER)
    chat = ContextChatEngine.from_defaults(retriever, llm=llm, memory=memory)
    streams = []  # stays empty with LlamaIndex 0.14.22 to 0.14.24: `astream_chat` is stuck itself

    async def read():
        streams.append(await chat.astream_chat(QUESTION))
        async for _ in streams[0].async_response_gen():
            pass

    reading = asyncio.create_task(read())
    await reached.wait()
    # In this order: a cancelled reader waits for the writer.
    for task in (*(stream.awrite_response_to_history_task for stream in streams), reading):
        if task is not None:  # LlamaIndex before 0.14.19 leaves the reading to the application
            task.cancel()
            await asyncio.wait([task])
    assert monitor.outcomes == {"cancelled": 1}


@pytest.mark.parametrize("consume", [True, False])
def test_a_chat_stream_that_the_application_reads_itself_is_followed(
    retriever, monitor, handler, docs, consume
):
    class Bare(SimpleChatEngine):
        def stream_chat(self, message, chat_history=None):
            nodes = retriever.retrieve(message)
            words = ("Refunds", " take", " five", " days.")
            return StreamingAgentChatResponse(
                chat_stream=(ChatResponse(message=ChatMessage(word), delta=word) for word in words),
                source_nodes=nodes,
                is_writing_to_memory=False,
            )

    stream = Bare(None, None, []).stream_chat(QUESTION).response_gen
    next(stream)
    if consume:
        list(stream)
        assert monitor.only == (QUESTION, docs, ANSWER)
    else:
        stream.close()
        del stream
        gc.collect()
        assert monitor.outcomes == {"truncated": 1}


@pytest.mark.usefixtures("handler")
@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_completion_models_prompt_is_read_as_messages_in_whatever_format_it_is_written(
    retriever, scripted_llm, memory, monitor, is_streamed
):
    def lettered(messages):
        return "\n".join(f"{each.role.value[0].upper()}) {each.content}" for each in messages)

    llm = scripted_llm(reply=lambda prompt: ANSWER, messages_to_prompt=lettered)
    engine = ContextChatEngine.from_defaults(retriever, llm=llm, memory=memory)
    history = [HISTORY[0], ChatMessage("Yes.\n\nThey come in gold.", role="assistant")]
    if is_streamed:
        list(engine.stream_chat(QUESTION, history).response_gen)
    else:
        engine.chat(QUESTION, history)
    assert monitor.flush(10)
    [case] = [each.case for each in monitor.results]
    assert "gold" not in case.prompt_context
    assert [turn.text for turn in case.history] == ["Can I get a refund?", history[1].content]
