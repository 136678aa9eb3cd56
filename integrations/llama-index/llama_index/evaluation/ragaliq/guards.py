"""Guards around query and chat engines: answers are checked before they go out."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.chat_engine.types import (
    AgentChatResponse,
    BaseChatEngine,
    StreamingAgentChatResponse,
)

# The documented name, though LlamaIndex has it in no `__all__`.
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.memory import BaseMemory
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle

from llama_index.evaluation.ragaliq._private import (
    SPAN_ID,
    TAGS,
    memory_of,
    openinference_target,
)
from llama_index.evaluation.ragaliq.judge import judge_of
from llama_index.evaluation.ragaliq.reading import (
    aread_answer,
    read_answer,
)
from llama_index.evaluation.ragaliq.recording import Recorder, case_of_call
from llama_index.evaluation.ragaliq.span_handler import RagaliqSpanHandler
from ragaliq import ConfigurationError, Guard, GuardRejected, GuardResult, Monitor
from ragaliq.capture import RecordedRun, takes_only

__all__ = ["GuardedChatEngine", "GuardedQueryEngine"]

_History = list[ChatMessage]


class GuardedQueryEngine(BaseQueryEngine):
    """Query engine whose answers are checked before they go out.

        engine = GuardedQueryEngine(index.as_query_engine(), judge="claude")

    An answer that may not go out is replaced, gets the decision in its `metadata["ragaliq"]`, or
    raises `GuardRejected`, according to the guard's `action`. A stream is held back until the
    answer is judged, and then comes in one piece. An answer that the guard has judged is not scored
    again by an attached handler.

    Args:
        engine: What is guarded.
        guard: Decides; built from `options` when not given.
        pipeline: The application's name for the engine.
        **options: Arguments of `ragaliq.Guard`.

    Raises:
        ConfigurationError: A setting is wrong.
    """

    @takes_only(Guard, Monitor)
    def __init__(
        self,
        engine: BaseQueryEngine,
        guard: Guard | None = None,
        *,
        pipeline: str = "",
        **options: Any,
    ) -> None:
        super().__init__(callback_manager=engine.callback_manager)
        self.guard = _guard_of(guard, options)
        self._engine = engine
        self._gate = _Gate(self.guard, pipeline)

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """Retrieve with the guarded engine."""
        return self._engine.retrieve(query_bundle)

    def _get_prompt_modules(self) -> PromptMixinType:
        return {"engine": self._engine}

    def _query(self, query_bundle: QueryBundle) -> Any:
        if self.guard.is_off:
            return self._engine.query(query_bundle)
        with self._gate.watching() as seen:
            response = self._engine.query(query_bundle)
            answer = read_answer(response)
        case = case_of_call(seen, query_bundle.query_str, answer, response)
        result = self.guard.check(case, **self._gate.origin())
        return self._gate.released(response, answer, result)[0]

    async def _aquery(self, query_bundle: QueryBundle) -> Any:
        if self.guard.is_off:
            return await self._engine.aquery(query_bundle)
        with self._gate.watching() as seen:
            response = await self._engine.aquery(query_bundle)
            answer = await aread_answer(response)
        case = case_of_call(seen, query_bundle.query_str, answer, response)
        result = await self.guard.acheck(case, **self._gate.origin())
        return self._gate.released(response, answer, result)[0]


class GuardedChatEngine(BaseChatEngine):
    """Chat engine whose answers are checked before they go out.

        engine = GuardedChatEngine(index.as_chat_engine(), judge="claude")

    See `GuardedQueryEngine`; a streamed answer has no place for an annotation and passes as it is.
    The engine's memory keeps the user's message and the answer that went out, and nothing of a turn
    that raised `GuardRejected`.

    Args:
        engine: What is guarded.
        guard: Decides; built from `options` when not given.
        memory: Where the engine keeps the conversation; by default the memory it was built with.
        pipeline: The application's name for the engine.
        **options: Arguments of `ragaliq.Guard`.

    Raises:
        ConfigurationError: A setting is wrong.
    """

    @takes_only(Guard, Monitor)
    def __init__(
        self,
        engine: BaseChatEngine,
        guard: Guard | None = None,
        *,
        memory: BaseMemory | None = None,
        pipeline: str = "",
        **options: Any,
    ) -> None:
        self.guard = _guard_of(guard, options)
        self._engine = engine
        self._memory = memory or memory_of(engine)
        self._gate = _Gate(self.guard, pipeline)

    @property
    def chat_history(self) -> _History:
        """The conversation so far."""
        return list(self._engine.chat_history)

    def reset(self) -> None:
        """Start a new conversation."""
        self._engine.reset()

    def chat(self, message: str, chat_history: _History | None = None) -> AgentChatResponse:
        """Answer a message."""
        before = list(self.chat_history if chat_history is None else chat_history)
        with self._gate.watching() as seen:
            response = self._engine.chat(message, chat_history)
            answer = read_answer(response)
        case = case_of_call(seen, message, answer, response)
        result = self.guard.check(case, **self._gate.origin())
        try:
            released, shown = self._gate.released(_whole(response, answer), answer, result)
        except GuardRejected:
            if self._memory is not None:
                self._memory.set(before)
            raise
        if shown != answer and self._memory is not None:
            self._memory.set([*before, *_turn(message, shown)])
        return released  # type: ignore[no-any-return]

    async def achat(self, message: str, chat_history: _History | None = None) -> AgentChatResponse:
        """`chat` for asynchronous code."""
        before = list(self.chat_history if chat_history is None else chat_history)
        with self._gate.watching() as seen:
            response = await self._engine.achat(message, chat_history)
            answer = await aread_answer(response)
        case = case_of_call(seen, message, answer, response)
        result = await self.guard.acheck(case, **self._gate.origin())
        try:
            released, shown = self._gate.released(_whole(response, answer), answer, result)
        except GuardRejected:
            if self._memory is not None:
                await self._memory.aset(before)
            raise
        if shown != answer and self._memory is not None:
            await self._memory.aset([*before, *_turn(message, shown)])
        return released  # type: ignore[no-any-return]

    def stream_chat(
        self, message: str, chat_history: _History | None = None
    ) -> StreamingAgentChatResponse:
        """Answer a message; the stream comes in one piece, when the answer is judged."""
        return _in_one_piece(self.chat(message, chat_history))

    async def astream_chat(
        self, message: str, chat_history: _History | None = None
    ) -> StreamingAgentChatResponse:
        """`stream_chat` for asynchronous code."""
        return _in_one_piece(await self.achat(message, chat_history))


def _guard_of(guard: Guard | None, options: dict[str, Any]) -> Guard:
    """Return the guard, or make one from `options`."""
    if guard is not None and options:
        raise ConfigurationError(f"give a guard or its options, not both: {sorted(options)}")
    return guard or Guard(**{**options, "judge": judge_of(options.get("judge"))})


class _Gate:
    """Guard of one engine: captures its calls, and checks their answers.

    Args:
        guard: Decides.
        pipeline: The application's name for the engine.
    """

    def __init__(self, guard: Guard, pipeline: str) -> None:
        self._guard, self._pipeline = guard, pipeline
        self._recorder = Recorder(guard.monitor)

    @contextmanager
    def watching(self) -> Iterator[list[RecordedRun]]:
        """Collect the runs that end inside the block, in this thread or task and its children."""
        if self._guard.is_off:
            yield []
            return
        with self._recorder.recording() as seen:
            yield seen

    def origin(self) -> dict[str, Any]:
        """Details of the run, for `Guard.check`."""
        session_id = (TAGS.get() or {}).get("session_id")
        return {
            "target": openinference_target(),
            "pipeline": self._pipeline,
            "session_id": None if session_id is None else str(session_id),
            "framework": "llama_index",
        }

    def released(self, response: Any, answer: str, result: GuardResult) -> tuple[Any, str]:
        """Released response, of the same type as the engine's, and its text.

        Raises:
            GuardRejected: The answer must not go out.
        """
        step = self._guard.step(result)
        if step == "fallback":
            other = self._guard.fallback(result)
            answer = other.model_dump_json() if isinstance(other, BaseModel) else str(other)
            response = _replaced(response, other)
        elif step == "annotate" and hasattr(response, "metadata"):
            metadata = {**(response.metadata or {}), "ragaliq": result.summary}
            response = dataclasses.replace(response, metadata=metadata)
        _note_guarded(answer)
        return _streaming_again(response, answer), answer


# What goes out


def _replaced(response: Any, content: Any) -> Any:
    if isinstance(response, PydanticResponse):
        kind = PydanticResponse if isinstance(content, BaseModel) else Response
        return kind(content, response.source_nodes, response.metadata)
    if isinstance(response, Response | AgentChatResponse):
        return dataclasses.replace(response, response=str(content))
    if isinstance(response, StreamingResponse | AsyncStreamingResponse):
        return response  # its text is put in when it is made to stream again
    return content


def _streaming_again(response: Any, text: str) -> Any:
    """Make a held-back stream a stream of one piece; return everything else as it is."""
    if isinstance(response, StreamingResponse):
        return dataclasses.replace(response, response_gen=_one(text), response_txt=None)
    if isinstance(response, AsyncStreamingResponse):
        return dataclasses.replace(response, response_gen=_aone(text), response_txt=None)
    return response


def _whole(response: Any, answer: str) -> AgentChatResponse:
    """Convert a chat engine's response to one without a stream."""
    if isinstance(response, AgentChatResponse):
        return response
    return AgentChatResponse(answer, sources=response.sources, source_nodes=response.source_nodes)


def _in_one_piece(response: AgentChatResponse) -> StreamingAgentChatResponse:
    message = ChatMessage(role=MessageRole.ASSISTANT, content=response.response)
    said = ChatResponse(message=message, delta=response.response)
    return StreamingAgentChatResponse(
        response=response.response,
        sources=response.sources,
        source_nodes=response.source_nodes,
        chat_stream=_one(said),
        achat_stream=_aone(said),
        is_writing_to_memory=False,  # the engine has done so
    )


def _one(item: Any) -> Generator[Any, None, None]:
    yield item


async def _aone(item: Any) -> AsyncGenerator[Any]:
    yield item


def _turn(message: str, answer: str) -> _History:
    return [
        ChatMessage(role=MessageRole.USER, content=message),
        ChatMessage(role=MessageRole.ASSISTANT, content=answer),
    ]


def _note_guarded(answer: str) -> None:
    """Mark an answer as scored, so that ragaliq's handlers do not score it again."""
    span_id = SPAN_ID.get()
    for handler in get_dispatcher().span_handlers:
        if span_id is not None and isinstance(handler, RagaliqSpanHandler):
            handler.scored_by_guard(span_id, answer)
