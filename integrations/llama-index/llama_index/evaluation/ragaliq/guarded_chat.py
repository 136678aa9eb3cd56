"""A guard around a chat engine."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.chat_engine.types import (
    AgentChatResponse,
    BaseChatEngine,
    StreamingAgentChatResponse,
)
from llama_index.core.memory import BaseMemory

from llama_index.evaluation.ragaliq.guarded_engine import guard_of
from llama_index.evaluation.ragaliq.guarding import Attempts
from ragaliq import Guard, GuardRejected

__all__ = ["GuardedChatEngine"]

History = list[ChatMessage]


class GuardedChatEngine(BaseChatEngine):
    """A chat engine whose answers are checked before they go out.

        engine = GuardedChatEngine(index.as_chat_engine(), judge="claude")

    See `GuardedQueryEngine`; a streamed answer has no place for an annotation and passes as it is.
    The conversation keeps the user's message and the answer that went out: neither rejected answers
    nor feedback are left in the engine's memory.

    Args:
        engine: What is guarded.
        guard: Decides; built from `options` when not given.
        memory: Where the engine keeps the conversation; by default the memory it was built with.
        pipeline: The application's name for the engine.
        **options: Arguments of `ragaliq.Guard`.

    Raises:
        ConfigurationError: A setting is wrong.
    """

    def __init__(
        self,
        engine: BaseChatEngine,
        guard: Guard | None = None,
        *,
        memory: BaseMemory | None = None,
        pipeline: str = "",
        **options: Any,
    ) -> None:
        self.guard = guard_of(guard, options)
        self._engine = engine
        # All of LlamaIndex's engines have it under this name, and no public one.
        own = getattr(engine, "_memory", None)
        self._memory = memory or (own if isinstance(own, BaseMemory) else None)
        self._pipeline = pipeline

    @property
    def chat_history(self) -> History:
        """The conversation so far."""
        return list(self._engine.chat_history)

    def reset(self) -> None:
        """Start a new conversation."""
        self._engine.reset()

    def chat(
        self, message: str, chat_history: History | None = None
    ) -> AgentChatResponse | StreamingAgentChatResponse:
        """Answer a message."""
        return self._guarded(self._engine.chat, message, chat_history)  # type: ignore[no-any-return]

    def stream_chat(
        self, message: str, chat_history: History | None = None
    ) -> StreamingAgentChatResponse:
        """Answer a message; the stream comes in one piece, when the answer is judged."""
        return self._guarded(self._engine.stream_chat, message, chat_history)  # type: ignore[no-any-return]

    async def achat(
        self, message: str, chat_history: History | None = None
    ) -> AgentChatResponse | StreamingAgentChatResponse:
        """`chat` for asynchronous code."""
        return await self._aguarded(self._engine.achat, message, chat_history)  # type: ignore[no-any-return]

    async def astream_chat(
        self, message: str, chat_history: History | None = None
    ) -> StreamingAgentChatResponse:
        """`stream_chat` for asynchronous code."""
        return await self._aguarded(self._engine.astream_chat, message, chat_history)  # type: ignore[no-any-return]

    def _guarded(self, chat: Any, message: str, history: History | None) -> Any:
        if self.guard.is_off:
            return chat(message, history)
        before = list(self.chat_history if history is None else history)
        attempts = Attempts(self.guard, message, pipeline=self._pipeline)
        response = chat(message, history)
        try:
            while True:
                answer = _read(response)
                case = attempts.case(answer, response)
                result = None if case is None else self.guard.check(case, **attempts.origin)
                if not attempts.go_on(result):
                    break
                response = chat(f"{message}\n\n{attempts.feedback}", list(before))
        except GuardRejected:
            self._remember(before)
            raise
        response, answer = attempts.outgoing(response, answer)
        if attempts.made or attempts.is_replaced:
            self._remember(_conversation(before, message, answer))
        return response

    async def _aguarded(self, chat: Any, message: str, history: History | None) -> Any:
        if self.guard.is_off:
            return await chat(message, history)
        before = list(self.chat_history if history is None else history)
        attempts = Attempts(self.guard, message, pipeline=self._pipeline)
        response = await chat(message, history)
        try:
            while True:
                answer = await _aread(response)
                case = attempts.case(answer, response)
                result = None if case is None else await self.guard.acheck(case, **attempts.origin)
                if not attempts.go_on(result):
                    break
                response = await chat(f"{message}\n\n{attempts.feedback}", list(before))
        except GuardRejected:
            await self._aremember(before)
            raise
        response, answer = attempts.outgoing(response, answer)
        if attempts.made or attempts.is_replaced:
            await self._aremember(_conversation(before, message, answer))
        return response

    def _remember(self, conversation: History) -> None:
        if self._memory is not None:
            self._memory.set(conversation)

    async def _aremember(self, conversation: History) -> None:
        if self._memory is not None:
            await self._memory.aset(conversation)


def _conversation(before: Sequence[ChatMessage], message: str, answer: str) -> History:
    return [
        *before,
        ChatMessage(role=MessageRole.USER, content=message),
        ChatMessage(role=MessageRole.ASSISTANT, content=answer),
    ]


def _read(response: Any) -> str:
    if isinstance(response, StreamingAgentChatResponse):
        return "".join(response.response_gen)
    return str(response.response)


async def _aread(response: Any) -> str:
    if not isinstance(response, StreamingAgentChatResponse):
        return str(response.response)
    if response.achat_stream is None and response.chat_stream is not None:
        return await asyncio.to_thread(_read, response)
    return "".join([piece async for piece in response.async_response_gen()])
