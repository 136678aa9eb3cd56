"""A guard for chains: an answer below is replaced, annotated, made again or stopped."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.base import RunnableBinding, coerce_to_runnable

from langchain_ragaliq.guarded_call import GuardedCall
from langchain_ragaliq.replacing import with_feedback
from ragaliq import ConfigurationError, Guard

if TYPE_CHECKING:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForChainRun,
        CallbackManagerForChainRun,
    )
    from langchain_core.runnables.base import RunnableLike

__all__ = ["RagaliqGuard"]

_GUARDED_MODES = ("values", "updates")


class RagaliqGuard(Runnable[Any, Any]):
    """Checks a chain's answers before they go out.

        guarded = RagaliqGuard(chain, judge="claude", action="retry")
        guarded = retrieval_chain | RagaliqGuard(judge="claude")

    Wrapped around a chain, it finds question, context and answer in any chain the callback handler
    can read. At the end of a chain it needs all three in the dictionary (or in the conversation)
    that it is given.

    A stream is held back until the answer is judged, and then comes in one piece; a graph's comes
    in the graph's own pieces, of the modes `values` and `updates`. All other modes send what cannot
    be replaced later, such as single tokens, and are refused. What happens inside the chain is not
    held back: `astream_events` shows tokens as the model says them.

    An answer that the guard has judged is not scored again by a handler that watches the chain.

    Args:
        chain: What is guarded; None for a guard at the end of a chain.
        guard: Decides; built from `options` when not given.
        pipeline: The application's name for the chain.
        feed_back: Makes the input of another attempt from the input, the rejected answer and the
            feedback. By default a conversation goes on with the answer and the feedback, a
            dictionary has the feedback under `feedback` (empty at first) for the prompt to use,
            and a text has it appended.
        handler_options: How question, context and answer are found; arguments of
            `RagaliqCallbackHandler`.
        **options: Arguments of `ragaliq.Guard`.

    Raises:
        ragaliq.ConfigurationError: A setting is wrong, or there is nothing to retry.
    """

    def __init__(
        self,
        chain: RunnableLike[Any, Any] | None = None,
        *,
        guard: Guard | None = None,
        pipeline: str = "",
        feed_back: Callable[[Any, str, str], Any] | None = None,
        handler_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        if guard is not None and options:
            raise ConfigurationError(f"give a guard or its options, not both: {sorted(options)}")
        self.guard = guard if guard is not None else Guard(**options)
        if chain is None and self.guard.action == "retry":
            raise ConfigurationError(
                "RagaliqGuard at the end of a chain cannot retry it; wrap it: RagaliqGuard(chain)"
            )
        self.chain: Runnable[Any, Any] | None = None if chain is None else coerce_to_runnable(chain)
        self.pipeline = pipeline
        self.feed_back = feed_back or with_feedback
        self.handler_options = handler_options or {}

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - LangChain's name
        """The chain's output, or what the guard makes of it.

        Raises:
            ragaliq.GuardRejected: The answer must not go out, and the guard was told to raise.
            ragaliq.ConfigurationError: `stream_mode` names a mode that cannot be held back.
        """
        self._require_guardable(kwargs)
        return self._call_with_config(self._guarded, input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - as above
        """`invoke` for asynchronous code; the event loop is never blocked."""
        self._require_guardable(kwargs)
        return await self._acall_with_config(self._aguarded, input, config, **kwargs)

    def stream(
        self,
        input: Any,  # noqa: A002 - as above
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[Any]:
        """The output in pieces, once it is judged.

        Raises:
            ragaliq.GuardRejected: The answer must not go out, and the guard was told to raise.
            ragaliq.ConfigurationError: `stream_mode` names a mode that cannot be held back.
        """
        if not self._comes_in_pieces(kwargs):
            yield self.invoke(input, config, **kwargs)
            return
        pieces: list[Any] = []
        self._call_with_config(self._guarded, input, config, pieces=pieces, **kwargs)
        yield from pieces

    async def astream(
        self,
        input: Any,  # noqa: A002 - as above
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """`stream` for asynchronous code; the event loop is never blocked."""
        if not self._comes_in_pieces(kwargs):
            yield await self.ainvoke(input, config, **kwargs)
            return
        pieces: list[Any] = []
        await self._acall_with_config(self._aguarded, input, config, pieces=pieces, **kwargs)
        for piece in pieces:
            yield piece

    def _comes_in_pieces(self, kwargs: Mapping[str, Any]) -> bool:
        graph = _graph_in(self.chain)
        if graph is None and "stream_mode" not in kwargs:
            return False
        own_mode = getattr(graph, "stream_mode", None)
        self._require_guardable({**kwargs, "stream_mode": kwargs.get("stream_mode") or own_mode})
        return True

    def _require_guardable(self, kwargs: Mapping[str, Any]) -> None:
        mode = kwargs.get("stream_mode") or ()
        modes = [mode] if isinstance(mode, str) else list(mode)
        refused = [mode for mode in modes if mode not in _GUARDED_MODES]
        if refused and not self.guard.is_off:
            raise ConfigurationError(
                f"RagaliqGuard cannot hold back what stream_mode={refused[0]!r} sends: it may show "
                "a rejected answer. Use stream_mode='values' or 'updates'"
            )

    def _guarded(
        self,
        value: Any,
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        *,
        pieces: list[Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        call = GuardedCall(self, value, run_manager, config)
        held: list[Any] = []
        while call.goes_on:
            output = value
            if self.chain is not None and pieces is not None:
                held = list(self.chain.stream(call.given, call.inner_config(), **kwargs))
                output = call.returned
            elif self.chain is not None:
                output = self.chain.invoke(call.given, call.inner_config(), **kwargs)
            case = call.case_of(output)
            result = None if case is None else self.guard.check(case, **call.origin)
            call.judged(output, result)
        if pieces is not None:
            pieces += map(call.piece, held)
        return call.output

    async def _aguarded(
        self,
        value: Any,
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        *,
        pieces: list[Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        call = GuardedCall(self, value, run_manager, config)
        held: list[Any] = []
        while call.goes_on:
            output = value
            if self.chain is not None and pieces is not None:
                stream = self.chain.astream(call.given, call.inner_config(), **kwargs)
                held = [piece async for piece in stream]
                output = call.returned
            elif self.chain is not None:
                output = await self.chain.ainvoke(call.given, call.inner_config(), **kwargs)
            case = call.case_of(output)
            result = None if case is None else await self.guard.acheck(case, **call.origin)
            call.judged(output, result)
        if pieces is not None:
            pieces += map(call.piece, held)
        return call.output


def _graph_in(chain: Runnable[Any, Any] | None) -> Runnable[Any, Any] | None:
    """The LangGraph graph that a chain is, whatever is bound to it; None if it is another chain."""
    while isinstance(chain, RunnableBinding):
        chain = chain.bound
    is_graph = any(cls.__name__ == "PregelProtocol" for cls in type(chain).__mro__)
    return chain if is_graph else None
