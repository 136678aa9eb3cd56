"""`@monitor.trace`: runs of an application without a framework."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from ragaliq.capture import Found, Reader, RunLog, find_current_runs
from ragaliq.errors import ConfigurationError
from ragaliq.telemetry.emit import current_span_target

if TYPE_CHECKING:
    from ragaliq.live.monitor import Monitor
    from ragaliq.live.run import RunHandle


logger = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])

# The call of this task or thread that is followed.
_LOG: ContextVar[RunLog | None] = ContextVar("ragaliq_traced", default=None)


_READER = Reader()


def _current_runs() -> list[tuple[RunLog, Reader]]:
    """The call of this task or thread, for `add_context`."""
    log = _LOG.get()
    return [] if log is None else [(log, _READER)]


find_current_runs(_current_runs)


def traced(
    monitor: Monitor,
    function: F,
    *,
    pipeline: str,
    question: str | None,
    answer: Callable[[Any], str] | None,
) -> F:
    """Wrap the function so that each call is captured as a run; see `Monitor.trace`.

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
        log = RunLog(run.run_id if run is not None else "")
        returned: list[object] = []
        token = _LOG.set(log)
        try:
            yield returned.append
        except BaseException:
            if run is not None:
                run.discard("errored")
            raise
        finally:
            # A dropped coroutine may be closed in another context.
            with suppress(ValueError):
                _LOG.reset(token)
        if run is not None:
            given: dict[Any, Any]
            try:
                given = signature.bind(*arguments, **keywords).arguments
            except TypeError:
                # An inner decorator changed the parameters but not the signature.
                given = dict(enumerate(arguments)) | keywords
            texts = [value for value in given.values() if isinstance(value, str)]
            asked = given.get(question) if question else next(iter(texts), None)
            _submit(run, log, asked, returned[0], answer)

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
    log: RunLog,
    asked: object,
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
        log.question, log.answer = Found(asked, "argument"), Found(text, "returned")
        run.submit(log, target=current_span_target())
