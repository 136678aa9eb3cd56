"""Ask an application questions, and capture its answers as cases."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing, suppress
from importlib.metadata import entry_points
from itertools import islice
from pathlib import Path
from traceback import extract_tb
from typing import Any, NamedTuple

from ragaliq.capture import RunLog
from ragaliq.capture.run import to_case
from ragaliq.core.files import file_errors, owner_only, replace_file
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import ConfigurationError, DatasetError, NotEvaluated

logger = logging.getLogger(__name__)

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
    app: Any,
    questions: Iterable[RAGTestCase],
    *,
    concurrency: int = 8,
    kept: Path | None = None,
) -> AsyncGenerator[RAGTestCase | NoAnswer]:
    """Ask an application each question and yield the outcomes in no particular order.

    Args:
        app: See `_asked`.
        questions: See `_asked`.
        concurrency: Questions asked concurrently.
        kept: A file (`.jsonl`) to which each answer is added at once. The application is not asked
            again what an existing file answers under the same id. At the end the file has the
            order of the questions, and then what was not asked this time.

    Raises:
        ConfigurationError: The application is of an unknown kind, or does not accept a text.
        DatasetError: The file cannot be read or written, or holds something else.
    """
    if kept is None:
        async with aclosing(_asked(app, questions, concurrency)) as found:
            async for answer in found:
                yield answer
        return
    questions = list(questions)
    held: dict[str, RAGTestCase] = {}
    earlier = await asyncio.to_thread(_read, kept)
    for question in questions:
        if (case := earlier.get(question.id)) is not None and case.query == question.query:
            held[question.id] = _answered(question, case)
    if held:  # the application may have changed since
        logger.warning(
            "%s: %d answers are kept there and not asked for again; delete it for new ones",
            *(kept, len(held)),
        )
    for case in list(held.values()):
        yield case
    todo = [question for question in questions if question.id not in held]
    async with aclosing(_asked(app, todo, concurrency)) as found:
        async for answer in found:
            if isinstance(answer, RAGTestCase):
                held[answer.id] = answer
                await asyncio.to_thread(_append, kept, answer)
            yield answer
    # What was not asked this time is kept as well: it was paid for.
    others = [case for name, case in earlier.items() if name not in held]
    ordered = [held[each.id] for each in questions if each.id in held] + others
    await asyncio.to_thread(replace_file, kept, "".join(map(_line, ordered)))


def _append(path: Path, case: RAGTestCase) -> None:
    with file_errors(path), open(path, "a", encoding="utf-8", opener=owner_only) as file:
        file.write(_line(case))


def _line(case: RAGTestCase) -> str:
    row = case.model_dump(exclude_defaults=True) | {"id": case.id}
    return json.dumps(row, default=str) + "\n"


def _read(path: Path) -> dict[str, RAGTestCase]:
    """Answers of a file by id. A last line that a crash cut short is removed."""
    found: dict[str, RAGTestCase] = {}
    with file_errors(path):
        data = path.read_bytes() if path.exists() else b""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise DatasetError(f"{path} is not a file of answers: it is not UTF-8") from None
    whole = text[: text.rfind("\n") + 1]
    for number, line in enumerate(whole.split("\n")[:-1], start=1):
        try:
            # pydantic's own parser refuses half surrogate pairs, which answers may have.
            case = RAGTestCase.model_validate(json.loads(line))
        except (ValueError, TypeError):
            raise DatasetError(
                f"{path}, line {number} is not an answer as ragaliq keeps it; mend or remove the "
                "line, or keep the answers in another file"
            ) from None
        found[case.id] = case
    if whole != text:
        replace_file(path, whole)
    return found


def _answered(question: RAGTestCase, case: RAGTestCase) -> RAGTestCase:
    """The question with what the application gave, and the question's own chance and metadata."""
    update: dict[str, Any] = {name: getattr(case, name) for name in _ANSWERED}
    update["metadata"] = {**case.metadata, **question.metadata}
    chance = question.evaluated_run.sampling_probability
    update["run"] = case.evaluated_run.model_copy(update={"sampling_probability": chance})
    return question.model_copy(update=update)


async def _asked(
    app: Any, questions: Iterable[RAGTestCase], concurrency: int
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
        if not question.query.strip():
            return NoAnswer(question.id, "no_question")
        try:
            case = to_case(await ask(question.query))
        except ConfigurationError:
            raise
        except NotEvaluated as error:
            return NoAnswer(question.id, error.reason)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the application's own
            frame = extract_tb(error.__traceback__)[-1]
            place = f"{Path(frame.filename).name}, line {frame.lineno}"
            return NoAnswer(question.id, type(error).__name__, place)
        return _answered(question, case)

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
    """Turn questions into cases; texts are named by position, so that two runs can be compared.

    Raises:
        ConfigurationError: Something else is among them, or two cases have one id.
    """
    if isinstance(questions, str | RAGTestCase):
        raise ConfigurationError(
            "evaluate: questions must be a list; give [question] for a single one"
        )
    found: dict[str, RAGTestCase] = {}
    for number, each in enumerate(questions, start=1):
        if isinstance(each, str):
            case = RAGTestCase(id=f"question {number}", query=each, response="")
        elif isinstance(each, RAGTestCase):
            case = each
        else:
            raise ConfigurationError(
                f"evaluate: questions[{number - 1}] must be a text or a RAGTestCase, not "
                f"{type(each).__name__}"
            )
        if case.id in found:  # which an answer is kept under
            raise ConfigurationError(
                f"evaluate: two questions have the id {case.id!r}; give each its own"
            )
        found[case.id] = case
    return list(found.values())


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
    with suppress(ValueError):  # built-in functions have no signature
        try:
            inspect.signature(app).bind("")
        except TypeError as error:
            raise ConfigurationError(
                f"the application is called with one argument, the question's text: {error}"
            ) from None

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
