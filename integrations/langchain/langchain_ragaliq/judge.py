"""LangChain's chat models as judges."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage

from langchain_ragaliq.reading import READER
from ragaliq import ChatModelJudge, JudgeSpec, ModelReply


def judge_of(judge: JudgeSpec | BaseChatModel | str | None) -> JudgeSpec | str | None:
    """Wrap a LangChain chat model as a judge; return anything else as it is."""
    if not isinstance(judge, BaseChatModel):
        return judge

    async def complete(system: str, user: str) -> ModelReply:
        # Not `ainvoke`: asynchronous clients belong to the loop that they were first used in, and
        # a judge works in several.
        reply = await asyncio.to_thread(judge.invoke, [SystemMessage(system), HumanMessage(user)])
        found = READER.message(reply)
        details = {**reply.additional_kwargs, **reply.response_metadata}
        return ModelReply(
            text=found.text if found is not None else "",
            # The client's own figures where LangChain has none in its words.
            usage=reply.usage_metadata or details,
            details=details,
        )

    name = getattr(judge, "model_name", None) or getattr(judge, "model", None)
    return ChatModelJudge(complete, model=str(name or type(judge).__name__))


def with_judge(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a monitor or a guard, in which the judge may be a chat model."""
    return {**options, "judge": judge_of(options["judge"])} if "judge" in options else options
