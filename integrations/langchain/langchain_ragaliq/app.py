"""Questions to a runnable, for `ragaliq.evaluate(app, questions)`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable

from langchain_ragaliq.recording import Recorder
from ragaliq import ConfigurationError, Monitor, RAGTestCase
from ragaliq.capture import QUESTION_KEYS, RunLog


def answerer(app: Runnable[Any, Any]) -> Callable[[str], Awaitable[RAGTestCase | RunLog]]:
    """Make a coroutine function that asks the application and captures its answer.

    Raises:
        ragaliq.ConfigurationError: Its schema does not show which input is the question.
    """
    given = _input_of(app)
    monitor = Monitor(judge="local", enabled=False)  # it evaluates nothing

    async def answer(question: str) -> RAGTestCase | RunLog:
        seen, value = Recorder(monitor), given(question)
        output = await app.ainvoke(value, {"callbacks": [seen]})
        return seen.case(value, output)

    return answer


def _input_of(app: Runnable[Any, Any]) -> Callable[[str], Any]:
    """Make a function from a question to the runnable's input, by its schema."""
    schema = app.get_input_jsonschema()
    fields = schema.get("properties")
    if not fields:
        return lambda question: question
    named = next((name for name in QUESTION_KEYS if name in fields), None)
    if named is None and "messages" in fields:
        return lambda question: {"messages": [HumanMessage(question)]}
    needed = [name for name in schema.get("required", fields) if name in fields]
    if named is None and len(needed) == 1:
        named = needed[0]
    if named is None:
        raise ConfigurationError(
            f"the application takes {', '.join(fields)}, and which of them is the question is not "
            "known: put a step before it, such as "
            "RunnableLambda(lambda question: {'topic': question}) | chain"
        )
    return lambda question: {named: question}
