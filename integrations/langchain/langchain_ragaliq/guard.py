"""A guard for chains: an answer below is replaced, annotated, made again or stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.base import coerce_to_runnable

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


class RagaliqGuard(Runnable[Any, Any]):
    """Checks a chain's answers before they go out.

        guarded = RagaliqGuard(chain, judge="claude", action="retry")
        guarded = retrieval_chain | RagaliqGuard(judge="claude")

    Wrapped around a chain, it finds question, context and answer in any chain the callback handler
    can read. At the end of a chain it needs all three in the dictionary (or in the conversation)
    that it is given.

    A stream is held back until the answer is judged, and then comes in one piece. What happens
    inside the chain is not held back: `astream_events` shows tokens as the model says them.

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
        """
        return self._call_with_config(self._guarded, input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - as above
        """`invoke` for asynchronous code; the event loop is never blocked."""
        return await self._acall_with_config(self._aguarded, input, config, **kwargs)

    def _guarded(
        self,
        value: Any,
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Any:
        call = GuardedCall(self, value, run_manager, config)
        while call.goes_on:
            output = value
            if self.chain is not None:
                output = self.chain.invoke(call.given, call.inner_config(), **kwargs)
            case = call.case_of(output)
            result = None if case is None else self.guard.check(case, **call.origin)
            call.judged(output, result)
        return call.output

    async def _aguarded(
        self,
        value: Any,
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Any:
        call = GuardedCall(self, value, run_manager, config)
        while call.goes_on:
            output = value
            if self.chain is not None:
                output = await self.chain.ainvoke(call.given, call.inner_config(), **kwargs)
            case = call.case_of(output)
            result = None if case is None else await self.guard.acheck(case, **call.origin)
            call.judged(output, result)
        return call.output
