"""Framed runs: the application marks their begin and end, by a `with` block or a decorator."""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

from ragaliq.errors import ConfigurationError

F = TypeVar("F", bound=Callable[..., Any])


class FramingHandler(ABC):
    """Base of a framework's handler: lets the application frame runs by hand."""

    _frame: ClassVar[ContextVar[Any]]
    """The framed run that the code of this task or thread is in."""

    @abstractmethod
    def frame_started(self, question: Any, pipeline: str) -> Any:
        """Begin a run; None inside another framed run, which it is a part of. Never raises."""

    @abstractmethod
    def frame_ended(self, run: Any, answer: Any, error: BaseException | None) -> None:
        """End the run that `frame_started` returned; never raises."""

    @staticmethod
    @abstractmethod
    def _text_of_item(item: Any) -> str:
        """Text that a generator's item adds to an answer."""

    def run(self, question: str | None = None, *, pipeline: str = "") -> FramedRun:
        """Frame a run by hand: what happens inside the `with` block is one run.

        ```python
        with handler.run("How long do refunds take?") as run:
            documents = search("refunds")
            run.answer = ask(prompt(documents))
        ```

        Args:
            question: The user's question.
            pipeline: The run's name in results.
        """
        return FramedRun(self, question, pipeline)

    def trace(
        self, function: F | None = None, *, pipeline: str = "", question: str | None = None
    ) -> Any:
        """Frame each call of a function as a run, as a decorator with or without arguments.

        What the function returns, or yields in parts, is the answer. A generator's run ends when
        its last item was taken; a function that returns a generator is one.

        Args:
            function: Any function, a coroutine's or a generator's too.
            pipeline: The name of its runs in results; by default the function's.
            question: Name of its parameter that is the question; by default the first argument
                that is a text.

        Raises:
            ragaliq.ConfigurationError: It has no such parameter.
        """
        if function is None:
            return functools.partial(self.trace, pipeline=pipeline, question=question)
        name = getattr(function, "__name__", type(function).__name__)
        signature = inspect.signature(function)
        if question is not None and question not in signature.parameters:
            raise ConfigurationError(f"trace: {name} has no parameter {question!r}")

        def begun(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> FramedRun:
            given: dict[Any, Any]
            try:
                given = signature.bind(*arguments, **keywords).arguments
            except TypeError:  # an inner decorator changed the parameters but not the signature
                given = dict(enumerate(arguments)) | keywords
            asked = next((value for value in given.values() if issubclass(type(value), str)), None)
            asked = asked if question is None else given.get(question)
            return FramedRun(self, asked, pipeline or name)

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def follow(*arguments: Any, **keywords: Any) -> Any:
                frame = begun(arguments, keywords)
                with frame.entered():
                    result = await function(*arguments, **keywords)
                return frame.returned(result, self._text_of_item)

        else:

            @functools.wraps(function)
            def follow(*arguments: Any, **keywords: Any) -> Any:
                frame = begun(arguments, keywords)
                with frame.entered():
                    result = function(*arguments, **keywords)
                return frame.returned(result, self._text_of_item)

        return follow


class FramedRun:
    """Run whose begin and end the application marks: with `handler.run`, or `handler.trace`.

    Everything inside is one run and one case, also searches and model calls of plain code that no
    chain or engine holds together. A handler's `run` returns it for a `with` block; `trace` makes
    one for each call of the decorated function.

    Attributes:
        answer: The application sets it to the answer; by default it is the last model's reply.

    Args:
        handler: Begins and ends the captured run.
        question: The user's question.
        pipeline: The run's name in results.
    """

    def __init__(self, handler: FramingHandler, question: Any, pipeline: str) -> None:
        self.answer: Any = None
        self._handler = handler
        self._run = handler.frame_started(question, pipeline)
        self._within: Any = None

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Make what happens in this task or thread inside the block part of the run.

        An error in it ends the run.
        """
        token = None if self._run is None else self._handler._frame.set(self._run)
        try:
            yield
        except BaseException as error:
            self.ended(error)
            raise
        finally:
            # A coroutine that is dropped half-way may be closed in another context.
            with suppress(ValueError):
                if token is not None:
                    self._handler._frame.reset(token)

    def ended(self, error: BaseException | None = None) -> None:
        """End the run; only the first call counts."""
        if self._run is not None:
            self._handler.frame_ended(self._run, self.answer, error)

    def returned(self, result: Any, text_of: Callable[[Any], str]) -> Any:
        """End the run of a function, at once or with the last item of the generator it returned."""
        if inspect.isgenerator(result):
            return self._follow(result, text_of)
        if inspect.isasyncgen(result):
            return self._afollow(result, text_of)
        self.answer = result
        self.ended()
        return result

    def __enter__(self) -> Self:
        self._within = self.entered()
        self._within.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._within.__exit__(kind, error, traceback)
        self.ended()

    def _follow(
        self, items: Generator[Any, Any, Any], text_of: Callable[[Any], str]
    ) -> Generator[Any, None, None]:
        texts: list[str] = []
        try:
            while True:
                with self.entered():  # the caller's own work between two items is not the run's
                    try:
                        item = next(items)
                    except StopIteration:
                        break
                texts.append(text_of(item))
                yield item
        except BaseException as error:
            items.close()
            self.ended(error)
            raise
        self.answer = "".join(texts)
        self.ended()

    async def _afollow(
        self, items: AsyncGenerator[Any, Any], text_of: Callable[[Any], str]
    ) -> AsyncGenerator[Any]:
        texts: list[str] = []
        try:
            while True:
                with self.entered():
                    try:
                        item = await anext(items)
                    except StopAsyncIteration:
                        break
                texts.append(text_of(item))
                yield item
        except BaseException as error:
            await items.aclose()
            self.ended(error)
            raise
        self.answer = "".join(texts)
        self.ended()
