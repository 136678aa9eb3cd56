"""A guard for chains: an answer below is replaced, annotated, made again or stopped."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self, cast
from uuid import UUID, uuid4

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.base import RunnableBindingBase, coerce_to_runnable
from langchain_core.runnables.config import merge_configs, patch_config
from langchain_core.runnables.fallbacks import RunnableWithFallbacks
from langchain_core.runnables.history import RunnableWithMessageHistory

from langchain_ragaliq._private import has_checkpointer
from langchain_ragaliq.handler import RagaliqCallbackHandler
from langchain_ragaliq.judge import with_judge
from langchain_ragaliq.reading import READER
from langchain_ragaliq.replacing import annotated, answer_of, replaced, throughout, with_feedback
from ragaliq import ConfigurationError, Guard, GuardResult, Monitor, Passage
from ragaliq.capture import Found, RunLog, takes_only

if TYPE_CHECKING:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForChainRun,
        BaseCallbackHandler,
        CallbackManagerForChainRun,
    )
    from langchain_core.runnables.base import RunnableLike

    from ragaliq import SpanTarget


logger = logging.getLogger("ragaliq.langchain")

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
    Around a graph with a checkpointer, a fallback replaces the answer in the thread too. It belongs
    inside `RunnableWithMessageHistory`, whose history then keeps what went out.

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
        **options: Arguments of `ragaliq.Guard`; `judge` may also be a chat model of LangChain's.

    Raises:
        ragaliq.ConfigurationError: A setting is wrong, there is nothing to retry, or rejected
            answers would stay in a graph's threads or a history of messages.
    """

    @takes_only(Guard, Monitor)
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
        self.guard = guard if guard is not None else Guard(**with_judge(options))
        if chain is None and self.guard.action == "retry":
            raise ConfigurationError(
                "RagaliqGuard at the end of a chain cannot retry it; wrap it: RagaliqGuard(chain)"
            )
        self.chain: Runnable[Any, Any] | None = None if chain is None else coerce_to_runnable(chain)
        if any(getattr(graph, "checkpointer", None) for graph, _ in _graphs_in(self.chain, {})):
            self.refuse_retries()
        is_harmless = self.guard.is_off or self.guard.action == "annotate"
        if not is_harmless and any(
            isinstance(part, RunnableWithMessageHistory) for part, _ in _parts(self.chain, {})
        ):
            raise ConfigurationError(
                "RagaliqGuard around RunnableWithMessageHistory leaves rejected answers in the "
                "history. Guard the chain inside: RunnableWithMessageHistory(RagaliqGuard(chain), "
                "...)"
            )
        self.pipeline = pipeline
        self.feed_back = feed_back or with_feedback
        self.handler_options = handler_options or {}

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - LangChain's name
        """The chain's output, or what the guard makes of it.

        Raises:
            ragaliq.GuardRejected: The answer must not go out, and the guard is set to raise.
            ragaliq.ConfigurationError: `stream_mode` names a mode that cannot be held back, or a
                retry would stay in a graph's thread.
        """
        self._comes_in_pieces(kwargs)
        return self._call_with_config(self._guarded, input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - as above
        """`invoke` for asynchronous code; the event loop is never blocked."""
        self._comes_in_pieces(kwargs)
        return await self._acall_with_config(self._aguarded, input, config, **kwargs)

    def stream(
        self,
        input: Any,  # noqa: A002 - as above
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[Any]:
        """The output in pieces, once it is judged; raises what `invoke` raises."""
        pieces: list[Any] | None = [] if self._comes_in_pieces(kwargs, is_stream=True) else None
        output = self._call_with_config(self._guarded, input, config, pieces=pieces, **kwargs)
        yield from [output] if pieces is None else pieces

    async def astream(
        self,
        input: Any,  # noqa: A002 - as above
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """`stream` for asynchronous code; the event loop is never blocked."""
        pieces: list[Any] | None = [] if self._comes_in_pieces(kwargs, is_stream=True) else None
        run = self._acall_with_config(self._aguarded, input, config, pieces=pieces, **kwargs)
        output = await run
        for piece in [output] if pieces is None else pieces:
            yield piece

    def _comes_in_pieces(self, kwargs: Mapping[str, Any], *, is_stream: bool = False) -> bool:
        """Whether the chain is streamed in its own pieces; refuses those that show too much."""
        # A sequence around a graph makes something else of the graph's pieces; a fallback may be no
        # graph.
        is_mixed = hasattr(self.chain, "steps") or isinstance(self.chain, RunnableWithFallbacks)
        graphs = [] if is_mixed else [*_graphs_in(self.chain, {})]
        graph = graphs[0][0] if graphs else None
        mode = kwargs.get("stream_mode")
        if mode is None and is_stream:
            mode = getattr(graph, "stream_mode", None)
        modes = [mode] if isinstance(mode, str) else list(mode or ())
        refused = [mode for mode in modes if mode not in _GUARDED_MODES]
        if refused and not self.guard.is_off:
            raise ConfigurationError(
                f"RagaliqGuard cannot hold back what stream_mode={refused[0]!r} sends: it may show "
                "a rejected answer. Use stream_mode='values' or 'updates'"
            )
        return graph is not None or "stream_mode" in kwargs

    def refuse_retries(self) -> None:
        """Say that a graph with a checkpointer cannot be asked again.

        Raises:
            ragaliq.ConfigurationError: It would be.
        """
        if self.guard.action == "retry" and not self.guard.is_off:
            raise ConfigurationError(
                "RagaliqGuard cannot retry a graph with a checkpointer: rejected answers would "
                "stay in its threads. Use RagaliqGuardMiddleware for an agent, or another action"
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
        call = _GuardedCall(self, value, run_manager, config)
        held: list[Any] = []
        while call.goes_on:
            output = value
            if self.chain is not None and pieces is not None:
                held = list(self.chain.stream(call.given, call.inner_config(), **kwargs))
                output = call.observed.returned
            elif self.chain is not None:
                output = self.chain.invoke(call.given, call.inner_config(), **kwargs)
            case = call.case_of(output)
            call.judged(output, None if case is None else self.guard.check(case, **call.origin))
        for graph, thread in call.threads_to_mend():
            with _stores_may_fail():
                if update := call.update_of(graph.get_state(thread).values):
                    graph.update_state(thread, update)
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
        call = _GuardedCall(self, value, run_manager, config)
        held: list[Any] = []
        while call.goes_on:
            output = value
            if self.chain is not None and pieces is not None:
                stream = self.chain.astream(call.given, call.inner_config(), **kwargs)
                held = [piece async for piece in stream]
                output = call.observed.returned
            elif self.chain is not None:
                output = await self.chain.ainvoke(call.given, call.inner_config(), **kwargs)
            case = call.case_of(output)
            result = None if case is None else await self.guard.acheck(case, **call.origin)
            call.judged(output, result)
        for graph, thread in call.threads_to_mend():
            with _stores_may_fail():
                if update := call.update_of((await graph.aget_state(thread)).values):
                    await graph.aupdate_state(thread, update)
        if pieces is not None:
            pieces += map(call.piece, held)
        return call.output


def _parts(chain: Any, config: RunnableConfig) -> Iterator[tuple[Any, RunnableConfig]]:
    """A chain and what it is made of, each with what it is called with."""
    yield chain, config
    # A sequence's steps, for which LangGraph has a class of its own.
    within = getattr(chain, "steps", ())
    if isinstance(chain, RunnableBindingBase):
        within, config = [chain.bound], merge_configs(chain.config, config)
    elif isinstance(chain, RunnableWithFallbacks):
        within = list(chain.runnables)
    if isinstance(within, list | tuple):  # an application's own class may call something else so
        for part in within:
            yield from _parts(part, config)


def _graphs_in(chain: Any, config: RunnableConfig) -> Iterator[tuple[Any, RunnableConfig]]:
    """The LangGraph graphs among a chain's parts, each with what it is called with."""
    for part, given in _parts(chain, config):
        if any(cls.__name__ == "PregelProtocol" for cls in type(part).__mro__):
            yield part, given


@contextmanager
def _stores_may_fail() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the fallback goes out whatever a store says
        logger.warning("a rejected answer stays in its thread: %s", type(error).__name__)


class _GuardedCall:
    """What a guard knows of one call.

    Args:
        runnable: The guard.
        value: What it is called with.
        run_manager: The guard's own run.
        config: How it is called.

    Attributes:
        given: The input of the next attempt.
        goes_on: Whether there is to be a next attempt.
        observed: What the latest attempt amounts to.
        output: What goes out, once there is no next attempt.
    """

    def __init__(
        self,
        runnable: RagaliqGuard,
        value: Any,
        run_manager: CallbackManagerForChainRun | AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
    ) -> None:
        self._runnable, self._guard = runnable, runnable.guard
        self._run_manager, self._config = run_manager, config
        self._threads = [
            each for each in _graphs_in(runnable.chain, config) if has_checkpointer(*each)
        ]
        if self._threads:
            runnable.refuse_retries()
        self._value = self.given = value
        self._attempt = 0
        self._question: Found | None = None
        self._result: GuardResult | None = None
        self._step = self._judged = ""
        is_state = isinstance(value, Mapping) and not READER.messages(value)
        if self._guard.action == "retry" and is_state:
            # A prompt that uses it must find it at the first attempt too.
            self.given = {"feedback": "", **value}
        self.observed = _Observation(**runnable.handler_options)
        self.goes_on = True
        self.output: Any = None

    def inner_config(self) -> RunnableConfig:
        """The configuration for the next attempt, which is observed."""
        self.observed = _Observation(**self._runnable.handler_options)
        callbacks = self._run_manager.get_child()
        if not self._guard.is_off:
            callbacks.add_handler(self.observed)
        return patch_config(self._config, callbacks=callbacks)

    @property
    def origin(self) -> dict[str, Any]:
        """Where the attempt's answer comes from, for `Guard.check`."""
        return {
            "target": self.observed.target,
            "session_id": self.observed.session_id,
            "pipeline": self._runnable.pipeline or self._config.get("run_name") or "",
            "framework": "langchain",
        }

    def case_of(self, output: Any) -> RunLog | None:
        """What there is to check of an attempt.

        Raises:
            ConfigurationError: The guard stands at the end of a chain that gives it too little.
        """
        if self._guard.is_off:
            return None
        log = _log_of(output) if self._runnable.chain is None else self.observed.log
        if log is not None:
            # An attempt that was told more has not been asked another question.
            self._question = log.question = self._question or log.question
            self._judged = log.answer.text
        return log

    def judged(self, output: Any, result: GuardResult | None) -> None:
        """Do with an attempt's answer what the guard says.

        Raises:
            GuardRejected: It must not go out.
        """
        self._result = result
        if result is None:
            self.output, self.goes_on = output, False
            return
        self._step = self._guard.step(result, attempt=self._attempt)
        if self._step == "retry":
            self._attempt += 1
            answer = answer_of(output) or self._judged
            self.given = self._runnable.feed_back(self._value, answer, self._guard.feedback(result))
            return
        self.goes_on = False
        # A list of updates is no conversation: its shape is kept as that of a stream is.
        self.output = self._decided(output) if answer_of(output) else self.piece(output)
        note_guarded(
            self._run_manager.handlers, self._run_manager.run_id, answer_of(self.output) or ""
        )

    def piece(self, piece: Any) -> Any:
        """A piece of the attempt's stream as it may go out."""
        if self._result is None or self._step == "pass":
            return piece
        return throughout(piece, self._judged, self._decided)

    def _decided(self, output: Any) -> Any:
        if self._result is not None and self._step == "fallback":
            return replaced(output, self._guard.fallback(self._result))
        if self._result is not None and self._step == "annotate":
            return annotated(output, self._guard.note(self._result), self._result.summary)
        return output

    def threads_to_mend(self) -> Iterator[tuple[Any, RunnableConfig]]:
        """The graphs in whose threads a rejected answer may stand, each with its thread."""
        for graph, config in self._threads if self._step == "fallback" else ():
            names = config.get("configurable", {})
            kept = {key: name for key, name in names.items() if key != "checkpoint_id"}
            yield graph, {"configurable": kept}

    def update_of(self, state: Any) -> dict[str, Any]:
        """What puts the fallback into a thread's state; empty where the answer is not there."""
        held = answer_of(state) or ""
        # The chain around the graph may have put something around the answer, or cut it out.
        if not held.strip() or not (held in self._judged or self._judged in held):
            return {}
        after = self._decided(state)
        values = {key: after[key] for key in after if after[key] is not state.get(key)}
        if "messages" in values:
            values["messages"] = values["messages"][-1:]  # by its id it replaces the one before
        return values


def _log_of(output: Any) -> RunLog | None:
    """What a guard at the end of a chain is given."""
    passages = READER.context(output)
    if passages is None:
        passages = [Passage(text) for text in READER.context_texts(output)[:1]] or None
    if passages is None and READER.messages(output):
        passages = READER.turn(output)
    if passages is None:
        raise ConfigurationError(
            "RagaliqGuard at the end of a chain must be given question, context and answer, and "
            f"found no context in {'a text' if isinstance(output, str) else type(output).__name__}"
            "; wrap the chain instead: RagaliqGuard(chain)"
        )
    answer, question = READER.answer(output), READER.question(output) or Found("", "")
    if answer is None:
        return None
    # Not a case: building one reads metadata, whose errors are not the request's.
    log = RunLog(uuid4().hex, question=question, answer=answer)
    log.named(passages)
    return log


class _Observation(RagaliqCallbackHandler):
    """What one call of a chain amounts to: a handler that is its own monitor, and its own ticket.

    Attributes:
        log: What it held, once the call has ended well.
        target: The span to link its evaluation to.
        session_id: The conversation, when the application names it.
        returned: What the call returned, also where the caller gets it in pieces.
    """

    def __init__(self, **handler_options: Any) -> None:
        self.log: RunLog | None = None
        self.target: SpanTarget | None = None
        self.session_id: str | None = None
        self.run_id = ""
        self.returned: Any = None
        super().__init__(cast("Monitor", self), **handler_options)

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        """A step ended; the call itself ends last."""
        self.returned = outputs
        super().on_chain_end(outputs, **kwargs)

    def begin(self, run_id: UUID, **kwargs: Any) -> _Observation:
        """A call has begun."""
        self.run_id = str(run_id)
        return self

    def sweep_later(self, delay: float, sweepable: object) -> bool:
        """Refuses: a call that never ends is given up with the caller that waits for it."""
        return False

    def submit(
        self,
        log: RunLog,
        *,
        target: SpanTarget | None,
        session_id: str | None,
        response_id: str | None,
    ) -> None:
        """The call ended well."""
        self.log, self.target, self.session_id = log, target, session_id

    def discard(self, reason: str) -> None:
        """The call ended without an answer to check."""

    def withdraw(self) -> None:
        """A guard further inside has checked the answer."""


def note_guarded(handlers: Iterable[BaseCallbackHandler], run_id: UUID | None, answer: str) -> None:
    """Have an answer that a guard has scored not scored again.

    Args:
        handlers: All that watch the run.
        run_id: The run, or any inside it.
        answer: What goes out.
    """
    for handler in handlers:
        if run_id is not None and isinstance(handler, RagaliqCallbackHandler):
            handler.scored_by_guard(run_id, answer)
