"""What guards of query and chat engines have in common: one call, attempt by attempt."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, Generator
from typing import Any
from uuid import uuid4

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.chat_engine.types import AgentChatResponse, StreamingAgentChatResponse

# The documented name, though LlamaIndex has it in no `__all__`.
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.dispatcher import (  # type: ignore[attr-defined]
    active_instrument_tags,
)
from llama_index.core.instrumentation.span import active_span_id

from llama_index.evaluation.ragaliq.extract import passages_of, sources_of
from llama_index.evaluation.ragaliq.span_handler import RagaliqSpanHandler
from llama_index.evaluation.ragaliq.target import openinference_target
from ragaliq import CaseDraft, Guard, GuardResult

__all__ = ["Attempts"]

KEY = "ragaliq"


class Attempts:
    """The attempts at one answer.

    Args:
        guard: Decides.
        question: What the user asked.
        pipeline: The application's name for the engine.

    Attributes:
        made: How often the answer was made again.
        feedback: What to tell the model at the next attempt.
    """

    def __init__(self, guard: Guard, question: str, *, pipeline: str) -> None:
        self._guard = guard
        self._question = question
        self._pipeline = pipeline
        self._result: GuardResult | None = None
        self._step = "pass"
        self.made = 0
        self.feedback = ""

    def case(self, answer: str, response: Any) -> CaseDraft | None:
        """What there is to check of an attempt."""
        if not answer.strip():
            return None
        passages = passages_of(sources_of(response))
        return CaseDraft(id=uuid4().hex, query=self._question, passages=passages, response=answer)

    @property
    def origin(self) -> dict[str, Any]:
        """Where the answer comes from, for `Guard.check`."""
        session_id = (active_instrument_tags.get() or {}).get("session_id")
        return {
            "target": openinference_target(),
            "pipeline": self._pipeline,
            "session_id": None if session_id is None else str(session_id),
            "framework": "llama_index",
        }

    def go_on(self, result: GuardResult | None) -> bool:
        """Whether the answer is to be made again.

        Raises:
            GuardRejected: It must not go out.
        """
        self._result = result
        if result is None:
            return False
        self._step = self._guard.step(result, attempt=self.made)
        if self._step != "retry":
            return False
        self.made += 1
        self.feedback = self._guard.feedback(result)
        return True

    @property
    def is_replaced(self) -> bool:
        """Whether another answer goes out than the engine gave last."""
        return self._step == "fallback"

    def outgoing(self, response: Any, answer: str) -> tuple[Any, str]:
        """What goes out, of the same type as the engine's response, and its text."""
        content: Any = answer
        if self._result is not None and self._step == "fallback":
            content = self._guard.fallback(self._result)
            response = _replaced(response, content)
        elif self._result is not None and self._step == "annotate":
            response = _annotated(response, self._result)
        text = content.model_dump_json() if isinstance(content, BaseModel) else str(content)
        if self._result is not None:
            _note_guarded(text)
        return _streaming_again(response, text), text


def _replaced(response: Any, content: Any) -> Any:
    if isinstance(response, PydanticResponse):
        kind = PydanticResponse if isinstance(content, BaseModel) else Response
        return kind(content, response.source_nodes, response.metadata)
    if isinstance(response, Response | AgentChatResponse):
        return dataclasses.replace(response, response=str(content))
    return response  # a stream: its text is put in when it is made to stream again


def _annotated(response: Any, result: GuardResult) -> Any:
    if isinstance(response, StreamingAgentChatResponse):
        return response  # has no place for metadata
    metadata = {**(response.metadata or {}), KEY: result.summary}
    return dataclasses.replace(response, metadata=metadata)


def _streaming_again(response: Any, text: str) -> Any:
    """A stream that was held back, as a stream of one piece; everything else as it is."""
    if isinstance(response, StreamingResponse):
        return dataclasses.replace(response, response_gen=_one(text), response_txt=None)
    if isinstance(response, AsyncStreamingResponse):
        return dataclasses.replace(response, response_gen=_aone(text), response_txt=None)
    if isinstance(response, StreamingAgentChatResponse):
        said = ChatResponse(
            message=ChatMessage(role=MessageRole.ASSISTANT, content=text), delta=text
        )
        return StreamingAgentChatResponse(
            response=text,
            sources=response.sources,
            source_nodes=response.source_nodes,
            chat_stream=_one(said),
            achat_stream=_aone(said),
            is_writing_to_memory=False,  # the engine has done so
        )
    return response


def _one(item: Any) -> Generator[Any, None, None]:
    yield item


async def _aone(item: Any) -> AsyncGenerator[Any]:
    yield item


def _note_guarded(answer: str) -> None:
    """Tell ragaliq's handlers that an answer has been scored, so that they do not do it again."""
    span_id = active_span_id.get()
    if span_id is None:
        return
    for handler in get_dispatcher().span_handlers:
        if isinstance(handler, RagaliqSpanHandler):
            handler.scored_by_guard(span_id, answer)
