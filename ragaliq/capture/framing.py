"""Runs that an application frames itself: a `with` block, or each call of a function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from ragaliq.errors import ConfigurationError

F = TypeVar("F", bound=Callable[..., Any])


class RunFrame(Protocol):
    """A run that is framed by hand.

    Attributes:
        answer: What the run returned; the last model's reply where it is None.
    """

    answer: Any

    def inside(self) -> AbstractContextManager[object]:
        """The time in which what happens in this task or thread belongs to the run."""

    def ended(self, error: BaseException | None = None) -> None:
        """The run is over; only the first call counts."""


def frame_calls(
    function: F,
    start: Callable[[Any], RunFrame],
    *,
    question: str | None = None,
    text_of: Callable[[Any], str] = str,
) -> F:
    """The function, with each call framed as a run.

    A generator's run ends when its last item was taken; what it yields is the answer in parts.

    Args:
        function: Synchronous or not, a generator or not.
        start: Begins a run with a question.
        question: Name of the parameter that is the question; by default the first argument that
            is a text.
        text_of: The text of a generator's item.

    Raises:
        ConfigurationError: The function has no such parameter.
    """
    signature = inspect.signature(function)
    name = getattr(function, "__name__", type(function).__name__)
    if question is not None and question not in signature.parameters:
        raise ConfigurationError(f"trace: {name} has no parameter {question!r}")

    def begun(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> RunFrame:
        try:
            given = signature.bind(*arguments, **keywords).arguments
        except TypeError:  # the call itself will say so
            given = keywords
        if question is not None:
            return start(given.get(question))
        return start(next((value for value in given.values() if isinstance(value, str)), None))

    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def follow(*arguments: Any, **keywords: Any) -> Any:
            return _follow_items(
                function(*arguments, **keywords), begun(arguments, keywords), text_of
            )

    elif inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        def follow(*arguments: Any, **keywords: Any) -> Any:
            return _afollow_items(
                function(*arguments, **keywords), begun(arguments, keywords), text_of
            )

    elif inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def follow(*arguments: Any, **keywords: Any) -> Any:
            frame = begun(arguments, keywords)
            try:
                with frame.inside():
                    frame.answer = result = await function(*arguments, **keywords)
            except BaseException as error:
                frame.ended(error)
                raise
            frame.ended()
            return result

    else:

        @functools.wraps(function)
        def follow(*arguments: Any, **keywords: Any) -> Any:
            frame = begun(arguments, keywords)
            try:
                with frame.inside():
                    frame.answer = result = function(*arguments, **keywords)
            except BaseException as error:
                frame.ended(error)
                raise
            frame.ended()
            return result

    return follow  # type: ignore[return-value]


def _follow_items(
    items: Generator[Any, Any, Any], frame: RunFrame, text_of: Callable[[Any], str]
) -> Generator[Any, None, None]:
    said: list[str] = []
    try:
        while True:
            with frame.inside():  # the caller's own work between two items is not the run's
                try:
                    item = next(items)
                except StopIteration:
                    break
            said.append(text_of(item))
            yield item
    except BaseException as error:
        items.close()
        frame.ended(error)
        raise
    frame.answer = "".join(said)
    frame.ended()


async def _afollow_items(
    items: AsyncGenerator[Any, Any], frame: RunFrame, text_of: Callable[[Any], str]
) -> AsyncGenerator[Any]:
    said: list[str] = []
    try:
        while True:
            with frame.inside():
                try:
                    item = await anext(items)
                except StopAsyncIteration:
                    break
            said.append(text_of(item))
            yield item
    except BaseException as error:
        await items.aclose()
        frame.ended(error)
        raise
    frame.answer = "".join(said)
    frame.ended()
