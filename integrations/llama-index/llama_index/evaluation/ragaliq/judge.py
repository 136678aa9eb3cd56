"""LlamaIndex's models as judges."""

from __future__ import annotations

import asyncio

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.llms import LLM

from ragaliq import ChatModelJudge, JudgeSpec, ModelReply

__all__ = ["judge_of"]


def judge_of(judge: JudgeSpec | LLM | str | None) -> JudgeSpec | str | None:
    """Wrap a LlamaIndex model as a judge; return anything else as it is."""
    if not isinstance(judge, LLM):
        return judge

    async def complete(system: str, user: str) -> ModelReply:
        messages = [
            ChatMessage(role=MessageRole.SYSTEM, content=system),
            ChatMessage(role=MessageRole.USER, content=user),
        ]
        # Not `achat`: asynchronous clients belong to the loop that they were first used in, and
        # a judge works in several.
        reply = await asyncio.to_thread(judge.chat, messages)
        # The client's own counts if it does not return the raw reply.
        usage = reply.additional_kwargs if reply.raw is None else reply.raw
        return ModelReply(text=reply.message.content or "", usage=usage, details=reply.raw)

    return ChatModelJudge(complete, model=judge.metadata.model_name)
