"""Guards around engines, agents and workflows: answers are checked before they go out."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from llama_index.core.agent.workflow.workflow_events import AgentOutput
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index.core.base.response.schema import (
    AsyncStreamingResponse,
    PydanticResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.chat_engine.types import (
    AgentChatResponse,
    BaseChatEngine,
    StreamingAgentChatResponse,
)

# The documented name, though LlamaIndex has it in no `__all__`.
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.dispatcher import (  # type: ignore[attr-defined]
    active_instrument_tags,
)
from llama_index.core.instrumentation.span import active_span_id
from llama_index.core.memory import BaseMemory
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.workflow import InputRequiredEvent, StartEvent, StopEvent, Workflow, step

from llama_index.evaluation.ragaliq.judge import judge_of
from llama_index.evaluation.ragaliq.reading import (
    answer_of,
    aread_answer,
    at_once,
    fields_of,
    passages_of,
    payload_of,
    question_of_fields,
    read_answer,
    sources_of,
    value_of,
)
from llama_index.evaluation.ragaliq.span_handler import RagaliqSpanHandler, openinference_target
from ragaliq import ConfigurationError, Guard, GuardRejected, GuardResult, Monitor
from ragaliq.capture import ANSWER_KEYS, Found, RunLog, takes_only

__all__ = ["GuardedChatEngine", "GuardedQueryEngine", "GuardedWorkflow"]

_STREAMS = (StreamingResponse, AsyncStreamingResponse, StreamingAgentChatResponse)
_History = list[ChatMessage]


class GuardedQueryEngine(BaseQueryEngine):
    """A query engine whose answers are checked before they go out.

        engine = GuardedQueryEngine(index.as_query_engine(), judge="claude", action="retry")

    An answer below is replaced, gets the result in its `metadata["ragaliq"]`, is made again with
    feedback, or raises `GuardRejected`, according to the guard's `action`. A stream is held back
    until the answer is judged, and then comes in one piece.

    For another attempt the feedback is appended to the question; what is embedded for retrieval
    stays the question alone. An answer that the guard has judged is not scored again by an
    attached handler.

    Args:
        engine: What is guarded.
        guard: Decides; built from `options` when not given.
        pipeline: The application's name for the engine.
        **options: Arguments of `ragaliq.Guard`.

    Raises:
        ConfigurationError: A setting is wrong.
    """

    @takes_only(Guard, Monitor)
    def __init__(
        self,
        engine: BaseQueryEngine,
        guard: Guard | None = None,
        *,
        pipeline: str = "",
        **options: Any,
    ) -> None:
        super().__init__(callback_manager=engine.callback_manager)
        self.guard = _guard_of(guard, options)
        self._engine = engine
        self._pipeline = pipeline

    def retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        """What the guarded engine retrieves."""
        return self._engine.retrieve(query_bundle)

    def _get_prompt_modules(self) -> PromptMixinType:
        return {"engine": self._engine}

    def _query(self, query_bundle: QueryBundle) -> Any:
        return at_once(self._guarded(query_bundle, self._engine.query, is_async=False))

    async def _aquery(self, query_bundle: QueryBundle) -> Any:
        return await self._guarded(query_bundle, self._engine.aquery, is_async=True)

    async def _guarded(self, bundle: QueryBundle, query: Callable[..., Any], **how: bool) -> Any:
        if self.guard.is_off:
            return await value_of(query(bundle))

        def ask(feedback: str) -> Any:
            if not feedback:
                return query(bundle)
            again = dataclasses.replace(
                bundle,
                query_str=f"{bundle.query_str}\n\n{feedback}",
                custom_embedding_strs=bundle.custom_embedding_strs or [bundle.query_str],
            )
            return query(again)

        attempts = _Attempts(self.guard, bundle.query_str, pipeline=self._pipeline, **how)
        return (await attempts.answer(ask))[0]


class GuardedChatEngine(BaseChatEngine):
    """A chat engine whose answers are checked before they go out.

        engine = GuardedChatEngine(index.as_chat_engine(), judge="claude")

    See `GuardedQueryEngine`; a streamed answer has no place for an annotation and passes as it is.
    The conversation keeps the user's message and the answer that went out: neither rejected answers
    nor feedback are left in the engine's memory.

    Args:
        engine: What is guarded.
        guard: Decides; built from `options` when not given.
        memory: Where the engine keeps the conversation; by default the memory it was built with.
        pipeline: The application's name for the engine.
        **options: Arguments of `ragaliq.Guard`.

    Raises:
        ConfigurationError: A setting is wrong.
    """

    @takes_only(Guard, Monitor)
    def __init__(
        self,
        engine: BaseChatEngine,
        guard: Guard | None = None,
        *,
        memory: BaseMemory | None = None,
        pipeline: str = "",
        **options: Any,
    ) -> None:
        self.guard = _guard_of(guard, options)
        self._engine = engine
        # All of LlamaIndex's engines have it under this name, and no public one.
        own = getattr(engine, "_memory", None)
        self._memory = memory or (own if isinstance(own, BaseMemory) else None)
        self._pipeline = pipeline

    @property
    def chat_history(self) -> _History:
        """The conversation so far."""
        return list(self._engine.chat_history)

    def reset(self) -> None:
        """Start a new conversation."""
        self._engine.reset()

    def chat(
        self, message: str, chat_history: _History | None = None
    ) -> AgentChatResponse | StreamingAgentChatResponse:
        """Answer a message."""
        chat = self._engine.chat
        return at_once(self._guarded(chat, message, chat_history, is_async=False))  # type: ignore[no-any-return]

    def stream_chat(
        self, message: str, chat_history: _History | None = None
    ) -> StreamingAgentChatResponse:
        """Answer a message; the stream comes in one piece, when the answer is judged."""
        chat = self._engine.stream_chat
        return at_once(self._guarded(chat, message, chat_history, is_async=False))  # type: ignore[no-any-return]

    async def achat(
        self, message: str, chat_history: _History | None = None
    ) -> AgentChatResponse | StreamingAgentChatResponse:
        """`chat` for asynchronous code."""
        chat = self._engine.achat
        return await self._guarded(chat, message, chat_history, is_async=True)  # type: ignore[no-any-return]

    async def astream_chat(
        self, message: str, chat_history: _History | None = None
    ) -> StreamingAgentChatResponse:
        """`stream_chat` for asynchronous code."""
        chat = self._engine.astream_chat
        return await self._guarded(chat, message, chat_history, is_async=True)  # type: ignore[no-any-return]

    async def _guarded(
        self,
        chat: Callable[..., Any],
        message: str,
        history: _History | None,
        *,
        is_async: bool,
    ) -> Any:
        if self.guard.is_off:
            return await value_of(chat(message, history))
        before = list(self.chat_history if history is None else history)

        def ask(feedback: str) -> Any:
            if not feedback:
                return chat(message, history)
            return chat(f"{message}\n\n{feedback}", list(before))

        async def remember(conversation: _History) -> None:
            if self._memory is not None:
                save = self._memory.aset if is_async else self._memory.set
                await value_of(save(conversation))

        attempts = _Attempts(self.guard, message, pipeline=self._pipeline, is_async=is_async)
        try:
            response, answer = await attempts.answer(ask)
        except GuardRejected:
            await remember(before)
            raise
        if attempts.has_intervened:
            await remember(_conversation(before, message, answer))
        return response


class _GuardedStart(StartEvent):
    """What the guarded workflow is called with, and the same by field, for handlers to read."""

    call: dict[str, Any]


class GuardedWorkflow(Workflow):
    """An agent or another workflow whose answers are checked before they go out.

        agent = GuardedWorkflow(FunctionAgent(tools=tools, llm=llm), judge="claude")
        output = await agent.run(user_msg="How long do refunds take?")

    See `GuardedQueryEngine`. `run` takes what the guarded workflow's takes, and gives what that
    gives; its events do not come out, so that it must not wait for a human's. For another attempt
    the feedback is appended to the question. The conversation, in `memory` or in `ctx`, keeps the
    user's message and the answer that went out. An annotation goes to a response's metadata; other
    results have no place for one.

    Args:
        workflow: What is guarded.
        guard: Decides; built from `options` when not given.
        pipeline: The application's name for the workflow.
        **options: Arguments of `ragaliq.Guard`.

    Raises:
        ConfigurationError: A setting is wrong.
    """

    @takes_only(Guard, Monitor)
    def __init__(
        self, workflow: Any, guard: Guard | None = None, *, pipeline: str = "", **options: Any
    ) -> None:
        super().__init__(timeout=None)  # the guarded one has its own
        self.guard = _guard_of(guard, options)
        self._guarded_workflow = workflow
        self._pipeline = pipeline

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run the guarded workflow; await the result."""
        if args:
            kwargs["user_msg"] = args[0]  # as agents take it
        start = kwargs.get("start_event")
        asked = {k: v for k, v in kwargs.items() if k not in _NO_FIELDS} if start is None else start
        fields = asked if isinstance(asked, dict) else fields_of(asked)
        return super().run(start_event=_GuardedStart(call=kwargs, **fields))

    @step
    async def answer(self, event: _GuardedStart) -> StopEvent:
        """Run it until the guard lets an answer out."""
        run, given = self._ran, dict(event.call)
        if self.guard.is_off:
            return StopEvent(result=await run(**given))
        question = question_of_fields(fields_of(event))
        memory = await _memory_of(given)
        before = await memory.aget_all() if memory is not None else []

        async def remember(conversation: _History) -> None:
            memory = await _memory_of(given)
            if memory is not None:
                await memory.aset(list(conversation))  # which some stores keep as it is

        async def ask(feedback: str) -> Any:
            if not feedback:
                return await run(**given)
            await remember(before)
            return await run(**_asked_again(given, question, feedback))

        attempts = _Attempts(self.guard, question.text, pipeline=self._pipeline, is_async=True)
        try:
            output, answer = await attempts.answer(ask, lambda made: answer_of(payload_of(made)))
        except GuardRejected:
            await remember(before)
            raise
        if attempts.has_intervened:
            await remember(_conversation(before, question.text, answer))
        return StopEvent(result=output)

    async def _ran(self, **given: Any) -> Any:
        """What the guarded workflow returns."""
        handler = self._guarded_workflow.run(**given)
        async for event in handler.stream_events():
            if isinstance(event, InputRequiredEvent):
                # Nobody could answer it: its events do not come out, nor others in.
                await handler.cancel_run()
                raise ConfigurationError(
                    "GuardedWorkflow cannot guard a workflow that waits for a human "
                    f"({type(event).__name__}): use Guard.acheck(...) in its last step"
                )
        return await handler


_NO_FIELDS = ("ctx", "memory", "start_event", "max_iterations", "early_stopping_method")


async def _memory_of(call: dict[str, Any]) -> BaseMemory | None:
    memory = call.get("memory")
    if memory is None and (ctx := call.get("ctx")) is not None:
        memory = await ctx.store.get("memory", default=None)
    return memory if isinstance(memory, BaseMemory) else None


def _asked_again(call: dict[str, Any], question: Found, feedback: str) -> dict[str, Any]:
    """A call with the feedback in its question; the same where that is not a plain field."""
    key = question.where.removeprefix("input.")
    asked = f"{question.text}\n\n{feedback}"
    start = call.get("start_event")
    if start is None:
        return {**call, key: asked} if key in call else call
    copied = start.model_copy(deep=False)
    if key in type(start).model_fields:
        copied = start.model_copy(update={key: asked})
    else:
        copied[key] = asked
    return {**call, "start_event": copied}


def _conversation(before: Sequence[ChatMessage], message: str, answer: str) -> _History:
    return [
        *before,
        ChatMessage(role=MessageRole.USER, content=message),
        ChatMessage(role=MessageRole.ASSISTANT, content=answer),
    ]


def _guard_of(guard: Guard | None, options: dict[str, Any]) -> Guard:
    """The guard given, or one made from `options`."""
    if guard is not None and options:
        raise ConfigurationError(f"give a guard or its options, not both: {sorted(options)}")
    return guard or Guard(**{**options, "judge": judge_of(options.get("judge"))})


class _Attempts:
    """The attempts at one answer."""

    def __init__(self, guard: Guard, question: str, *, pipeline: str, is_async: bool) -> None:
        self._guard = guard
        self._question = question
        self._pipeline = pipeline
        self._is_async = is_async
        self._seen: list[RunLog] = []
        self.has_intervened = False  # whether something else goes out than the first answer

    async def answer(
        self, ask: Callable[[str], Any], read: Callable[[Any], Any] | None = None
    ) -> tuple[Any, str]:
        """What goes out, of the same type as the engine's response, and its text.

        Args:
            ask: Asks the engine, with the feedback on the attempt before; empty at the first.
            read: The text of a response; by default that of an engine's, streams read to their end.
        """
        guard, feedback, made = self._guard, "", 0
        read = read or (aread_answer if self._is_async else read_answer)
        check = guard.acheck if self._is_async else guard.check
        while True:
            with self._watched():
                response = await value_of(ask(feedback))
                answer = await value_of(read(response))
            if not answer.strip():
                return _streaming_again(response, answer), answer
            result = await value_of(check(self._case(answer, response), **self._origin()))
            action = guard.step(result, attempt=made)
            if action != "retry":
                break
            made, feedback, self.has_intervened = made + 1, guard.feedback(result), True
        if action == "fallback":
            content = guard.fallback(result)
            is_object = isinstance(content, BaseModel)
            answer = content.model_dump_json() if is_object else str(content)
            response, self.has_intervened = _replaced(response, content), True
        elif action == "annotate":
            response = _annotated(response, result)
        _note_guarded(answer)
        return _streaming_again(response, answer), answer

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """See what the model is shown in the block, as an attached handler does."""
        self._seen.clear()
        token = _WATCHED.set(self._seen)
        _WATCHER.listen()
        try:
            yield
        finally:
            _WATCHER.stop_listening()
            _WATCHED.reset(token)

    def _case(self, answer: str, response: Any) -> RunLog:
        if self._seen:
            log = self._seen.pop()
            log.id = uuid4().hex
            log.question = Found(self._question, log.question.where)
            log.answer = Found(answer, log.answer.where)
            return log
        # Nothing was retrieved as far as can be seen: what the response itself names counts.
        # Not a case: building one reads metadata, whose errors are not the request's.
        log = RunLog(uuid4().hex, question=Found(self._question, ""), answer=Found(answer, ""))
        log.named(passages_of(sources_of(payload_of(response))))
        return log

    def _origin(self) -> dict[str, Any]:
        session_id = (active_instrument_tags.get() or {}).get("session_id")
        return {
            "target": openinference_target(),
            "pipeline": self._pipeline,
            "session_id": None if session_id is None else str(session_id),
            "framework": "llama_index",
        }


# What goes out


def _replaced(response: Any, content: Any) -> Any:
    if isinstance(response, PydanticResponse):
        kind = PydanticResponse if isinstance(content, BaseModel) else Response
        return kind(content, response.source_nodes, response.metadata)
    if isinstance(response, Response | AgentChatResponse):
        return dataclasses.replace(response, response=str(content))
    if isinstance(response, AgentOutput):
        said = ChatMessage(role=MessageRole.ASSISTANT, content=str(content))
        return response.model_copy(update={"response": said, "structured_response": None})
    if isinstance(response, _STREAMS):
        return response  # its text is put in when it is made to stream again
    if isinstance(response, Mapping):
        key = next((key for key in ANSWER_KEYS if response.get(key) is not None), None)
        return content if key is None else {**response, key: content}
    return content  # a workflow of the application's own


def _annotated(response: Any, result: GuardResult) -> Any:
    if not hasattr(response, "metadata") or isinstance(response, BaseModel):
        return response  # has no place for metadata
    metadata = {**(response.metadata or {}), "ragaliq": result.summary}
    return dataclasses.replace(response, metadata=metadata)


def _streaming_again(response: Any, text: str) -> Any:
    """A stream that was held back, as a stream of one piece; everything else as it is."""
    if isinstance(response, StreamingResponse):
        return dataclasses.replace(response, response_gen=_one(text), response_txt=None)
    if isinstance(response, AsyncStreamingResponse):
        return dataclasses.replace(response, response_gen=_aone(text), response_txt=None)
    if isinstance(response, StreamingAgentChatResponse):
        message = ChatMessage(role=MessageRole.ASSISTANT, content=text)
        said = ChatResponse(message=message, delta=text)
        return StreamingAgentChatResponse(
            response=text,
            sources=response.sources,
            source_nodes=response.source_nodes,
            chat_stream=_one(said),
            achat_stream=_aone(said),
            is_writing_to_memory=False,  # the engine has done so
        )
    return response


def _one(item: Any) -> Generator[Any, None, None]:
    yield item


async def _aone(item: Any) -> AsyncGenerator[Any]:
    yield item


def _note_guarded(answer: str) -> None:
    """Tell ragaliq's handlers that an answer has been scored, so that they do not do it again."""
    span_id = active_span_id.get()
    for handler in get_dispatcher().span_handlers:
        if span_id is not None and isinstance(handler, RagaliqSpanHandler):
            handler.scored_by_guard(span_id, answer)


# A handler that gives the cases of runs inside a guard to that guard

_WATCHED: ContextVar[list[RunLog] | None] = ContextVar("ragaliq_guarded", default=None)


class _Seen(NamedTuple):
    """A run inside a guard, as a monitor's hold on it: what it held goes to the guard."""

    logs: list[RunLog]

    def submit(self, log: RunLog, **run: Any) -> bool:
        self.logs.append(log)
        return True

    def discard(self, reason: str) -> None:
        pass

    def withdraw(self) -> None:
        pass


class _Watcher(RagaliqSpanHandler):
    """Listens while a guarded call is in progress, anywhere in the process.

    It is its own monitor, which evaluates nothing.
    """

    if TYPE_CHECKING:
        _lock: threading.Lock
        _calls: int

    def __init__(self) -> None:
        super().__init__(
            self,  # type: ignore[arg-type]
            covers=lambda _tags: _WATCHED.get() is not None,
        )
        vars(self).update(_lock=threading.Lock(), _calls=0)

    def begin(self, run_id: str, **run: Any) -> _Seen | None:
        """A run inside a guard; None for what is none's."""
        watched = _WATCHED.get()
        return None if watched is None else _Seen(watched)

    def sweep_later(self, delay: float, sweepable: object) -> bool:
        """Refuses: a call that never ends is given up with the caller that waits for it."""
        return False

    def listen(self) -> None:
        """A guarded call begins."""
        with self._lock:
            vars(self)["_calls"] += 1
            super().listen()

    def stop_listening(self) -> None:
        """A guarded call has ended."""
        with self._lock:
            vars(self)["_calls"] -= 1
            if not self._calls:
                super().stop_listening()

    def scored_by_guard(self, span_id: str, answer: str) -> None:
        """Nothing: the guard around it has to judge what it makes of the answer."""


_WATCHER = _Watcher()
