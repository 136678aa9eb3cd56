"""The handler that LlamaIndex's dispatcher calls: from span events to finished runs."""

from __future__ import annotations

import functools
import logging
import sys
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from enum import Enum, auto
from inspect import BoundArguments
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakValueDictionary

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.chat_engine.types import BaseChatEngine, StreamingAgentChatResponse
from llama_index.core.evaluation import BaseEvaluator
from llama_index.core.indices.base import BaseIndex

# The documented name, though LlamaIndex has it in no `__all__`.
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.llm import LLMChatEndEvent, LLMCompletionEndEvent
from llama_index.core.instrumentation.span import BaseSpan
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import BaseNode, NodeWithScore
from llama_index.core.tools import BaseTool, ToolOutput
from llama_index.core.workflow import Workflow

from llama_index.evaluation.ragaliq.reading import (
    Extract,
    Facts,
    answer_of,
    facts_of,
    inputs_of,
    labels_of,
    named_sources,
    output_of,
    passages_of,
    payload_of,
    prompt_of,
    question_of_call,
    question_of_run,
    reply_of,
    require_function,
    sources_of,
)
from llama_index.evaluation.ragaliq.streams import (
    READING,
    failure_reason,
    follow_response,
    is_failure,
)
from ragaliq import (
    CaseDraft,
    ConfigurationError,
    GuardRejected,
    Passage,
    SpanTarget,
    current_span_target,
    is_suppressed,
    span_target,
)
from ragaliq.capture import (
    CaseSources,
    Explanation,
    Explanations,
    Found,
    Message,
    RunLog,
    RunRegistry,
)

if TYPE_CHECKING:
    from ragaliq import Monitor, OpenRun

__all__ = ["RagaliqSpanHandler", "openinference_target"]

logger: Final = logging.getLogger("ragaliq.llama_index")


class _Part(Enum):
    """The part a span plays in a run, as its class and method say."""

    ENGINE = auto()
    WORKFLOW = auto()
    RETRIEVE = auto()
    RERANK = auto()
    SYNTHESIZE = auto()
    MODEL = auto()
    TOOL = auto()
    WRITE = auto()  # a chat engine reads its own stream, for its history and for the application


_PARTS: dict[str, tuple[tuple[type, _Part], ...]] = {
    "query": ((BaseQueryEngine, _Part.ENGINE),),
    "aquery": ((BaseQueryEngine, _Part.ENGINE),),
    "chat": ((BaseChatEngine, _Part.ENGINE), (BaseLLM, _Part.MODEL)),
    "achat": ((BaseChatEngine, _Part.ENGINE), (BaseLLM, _Part.MODEL)),
    "stream_chat": ((BaseChatEngine, _Part.ENGINE), (BaseLLM, _Part.MODEL)),
    "astream_chat": ((BaseChatEngine, _Part.ENGINE), (BaseLLM, _Part.MODEL)),
    "complete": ((BaseLLM, _Part.MODEL),),
    "acomplete": ((BaseLLM, _Part.MODEL),),
    "stream_complete": ((BaseLLM, _Part.MODEL),),
    "astream_complete": ((BaseLLM, _Part.MODEL),),
    "run": ((Workflow, _Part.WORKFLOW),),
    "retrieve": ((BaseRetriever, _Part.RETRIEVE),),
    "aretrieve": ((BaseRetriever, _Part.RETRIEVE),),
    "_postprocess_nodes": ((BaseNodePostprocessor, _Part.RERANK),),
    "synthesize": ((BaseSynthesizer, _Part.SYNTHESIZE),),
    "asynthesize": ((BaseSynthesizer, _Part.SYNTHESIZE),),
    "call": ((BaseTool, _Part.TOOL),),
    "acall": ((BaseTool, _Part.TOOL),),
    "write_response_to_history": ((StreamingAgentChatResponse, _Part.WRITE),),
    "awrite_response_to_history": ((StreamingAgentChatResponse, _Part.WRITE),),
}
_LISTENING = threading.Lock()
_WHOLE_REPLIES = frozenset({"chat", "achat", "complete", "acomplete"})
_UUID_LENGTH = len("-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
_ROOTS = (_Part.ENGINE, _Part.WORKFLOW, _Part.SYNTHESIZE)
# What evaluators ask is nobody's traffic, and nobody's context.
_CHECKED = (_Part.ENGINE, _Part.WORKFLOW, _Part.MODEL)


def _part_of(span_id: str, instance: Any) -> _Part | None:
    """The part of a span with an id like `Class.method-uuid`, or None for all the others."""
    # Most spans are told apart by the method's name alone; models, for one, have a `chat` too.
    for kind, part in _PARTS.get(span_id[:-_UUID_LENGTH].rpartition(".")[2], ()):
        if isinstance(instance, kind):
            return part
    return None


class _Written(NamedTuple):
    """A chat stream that has been read to its end, or failed."""

    stream: object
    answer: str = ""
    failure: str = ""


class _Run:
    """One captured run, from its root span's start to its end.

    Attributes:
        key: The root span's id.
        started: When it was opened, in seconds on the monotonic clock.
        closed: Whether its end has been reported.
        log: What its steps held.
        ticket: The monitor's hold on it.
        is_workflow: Whether the root is a workflow or an agent.
        question: What the user asked, and where that was found.
        inputs: What it was called with, kept for the application's own function only.
        outputs: What it returned, likewise.
        guarded: Answers that guards have scored.
        is_open: Whether the root span has not ended yet.
        session_id: The conversation, when the application names it.
        target: The span to link to, when one was found.
        tags: Labels the application gave it.
        had_errors: Whether something in it failed.
        parts: The parts of the spans that have one.
        synthesizers: Ids of the spans that answer from given nodes.
        nodes: The nodes that came by, by their ids, with their passages.
        inner: What engines inside it answered.
        streaming: Calls whose replies are being streamed.
        not_evidence: Tools' texts that are the framework's own, or say that a tool failed.
        tools: Ids of the tools' spans that were open when it began, which may be around it.
        stream: The chat stream whose end brings the answer, once the root has returned it.
        written: The last chat stream that was read.
    """

    __slots__ = (
        "__weakref__",
        "closed",
        "guarded",
        "had_errors",
        "inner",
        "inputs",
        "is_open",
        "is_workflow",
        "key",
        "log",
        "nodes",
        "not_evidence",
        "outputs",
        "parts",
        "question",
        "session_id",
        "started",
        "stream",
        "streaming",
        "synthesizers",
        "tags",
        "target",
        "ticket",
        "tools",
        "written",
    )

    def __init__(self, key: str, ticket: OpenRun, *, is_workflow: bool) -> None:
        self.key: Hashable = key
        self.started = time.monotonic()
        self.closed = False
        self.log = RunLog(key)
        self.ticket = ticket
        self.is_workflow = is_workflow
        self.question = Found("", "")
        self.inputs: Mapping[str, Any] = {}
        self.outputs: Any = None
        self.guarded: set[str] | None = None
        self.is_open = True
        self.session_id: str | None = None
        self.target: SpanTarget | None = None
        self.tags: tuple[str, ...] = ()
        self.had_errors = False
        self.streaming: set[str] = set()
        self.inner: list[str] = []
        self.parts: dict[str, _Part] = {}
        self.synthesizers: set[Hashable] = set()
        # Held with their texts, so that neither id is another's: some postprocessors change nodes.
        self.nodes: dict[int, tuple[object, str | None, Passage]] = {}
        self.not_evidence: set[str] | None = None
        self.tools: tuple[str, ...] = ()
        self.stream: object | None = None
        self.written: _Written | None = None

    @property
    def steps(self) -> Collection[Hashable]:
        """Ids of its spans so far."""
        return self.log.parents

    @property
    def size(self) -> int:
        """Bytes of what it holds, about."""
        return self.log.size

    def is_answering(self, span_id: Hashable) -> bool:
        """Whether a span is inside one of the run's synthesizers."""
        parents = self.log.parents
        while span_id is not None and self.synthesizers:
            if span_id in self.synthesizers:
                return True
            span_id = parents.get(span_id)
        return False

    def evidence(self, nodes: Iterable[NodeWithScore | BaseNode]) -> list[Passage]:
        """The passages among nodes; sub-question and multi-step engines make some of answers."""
        passages = []
        for each in nodes:
            # Most nodes come by twice, as what was retrieved and as what is answered from.
            node = each.node if isinstance(each, NodeWithScore) else each
            text = getattr(node, "text", None)
            before = self.nodes.get(id(node))
            if before is not None and before[1] is text and before[2].score == _score(each):
                passages.append(before[2])
                continue
            for passage in passages_of([each]):
                self.nodes[id(node)] = (node, text, passage)
                passages.append(passage)
        if not self.inner:
            return passages
        ends = tuple(f"{name}: {answer}" for answer in self.inner for name in _LABELS)
        return [passage for passage in passages if not passage.text.rstrip().endswith(ends)]

    def discard(self, reason: str) -> None:
        """End it without a case; called by the registry."""
        self.ticket.discard(reason)


class RagaliqSpanHandler(BaseSpanHandler[BaseSpan]):
    """Finds question, context and answer of every run and hands them to a monitor.

    Attach it with `attach`. It works on LlamaIndex's root dispatcher only: the dispatchers of
    single modules see a part of a run.

    Args:
        monitor: Decides what is evaluated, and evaluates it.
        pipeline: The application's name for what it runs.
        extract: A function of what a run was called with (a mapping by argument, or by field of a
            workflow's start event) and what it returned, which returns any of `question`,
            `contexts` and `answer` as a mapping; the rest is guessed. It runs before the call
            returns, so it should do no more than look things up. A run for which it raises is
            counted `extract_failed`.
        covers: Which runs are followed, by the instrument tags that they start under; all of them
            by default.
        max_runs: Runs in progress that are kept; beyond, the oldest is counted `evicted`.
        max_age: Seconds a run may take, its stream included; after that it is counted `expired`.

    Attributes:
        monitor: Where the runs go.
        pipeline: See above.
        stream_ends: The event handler that goes with this one: it says what models streamed.

    Raises:
        ConfigurationError: `extract` is no plain function, or `monitor` no monitor.
    """

    if TYPE_CHECKING:
        monitor: Monitor
        pipeline: str
        stream_ends: StreamEnds
        _runs: RunRegistry[_Run]
        _faults: _FaultLog
        _explained: Explanations
        _extract: Extract | None
        _covers: Callable[[Mapping[str, Any]], bool] | None
        _awaited: WeakValueDictionary[int, _Run]
        _ignored: dict[str, None]
        _tools: dict[str, list[tuple[_Run, str]]]

    def __init__(
        self,
        monitor: Monitor,
        *,
        pipeline: str = "",
        extract: Extract | None = None,
        covers: Callable[[Mapping[str, Any]], bool] | None = None,
        max_runs: int = 10_000,
        max_age: float = 600.0,
    ) -> None:
        require_function(extract)
        if not callable(getattr(monitor, "begin", None)):
            raise ConfigurationError(
                f"monitor must be a ragaliq.Monitor, got {type(monitor).__name__}; "
                "a judge is given by name: attach(judge=...)"
            )
        super().__init__()
        # Past pydantic, whose private attributes take a detour that every span would pay for.
        vars(self).update(
            monitor=monitor,
            pipeline=pipeline,
            stream_ends=StreamEnds(self),
            _runs=RunRegistry(max_runs=max_runs, max_age=max_age, sweep_later=monitor.sweep_later),
            _faults=_FaultLog(),
            _explained=Explanations(logger),
            _extract=extract,
            _covers=covers,
            # Chat streams by their ids; the runs hold the streams, so that the ids stay theirs.
            _awaited=WeakValueDictionary(),
            _ignored={},
            _tools={},
        )

    @classmethod
    def class_name(cls) -> str:
        """Name of the class, as LlamaIndex asks for it."""
        return "RagaliqSpanHandler"

    @property
    def runs_in_progress(self) -> int:
        """Captured runs that have not ended."""
        return len(self._runs)

    @property
    def errors(self) -> int:
        """Events that ragaliq failed to handle; the application never notices them."""
        return self._faults.count

    def explain(self, run_id: str) -> Explanation | None:
        """What became of one of the latest runs: its parts, where they came from, or why not.

        Args:
            run_id: The run's id, as the results know it.

        Returns:
            None for a run that was sampled out, is in progress, or ended too long ago.
        """
        return self._explained.of(run_id)

    # The three methods below replace the inherited bookkeeping, which keeps an object a span and
    # a list of all that ever ended.

    def span_enter(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: Any | None = None,
        parent_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A span has started."""
        try:
            self._enter(id_, bound_args, instance, parent_id, tags or {})
        except Exception as error:  # noqa: BLE001 - would be dropped without a word
            self._faults.note(error)
            # The run is lost; what follows is still a part of it.
            self._give_up(self._runs.runs.get(id_) or self._runs.runs.get(parent_id or ""), id_)

    def span_exit(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: Any | None = None,
        result: Any | None = None,
        **kwargs: Any,
    ) -> None:
        """A span has ended well."""
        try:
            self._exit(id_, bound_args, instance, result)
        except Exception as error:  # noqa: BLE001 - would be dropped without a word
            self._faults.note(error)
            self._give_up(self._runs.runs.get(id_) or self._awaited.get(id(instance)))

    def span_drop(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: Any | None = None,
        err: BaseException | None = None,
        **kwargs: Any,
    ) -> None:
        """A span has ended with an exception."""
        try:
            self._drop(id_, instance, err)
        except Exception as error:  # noqa: BLE001 - would be dropped without a word
            self._faults.note(error)
            self._give_up(self._runs.runs.get(id_) or self._awaited.get(id(instance)))

    def new_span(self, *args: Any, **kwargs: Any) -> BaseSpan | None:
        """Nothing: no span is kept."""
        return None

    def prepare_to_exit_span(self, *args: Any, **kwargs: Any) -> BaseSpan | None:
        """Nothing: no span is kept."""
        return None

    def prepare_to_drop_span(self, *args: Any, **kwargs: Any) -> BaseSpan | None:
        """Nothing: no span is kept."""
        return None

    def listen(self) -> None:
        """Have LlamaIndex's root dispatcher call this handler."""
        dispatcher = get_dispatcher()
        with _LISTENING:
            if not any(each is self for each in dispatcher.span_handlers):
                dispatcher.event_handlers = [*dispatcher.event_handlers, self.stream_ends]
                dispatcher.span_handlers = [*dispatcher.span_handlers, self]

    def stop_listening(self) -> None:
        """Undo `listen`."""
        dispatcher = get_dispatcher()
        with _LISTENING:
            # New lists: another thread may be walking the old ones, and would skip a handler. By
            # identity: LlamaIndex's handlers compare equal when their fields do.
            spans = [each for each in dispatcher.span_handlers if each is not self]
            events = [each for each in dispatcher.event_handlers if each is not self.stream_ends]
            dispatcher.span_handlers, dispatcher.event_handlers = spans, events

    def scored_by_guard(self, span_id: str, answer: str) -> None:
        """A guard inside this span has judged `answer`: the run is not scored again for it."""
        run = self._runs.runs.get(span_id)
        if run is not None:
            run.guarded = (run.guarded or set()) | {answer.strip()}

    def streamed(self, span_id: str | None, response: Any) -> None:
        """A model has streamed its reply to the end."""
        run = self._runs.runs.get(span_id or "")
        if run is not None and span_id in run.streaming:
            run.streaming.discard(span_id)
            self._replied(run, span_id, response)

    def close(self) -> None:
        """End the runs in progress, counted `interrupted`; called when LlamaIndex shuts down."""
        self._runs.give_up("interrupted")

    def close_open(self) -> None:
        """End the runs that more events would have to end; called when nobody listens any more."""
        for run in self._runs.open_runs():
            if run.is_open:  # a stream brings its answer without any
                self._discard(run, "interrupted")

    # Starts

    def _enter(
        self,
        span_id: str,
        bound_args: BoundArguments,
        instance: Any,
        parent_id: str | None,
        tags: dict[str, Any],
    ) -> None:
        runs = self._runs
        if parent_id in self._ignored:
            self._ignore(span_id)
            return
        part = _part_of(span_id, instance)
        run = runs.runs.get(parent_id) if parent_id is not None else None
        if run is None and part is _Part.WRITE:
            run = self._awaited.get(id(instance))
        if run is None and part is _Part.MODEL:
            reading = READING.get()
            run = reading if isinstance(reading, _Run) and not reading.closed else None
        if run is None:
            # Not only spans without a parent: the parent may have started before we listened, or
            # be of no interest, such as the application's own span around several queries.
            if parent_id is not None and runs.is_ignored(parent_id):
                self._ignore(span_id)
            else:
                self._enter_root(span_id, parent_id, part, bound_args, tags)
                if self._tools and parent_id is None and span_id in runs.runs:
                    runs.runs[span_id].tools = tuple(self._tools)
            return
        if part in _CHECKED and (
            is_suppressed() or (not run.is_answering(parent_id) and _is_called_by(BaseEvaluator))
        ):
            self._ignore(span_id)
            return
        run.log.parents[span_id] = parent_id
        runs.runs[span_id] = run  # as `join` does: most spans come no further
        if run.closed:
            runs.join(run, span_id)
        if part is not None:
            run.parts[span_id] = part
            if run.target is None:
                run.target = current_span_target()
            self._note_start(run, span_id, part, bound_args, instance)

    def _enter_root(
        self,
        span_id: str,
        parent_id: str | None,
        part: _Part | None,
        bound_args: BoundArguments,
        tags: dict[str, Any],
    ) -> None:
        if part is _Part.RETRIEVE:
            # A retriever may ask query engines of its own; what it gets is not for a user.
            self._ignore(span_id)
        # A synthesizer below a span that we do not know is an engine's that began before us.
        if part is _Part.SYNTHESIZE and parent_id is not None:
            return
        if part not in _ROOTS or (self._covers is not None and not self._covers(tags)):
            return
        if _is_called_by((BaseEvaluator, BaseIndex) if part is _Part.SYNTHESIZE else BaseEvaluator):
            self._ignore(span_id)
            return
        ticket = self.monitor.begin(span_id, pipeline=self.pipeline, framework="llama_index")
        if ticket is None:
            # Remembered, or the engines below would be taken for roots.
            self._ignore(span_id)
            return
        run = _Run(span_id, ticket, is_workflow=part is _Part.WORKFLOW)
        self._runs.open(run)
        if self._extract is not None:
            run.inputs = inputs_of(bound_args)
        run.question = (question_of_run if run.is_workflow else question_of_call)(bound_args)
        run.target = openinference_target() or current_span_target()
        session_id = tags.get("session_id")
        run.session_id = None if session_id is None else str(session_id)
        run.tags = labels_of(tags)
        self._note_start(run, span_id, part, bound_args, None)

    def _note_start(
        self,
        run: _Run,
        span_id: str,
        part: _Part,
        bound_args: BoundArguments,
        instance: Any,
    ) -> None:
        log = run.log
        if part is _Part.MODEL:
            if _is_same_model(span_id, log.parents.get(span_id)):
                return
            messages = prompt_of(bound_args)
            if run.not_evidence:
                messages = [_without(run.not_evidence, message) for message in messages]
            log.asked(span_id, messages)
        elif part is _Part.RETRIEVE:
            log.retrieving(span_id)
        elif part is _Part.SYNTHESIZE:
            run.synthesizers.add(span_id)
            log.answering(span_id, run.evidence(bound_args.arguments.get("nodes") or ()))
        elif part is _Part.TOOL:
            self._tools[span_id] = []
        elif part is _Part.WRITE:
            follow_response(instance, _Listener(self, run, instance))

    def _ignore(self, span_id: str) -> None:
        """Take nothing below this span for a run, until it ends."""
        # Every span ends; should a future version lose some, memory stays bounded all the same.
        if len(self._ignored) >= _MOST_IGNORED:
            self._ignored.pop(next(iter(self._ignored)), None)
        self._ignored[span_id] = None

    # Ends

    def _exit(self, span_id: str, bound_args: BoundArguments, instance: Any, result: Any) -> None:
        if isinstance(instance, StreamingAgentChatResponse):
            self._stream_was_read(instance)
        run = self._runs.runs.get(span_id)
        if span_id in self._tools:
            self._end_tool(run, span_id, result)
        if run is None:
            self._ignored.pop(span_id, None)
        elif span_id == run.key:
            self._exit_root(run, result)
        elif (part := run.parts.get(span_id)) is not None:
            if part is _Part.TOOL and isinstance(result, ToolOutput):
                self._note_tool(run, span_id, instance, result)
            else:
                self._note_end(run, span_id, part, bound_args, result)

    def _note_end(
        self,
        run: _Run,
        span_id: str,
        part: _Part,
        bound_args: BoundArguments,
        result: Any,
    ) -> None:
        log = run.log
        if part is _Part.MODEL:
            if reply_of(result) is None:
                run.streaming.add(span_id)
            else:
                self._replied(run, span_id, result)
        elif part is _Part.RETRIEVE:
            log.retrieved(span_id, run.evidence(result))
        elif part is _Part.RERANK:
            given = run.evidence(bound_args.arguments.get("nodes") or ())
            run.nodes.clear()  # it may have changed them, their metadata too
            log.reranked(span_id, run.evidence(result), given=given)
        elif part is _Part.ENGINE or part is _Part.WORKFLOW:
            payload = payload_of(result)
            if answer := answer_of(payload):
                run.inner.append(answer)
            if not run.synthesizers:
                log.returned(span_id, run.evidence(sources_of(payload)) or None)

    def _note_tool(self, run: _Run, span_id: str, tool: Any, output: ToolOutput) -> None:
        is_hand_off = tool.metadata.name == "handoff"  # a name that LlamaIndex keeps to itself
        if output.is_error or is_hand_off:
            run.not_evidence = (run.not_evidence or set()) | {output.content}
            run.had_errors = run.had_errors or output.is_error
            return
        raw = output.raw_output
        if isinstance(raw, list) and (
            nodes := [node for node in raw if isinstance(node, NodeWithScore)]
        ):
            run.log.told(span_id, passages_of(nodes))
        elif output.content.strip():
            run.log.told(span_id, [Passage(output.content)])

    def _replied(self, run: _Run, span_id: str, response: Any) -> None:
        reply = reply_of(response)
        if reply is not None:
            run.log.replied(span_id, reply[0], also=reply[1])

    def _exit_root(self, run: _Run, result: Any) -> None:
        run.is_open = False
        if run.target is None or run.target.source != _OPENINFERENCE:
            run.target = openinference_target() or run.target or current_span_target()
        payload = payload_of(result)
        if self._extract is not None:
            run.outputs = output_of(result)
        if result is None and run.is_workflow:
            # How a workflow that its user cancelled ends.
            self._discard(run, "cancelled")
            return
        named = named_sources(result) if run.is_workflow else None
        if named is None:
            # What a synthesizer was given says more, and costs nothing more.
            named = None if run.synthesizers else run.evidence(sources_of(payload)) or None
        if named is not None:
            run.log.named(named)
        if not isinstance(payload, StreamingAgentChatResponse):
            listener = _Listener(self, run)
            if not follow_response(payload, listener):
                listener.complete(answer_of(payload))
        elif not payload.is_writing_to_memory:
            follow_response(payload, _Listener(self, run))
        else:
            self._await_written(run, payload)

    def _drop(self, span_id: str, instance: Any, error: BaseException | None) -> None:
        if isinstance(instance, StreamingAgentChatResponse):
            self._stream_was_read(instance, error or RuntimeError())
        run = self._runs.runs.get(span_id)
        if span_id in self._tools:
            self._end_tool(run, span_id, None)
        if run is None:
            self._ignored.pop(span_id, None)
            return
        if span_id != run.key:
            run.log.failed(span_id)
            run.had_errors = run.had_errors or is_failure(error)
            return
        run.is_open = False
        if isinstance(error, GuardRejected):
            self._withdraw(run)
        else:
            self._discard(run, failure_reason(error))

    # Tools with threads of their own, whose context is lost: engines that are asked there look like
    # runs of the application. They wait for the tool: if it says what they answered, they are its.

    def _waits_for_tool(self, run: _Run, answer: str) -> bool:
        """Whether a tool that began before the run may turn out to be around it."""
        waiting = [self._tools.get(tool) for tool in run.tools]
        for each in waiting:
            if each is not None:
                each.append((run, answer))
        run.tools = ()
        return any(each is not None for each in waiting)

    def _end_tool(self, run: _Run | None, span_id: str, output: Any) -> None:
        waited = self._tools.pop(span_id)
        told = output.content if isinstance(output, ToolOutput) and run is not None else ""
        for inner, answer in waited:
            if run is not None and len(answer) >= _TELLING and answer in told:
                if self._runs.close(inner):
                    run.log.adopt(inner.log, span_id)
                    inner.ticket.withdraw()
            elif not any((inner, answer) in others for others in self._tools.values()):
                self._finish(inner, answer)

    # Chat engines that read the model's stream themselves, in a thread or task of their own, to
    # write it to their history, and pass the tokens on through a queue

    def _await_written(self, run: _Run, stream: StreamingAgentChatResponse) -> None:
        """The root has given the stream to the application."""
        # The reading may have ended before this moment: what comes second finds the run ended.
        run.stream = stream
        self._awaited[id(stream)] = run
        if run.written is not None:
            self._written(run, run.written)
        elif stream.is_done:
            self._stream_was_read(stream, stream.exception)

    def _written(self, run: _Run, written: _Written) -> None:
        """A stream of the run has been read; its answer counts once the root has returned it."""
        run.written = written
        if run.stream is not written.stream:
            return
        if written.failure:
            self._discard(run, written.failure)
        else:
            self._finish(run, written.answer)

    def _stream_was_read(
        self, stream: StreamingAgentChatResponse, error: BaseException | None = None
    ) -> None:
        """An engine's reading has ended; of use only when its start was missed."""
        run = self._awaited.get(id(stream))
        if run is None:
            return
        if error is not None:
            self._discard(run, failure_reason(error))
        elif stream.response:
            self._finish(run, stream.response)

    # How runs end, each exactly once

    def _finish(self, run: _Run, answer: str) -> None:
        """End a run whose answer is complete: to the monitor, or with the reason why not."""
        if run.closed or (run.tools and self._waits_for_tool(run, answer)):
            return
        if run.guarded and answer.strip() in run.guarded:
            self._withdraw(run)
            return
        facts = self._facts(run)
        if facts is None:
            self._discard(run, "extract_failed")
            return
        question, answer = facts.question or run.question.text, facts.answer or answer
        reason = _missing(run, facts, question, answer)
        if not self._runs.close(run):
            return
        if reason:
            self._explained.note(str(run.key), reason)
            run.ticket.discard(reason)
            return
        case = CaseDraft(
            id=str(run.key),
            query=question,
            passages=facts.context,
            finder=run.log if facts.context is None else None,
            response=answer,
            tags=run.tags,
            sources=_sources(
                "application" if facts.question else run.question.where,
                "application" if facts.answer else "output",
                "" if facts.context is None else "application",
            ),
            had_errors=run.had_errors,
        )
        self._explained.note(str(run.key), case)
        run.ticket.submit(case, target=run.target, session_id=run.session_id)

    def _facts(self, run: _Run) -> Facts | None:
        if self._extract is None:
            return _NOTHING_SAID
        try:
            return facts_of(self._extract(run.inputs, run.outputs))
        except Exception as error:  # noqa: BLE001 - the application's own code may do anything
            self._faults.extract_failed(error)
            return None
        except BaseException:
            # Something from outside, such as Ctrl-C, while the function ran: the run ends with it.
            self._discard(run, "interrupted")
            raise

    def _discard(self, run: _Run, reason: str) -> None:
        if self._runs.close(run):
            self._explained.note(str(run.key), reason)
            run.ticket.discard(reason)

    def _withdraw(self, run: _Run) -> None:
        if self._runs.close(run):
            self._explained.note(str(run.key), "withdrawn")
            run.ticket.withdraw()

    def _give_up(self, run: _Run | None, entered: str | None = None) -> None:
        if run is not None:
            if entered is not None:
                run.log.began(entered, run.key)
                self._runs.join(run, entered)
            self._discard(run, "internal_error")


class StreamEnds(BaseEventHandler):
    """Says what models have streamed, which spans do not: they end with the first token."""

    if TYPE_CHECKING:
        _handler: RagaliqSpanHandler

    def __init__(self, handler: RagaliqSpanHandler) -> None:
        super().__init__()
        vars(self)["_handler"] = handler

    @classmethod
    def class_name(cls) -> str:
        """Name of the class, as LlamaIndex asks for it."""
        return "RagaliqStreamEnds"

    def handle(self, event: Any, **kwargs: Any) -> None:
        """Something has happened; there is an event for each token."""
        if type(event) is LLMChatEndEvent or type(event) is LLMCompletionEndEvent:
            try:
                self._handler.streamed(event.span_id, event.response)
            except Exception as error:  # noqa: BLE001 - would be dropped without a word
                self._handler._faults.note(error)


class _Listener:
    """Ends a run with the answer that is being streamed; see `streams.StreamListener`."""

    def __init__(
        self, handler: RagaliqSpanHandler, run: _Run, written: object | None = None
    ) -> None:
        self.run = run
        self._handler = handler
        self._stream = written

    def complete(self, answer: str) -> None:
        try:
            if self._stream is None:
                self._handler._finish(self.run, answer)
            else:
                self._handler._written(self.run, _Written(self._stream, answer=answer))
        except Exception as error:  # noqa: BLE001 - what reads the stream must not notice
            self._handler._faults.note(error)
            self._handler._discard(self.run, "internal_error")

    def broken(self, reason: str) -> None:
        if self._stream is None:
            self._handler._discard(self.run, reason)
        else:
            self._handler._written(self.run, _Written(self._stream, failure=reason))


class _FaultLog:
    """Counts our own mistakes, and logs the first.

    LlamaIndex drops whatever a handler raises without a word, so it is caught before. The message
    of an exception may quote the application's text: only its type and place are logged.
    """

    def __init__(self) -> None:
        self.count = 0
        self._has_extract_failed = False

    def note(self, error: Exception) -> None:
        """Count an exception; log it if it is the first."""
        self.count += 1
        if self.count > 1:
            return
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        where = f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}" if place else "?"
        logger.warning(
            "a run could not be captured: %s at %s; later ones are only counted",
            type(error).__name__,
            where,
        )

    def extract_failed(self, error: Exception) -> None:
        """Log the first failure of the application's function; its runs are counted by reason."""
        if not self._has_extract_failed:
            self._has_extract_failed = True
            logger.warning(
                "extract failed (%s); such runs are counted `extract_failed`", type(error).__name__
            )


_NOTHING_SAID = Facts()
_MOST_IGNORED = 100_000
# Letters that an answer has at least if finding it elsewhere is to mean anything.
_TELLING = 20
_FRAMES = 16
_OPENINFERENCE = "openinference"
_INSTRUMENTATION = "openinference.instrumentation.llama_index"


def openinference_target() -> SpanTarget | None:
    """OpenInference's span of the call in progress, if it is being traced.

    At a root's start it exists when OpenInference was attached before us, at its end when after.
    """
    # Looked up, not imported: an application without it must not pay for it.
    instrumentation = sys.modules.get(_INSTRUMENTATION)
    if instrumentation is None:
        return None
    span = instrumentation.get_current_span()
    return None if span is None else span_target(span.get_span_context(), source=_OPENINFERENCE)


def _is_called_by(kind: type | tuple[type, ...]) -> bool:
    """Whether a method of such an object made the call in progress.

    Faithfulness and relevancy in LlamaIndex ask a query engine of their own, whose spans look like
    an application's, and nothing around them has a span; so do indices that summarise what they
    hold. What can be seen is the call itself: an `aevaluate` that awaits a query is still on the
    stack. To look costs a microsecond or two.
    """
    frame = sys._getframe(1)
    for _ in range(_FRAMES):
        outer = frame.f_back
        if outer is None:
            return False
        frame = outer
        if frame.f_code.co_name in _CALLERS:
            return isinstance(frame.f_locals.get("self"), kind)
    return False


_LABELS = ("Response", "Answer")
_CALLERS = frozenset({"aevaluate", "_add_nodes_to_index"})


def _is_same_model(span_id: str, parent_id: Hashable) -> bool:
    """Whether a model's method calls another of its own: `chat`, for one, may be `complete`."""
    if not isinstance(parent_id, str):
        return False
    owner, _, method = parent_id[:-_UUID_LENGTH].rpartition(".")
    # Not below one that streams, whose end cannot always be seen.
    return method in _WHOLE_REPLIES and owner == span_id[:-_UUID_LENGTH].rpartition(".")[0]


@functools.lru_cache(maxsize=256)
def _sources(question: str, answer: str, context: str) -> CaseSources:
    return CaseSources(question=question, answer=answer, context=context)


def _score(node: NodeWithScore | BaseNode) -> float | None:
    return node.score if isinstance(node, NodeWithScore) else None


def _without(texts: set[str], message: Message) -> Message:
    return message._replace(role="system") if message.text in texts else message


def _missing(run: _Run, facts: Facts, question: str, answer: str) -> str:
    if facts.context is None and not run.log.has_retrieved:
        return "not_rag"
    if not question.strip():
        return "no_question"
    return "" if answer.strip() else "no_answer"
