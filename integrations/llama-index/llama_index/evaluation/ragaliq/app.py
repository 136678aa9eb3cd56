"""Questions to engines and agents, for `ragaliq.evaluate(app, questions)`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from llama_index.core.agent.workflow import AgentWorkflow, BaseWorkflowAgent
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.chat_engine.types import BaseChatEngine

from llama_index.evaluation.ragaliq.reading import answer_of, aread_answer, payload_of
from llama_index.evaluation.ragaliq.recording import Recorder, case_of_call
from ragaliq import ConfigurationError, Monitor, NotEvaluated
from ragaliq.capture import RunLog


def answerer(app: Any) -> Callable[[str], Awaitable[RunLog]]:
    """Make a coroutine function that asks the application and captures its answer.

    Each question begins a new conversation; a chat engine answers one after the other.

    Raises:
        ragaliq.ConfigurationError: It is neither an engine nor an agent.
    """
    ask = _ask_of(app)
    # It evaluates nothing.
    recorder = Recorder(Monitor(judge="local", enabled=False))

    async def answer(question: str) -> RunLog:
        with recorder.recording() as seen:
            response = await ask(question)
            text = answer_of(payload_of(response)) or await aread_answer(response)
        if not text.strip():
            raise NotEvaluated("no_answer")
        return case_of_call(seen, question, text, response)

    return answer


def _ask_of(app: Any) -> Callable[[str], Awaitable[Any]]:
    if isinstance(app, BaseQueryEngine):
        return app.aquery
    if isinstance(app, BaseChatEngine):
        turn = asyncio.Lock()

        async def chat(question: str) -> Any:
            async with turn:
                app.reset()
                return await app.achat(question)

        return chat
    if isinstance(app, BaseWorkflowAgent | AgentWorkflow):

        async def run(question: str) -> Any:
            return await app.run(user_msg=question)

        return run
    raise ConfigurationError(
        f"an application of type {type(app).__name__} cannot be asked: give a query "
        "engine, a chat engine or an agent, or a function that returns a RAGTestCase"
    )
