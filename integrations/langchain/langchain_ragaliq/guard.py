"""Guard of a chain's final text: a bad answer is replaced or stopped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.base import coerce_to_runnable
from langchain_core.runnables.config import patch_config

from langchain_ragaliq._private import is_graph
from langchain_ragaliq.handler import RagaliqCallbackHandler
from langchain_ragaliq.judge import with_judge
from langchain_ragaliq.recording import Recorder
from langchain_ragaliq.replacing import annotated, answer_of, replaced
from ragaliq import ConfigurationError, Guard, GuardResult, Monitor, NotEvaluated, RAGTestCase
from ragaliq.capture import RunLog, takes_only

if TYPE_CHECKING:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForChainRun,
        BaseCallbackHandler,
        CallbackManagerForChainRun,
    )
    from langchain_core.runnables.base import RunnableLike

    _ChainRun = AsyncCallbackManagerForChainRun | CallbackManagerForChainRun


class RagaliqGuard(Runnable[Any, Any]):
    """Checks a chain's answer before it goes out.

        guarded = RagaliqGuard(chain, judge="claude", fallback="I do not know.")

    Question, context and answer are found as the callback handler finds them. The rejected text is
    replaced wherever the chain's output holds it; an output that does not hold it as it was judged
    is replaced as a whole. A stream is held back until the answer is judged, and then comes in one
    piece. What happens inside the chain is not held back: `astream_events` shows tokens as the
    model says them, and a history of messages inside the chain keeps what the model said.

    An answer that the guard has judged is not scored again by a handler that watches the chain.

    Args:
        chain: What is guarded, and not a graph: see `Guard.check` and `RagaliqGuardMiddleware`.
        guard: Decides; built from `options` when not given.
        pipeline: The application's name for the chain.
        handler_options: How question, context and answer are found; arguments of
            `RagaliqCallbackHandler`.
        **options: Arguments of `ragaliq.Guard`; `judge` may also be a chat model of LangChain's.

    Raises:
        ragaliq.ConfigurationError: A setting is wrong, or a graph is to be guarded.
    """

    @takes_only(Guard, Monitor)
    def __init__(
        self,
        chain: RunnableLike[Any, Any],
        guard: Guard | None = None,
        *,
        pipeline: str = "",
        handler_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        if guard is not None and options:
            raise ConfigurationError(f"give a guard or its options, not both: {sorted(options)}")
        self.chain: Runnable[Any, Any] = coerce_to_runnable(chain)
        if is_graph(self.chain):
            raise ConfigurationError(
                "RagaliqGuard guards chains that end in a text, not graphs, whose streams and "
                "threads show an answer before it is judged: use RagaliqGuardMiddleware for an "
                "agent, or guard.check(case) in the node that answers"
            )
        self.guard = guard if guard is not None else Guard(**with_judge(options))
        self.pipeline = pipeline
        self.handler_options = handler_options or {}

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - LangChain's name
        """Run the chain; return its output, or the guard's replacement.

        Raises:
            ragaliq.GuardRejected: The answer must not go out, and the guard is set to raise.
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
        seen = Recorder(self.guard.monitor, **self.handler_options)
        output = self.chain.invoke(value, self._inner(config, run_manager, seen), **kwargs)
        if self.guard.is_off:
            return output
        try:
            case = seen.case(value, output)
        except NotEvaluated as error:
            result = self.guard.failed(str(error))
            return self._released(output, result, "", run_manager)
        result = self.guard.check(case, **self._origin(seen, config))
        return self._released(output, result, _answer(case), run_manager)

    async def _aguarded(
        self,
        value: Any,
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Any:
        seen = Recorder(self.guard.monitor, **self.handler_options)
        output = await self.chain.ainvoke(value, self._inner(config, run_manager, seen), **kwargs)
        if self.guard.is_off:
            return output
        try:
            case = seen.case(value, output)
        except NotEvaluated as error:
            result = self.guard.failed(str(error))
            return self._released(output, result, "", run_manager)
        result = await self.guard.acheck(case, **self._origin(seen, config))
        return self._released(output, result, _answer(case), run_manager)

    def _inner(
        self, config: RunnableConfig, run_manager: _ChainRun, seen: Recorder
    ) -> RunnableConfig:
        callbacks = run_manager.get_child()
        if not self.guard.is_off:
            callbacks.add_handler(seen)
        return patch_config(config, callbacks=callbacks)

    def _origin(self, seen: Recorder, config: RunnableConfig) -> dict[str, Any]:
        return {
            "target": seen.recorded.target,
            "session_id": seen.recorded.session_id,
            "pipeline": self.pipeline or config.get("run_name") or "",
            "framework": "langchain",
        }

    def _released(
        self, output: Any, result: GuardResult, answer: str, run_manager: _ChainRun
    ) -> Any:
        """Output as the guard allows it.

        Raises:
            ragaliq.GuardRejected: It may not.
        """
        step = self.guard.step(result)
        if step == "fallback":
            output = replaced(output, answer, self.guard.fallback(result))
        elif step == "annotate":
            output = annotated(output, self.guard.note, result.summary)
        note_guarded(run_manager.handlers, run_manager.run_id, answer_of(output) or "")
        return output


def _answer(case: RunLog | RAGTestCase) -> str:
    return case.answer.text if isinstance(case, RunLog) else case.response


def note_guarded(handlers: Iterable[BaseCallbackHandler], run_id: UUID | None, answer: str) -> None:
    """Mark an answer as scored by a guard, so that handlers do not score it again.

    Args:
        handlers: All handlers of the run.
        run_id: The run, or one inside it.
        answer: The answer that goes out.
    """
    for handler in handlers:
        if run_id is not None and isinstance(handler, RagaliqCallbackHandler):
            handler.scored_by_guard(run_id, answer)
