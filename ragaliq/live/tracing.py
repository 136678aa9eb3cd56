"""`@monitor.trace`: runs of an application that no framework follows."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from ragaliq.capture import Found, RunLog
from ragaliq.core.log_once import LogOnce
from ragaliq.core.passages import Passage
from ragaliq.core.test_case import ContextChunk
from ragaliq.errors import ConfigurationError
from ragaliq.telemetry.emit import current_span_target

if TYPE_CHECKING:
    from ragaliq.live.monitor import Monitor
    from ragaliq.live.run import RunHandle


logger = logging.getLogger(__name__)
_LOG_ONCE = LogOnce(logger)

F = TypeVar("F", bound=Callable[..., Any])
Retrieved = str | ContextChunk | Passage

# What the function of this task or thread that is followed has retrieved so far.
_FOUND: ContextVar[list[Passage] | None] = ContextVar("ragaliq_found", default=None)


def add_context(*chunks: Retrieved) -> None:
    """Note what was retrieved; see `Monitor.add_context`."""
    found = _FOUND.get()
    if found is None:
        return
    for chunk in chunks:
        if isinstance(chunk, ContextChunk):
            own_id = None if chunk.id is None else str(chunk.id)
            chunk = Passage(chunk.text, own_id, chunk.score, chunk.metadata)  # noqa: PLW2901
        if isinstance(chunk, str | Passage):
            found.append(Passage(chunk) if isinstance(chunk, str) else chunk)
        else:  # the run is worth more than a chunk of a wrong kind
            kind = type(chunk).__name__
            _LOG_ONCE.message(
                kind,
                f"add_context: a {kind} is ignored; give its text, or a ContextChunk(text=...)",
            )


def traced(
    monitor: Monitor,
    function: F,
    *,
    pipeline: str,
    question: str | None,
    answer: Callable[[Any], str] | None,
) -> F:
    """The function, with each call followed as a run; see `Monitor.trace`.

    Raises:
        ConfigurationError: It is a generator, or has no parameter named `question`.
    """
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigurationError(
            "monitor.trace follows functions that return an answer; for one that yields it in "
            "parts use monitor.begin() and the run's submit()"
        )
    signature = inspect.signature(function)
    name = pipeline or getattr(function, "__name__", type(function).__name__)
    if question is not None and question not in signature.parameters:
        raise ConfigurationError(f"monitor.trace: {name} has no parameter {question!r}")

    @contextmanager
    def followed(arguments: Any, keywords: Any) -> Iterator[Callable[[object], None]]:
        run = monitor.begin(uuid4().hex, pipeline=name)
        found: list[Passage] = []
        returned: list[object] = []
        token = _FOUND.set(found)
        try:
            yield returned.append
        except BaseException:
            if run is not None:
                run.discard("errored")
            raise
        finally:
            # A coroutine that is dropped half-way may be closed in another context.
            with suppress(ValueError):
                _FOUND.reset(token)
        if run is not None:
            given: dict[Any, Any]
            try:
                given = signature.bind(*arguments, **keywords).arguments
            except TypeError:
                # A decorator below changed what the function takes, but not what it says it takes.
                given = dict(enumerate(arguments)) | keywords
            texts = [value for value in given.values() if isinstance(value, str)]
            asked = given.get(question) if question else next(iter(texts), None)
            _submit(run, asked, found, returned[0], answer)

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def follow(*arguments: Any, **keywords: Any) -> Any:
            with followed(arguments, keywords) as done:
                result = await function(*arguments, **keywords)
                done(result)
            return result

    else:

        @functools.wraps(function)
        def follow(*arguments: Any, **keywords: Any) -> Any:
            with followed(arguments, keywords) as done:
                result = function(*arguments, **keywords)
                done(result)
            return result

    return follow  # type: ignore[return-value]


def _submit(
    run: RunHandle,
    asked: object,
    found: list[Passage],
    returned: object,
    answer: Callable[[Any], str] | None,
) -> None:
    try:
        text = returned if answer is None else answer(returned)
    except Exception as error:  # noqa: BLE001 - the application's request must not notice
        logger.debug("the answer could not be taken: %s", type(error).__name__)
        run.discard("extract_failed")
        return
    if not isinstance(asked, str) or not asked.strip():
        run.discard("no_question")
    elif not isinstance(text, str):
        run.discard("no_answer")
    else:
        log = RunLog(run.run_id)
        log.question, log.answer = Found(asked, "argument"), Found(text, "returned")
        log.passages = found or None
        run.submit(log, target=current_span_target())
