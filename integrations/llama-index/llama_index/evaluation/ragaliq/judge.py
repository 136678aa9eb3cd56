"""One of LlamaIndex's models as the judge."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.llms import LLM

from ragaliq import ChatModelJudge, JudgeSpec, JudgeUsage

__all__ = ["judge_of"]


def judge_of(judge: JudgeSpec | LLM | str | None) -> JudgeSpec | str | None:
    """A judge, its name or nothing as it is; a model of LlamaIndex's as a judge."""
    if not isinstance(judge, LLM):
        return judge

    async def complete(system: str, user: str) -> tuple[str, JudgeUsage]:
        messages = [
            ChatMessage(role=MessageRole.SYSTEM, content=system),
            ChatMessage(role=MessageRole.USER, content=user),
        ]
        # Not `achat`: asynchronous clients belong to the loop that they were first used in, and
        # a judge works in several.
        reply = await asyncio.to_thread(judge.chat, messages)
        return reply.message.content or "", _usage(reply.raw)

    return ChatModelJudge(complete, model=judge.metadata.model_name)


def _usage(raw: Any) -> JudgeUsage:
    """The tokens of a reply, as the providers' clients say them; zeros where they do not."""
    spent = raw.get("usage") if isinstance(raw, dict) else getattr(raw, "usage", None)
    fields = spent if isinstance(spent, dict) else getattr(spent, "__dict__", {})

    def count(*names: str) -> int:
        return next((n for name in names if isinstance(n := fields.get(name), int)), 0)

    return JudgeUsage(
        input_tokens=count("input_tokens", "prompt_tokens"),
        output_tokens=count("output_tokens", "completion_tokens"),
        requests=1,
        cost_usd=None,
    )
