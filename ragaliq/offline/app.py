"""Ask an application questions, and capture its answers as cases."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from importlib.metadata import entry_points
from itertools import islice
from pathlib import Path
from traceback import extract_tb
from typing import Any, NamedTuple

from ragaliq.capture import RunLog
from ragaliq.capture.run import to_case
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import ConfigurationError, NotEvaluated

_GROUP = "ragaliq.applications"
"""Entry points by the package whose classes they ask: a function that takes the application, and
returns a coroutine function from a question's text to a case or a log; it raises `NotEvaluated`
where a run holds no answer."""

Answer = Callable[[str], Awaitable[RAGTestCase | RunLog]]

_ANSWERED = ("context", "response", "prompt_context", "history", "citations", "sources")
"""Fields of a case that the application gives."""


class NoAnswer(NamedTuple):
    """A question that the application did not answer.

    Attributes:
        id: The question's id.
        reason: The class of the error, or the reason why the run has no answer.
        place: File and line that raised the error; its message may hold texts.
    """

    id: str
    reason: str
    place: str = ""


async def answers(
    app: Any, questions: Iterable[RAGTestCase], *, concurrency: int = 8
) -> AsyncGenerator[RAGTestCase | NoAnswer]:
    """Ask an application each question and yield the outcomes in no particular order.

    Args:
        app: A LangChain runnable, a LlamaIndex engine or agent, or a function, or coroutine
            function, that takes a question's text and returns a `RAGTestCase`.
        questions: Cases; the application gives context, answer and conversation, and their other
            fields, such as the expected answer, are kept.
        concurrency: Questions asked concurrently.

    Raises:
        ConfigurationError: The application is of an unknown kind, or does not accept a text.
    """
    ask = await asyncio.to_thread(_answer_of, app)  # which may import an adapter

    async def asked(question: RAGTestCase) -> RAGTestCase | NoAnswer:
        try:
            case = to_case(await ask(question.query))
        except ConfigurationError:
            raise
        except NotEvaluated as error:
            return NoAnswer(question.id, error.reason)
        except Exception as error:  # noqa: BLE001 - the application's own; others go on
            frame = extract_tb(error.__traceback__)[-1]
            place = f"{Path(frame.filename).name}, line {frame.lineno}"
            return NoAnswer(question.id, type(error).__name__, place)
        update: dict[str, Any] = {name: getattr(case, name) for name in _ANSWERED}
        update["metadata"] = {**case.metadata, **question.metadata}
        chance = question.evaluated_run.sampling_probability
        update["run"] = case.evaluated_run.model_copy(update={"sampling_probability": chance})
        return question.model_copy(update=update)

    todo = iter(questions)
    running = done = set[asyncio.Task[RAGTestCase | NoAnswer]]()
    try:
        while True:
            for question in islice(todo, concurrency - len(running)):
                running.add(asyncio.create_task(asked(question)))
            if not running:
                return
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield task.result()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, *done, return_exceptions=True)


def numbered(questions: Iterable[str | RAGTestCase]) -> list[RAGTestCase]:
    """Turn questions into cases; texts are named by position, so that two runs can be compared."""
    return [
        RAGTestCase(id=f"question {number}", query=each, response="")
        if isinstance(each, str)
        else each
        for number, each in enumerate(questions, start=1)
    ]


def _answer_of(app: Any) -> Answer:
    """Find the way to ask an application.

    Raises:
        ConfigurationError: The application is of an unknown kind.
    """
    packages = {cls.__module__.partition(".")[0] for cls in type(app).__mro__}
    for point in entry_points(group=_GROUP):
        if point.name in packages:
            answer: Answer = point.load()(app)
            return answer
    if not callable(app) or inspect.isclass(app):
        raise ConfigurationError(
            f"an application of type {type(app).__name__} cannot be asked: give a "
            "LangChain runnable, a LlamaIndex engine or agent (with its adapter installed: "
            "langchain-ragaliq, llama-index-evaluation-ragaliq), or a function that returns a "
            "RAGTestCase"
        )

    async def call(question: str) -> RAGTestCase:
        case = await asyncio.to_thread(app, question)
        if inspect.isawaitable(case):
            case = await case
        if not isinstance(case, RAGTestCase):
            raise ConfigurationError(
                f"the application returned {type(case).__name__}: return a "
                "RAGTestCase(query=..., context=[...], response=...), or wrap a function that "
                "uses LangChain: RunnableLambda(function)"
            )
        return case

    return call
