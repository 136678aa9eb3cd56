"""The handler of LlamaIndex's dispatcher: from span events to finished runs."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum, auto
from inspect import BoundArguments
from operator import is_
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import uuid4
from weakref import WeakKeyDictionary, WeakValueDictionary

from llama_index.core.agent.workflow.workflow_events import AgentWorkflowStartEvent, ToolCallResult
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.base.llms.types import CompletionResponse
from llama_index.core.chat_engine.types import BaseChatEngine, StreamingAgentChatResponse
from llama_index.core.evaluation import BaseEvaluator
from llama_index.core.indices.base import BaseIndex
from llama_index.core.ingestion import IngestionPipeline

# The documented names, though LlamaIndex has them in no `__all__`.
from llama_index.core.instrumentation import (  # type: ignore[attr-defined]
    DispatcherSpanMixin,
    get_dispatcher,
)
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.llm import (
    LLMChatEndEvent,
    LLMCompletionEndEvent,
    LLMPredictStartEvent,
)
from llama_index.core.instrumentation.span import BaseSpan
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import ChatPromptTemplate
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import NodeWithScore
from llama_index.core.tools import BaseTool, ToolOutput
from llama_index.core.workflow import StopEvent, Workflow

from llama_index.evaluation.ragaliq._private import (
    GENERATION,
    ID_END,
    OPENINFERENCE,
    RERANK,
    SPAN_ID,
    WRITE,
    is_called_by,
    openinference_target,
)
from llama_index.evaluation.ragaliq.reading import (
    READER,
    answer_of,
    cited_blocks,
    fields_handed_on,
    inputs_of,
    labels_of,
    metadata_of,
    model_name_of,
    nodes_in,
    nodes_listed,
    output_of,
    passage_of,
    passages_of,
    payload_of,
    prompt_of,
    query_of,
    question_of_call,
    question_of_function,
    question_of_run,
    reply_of,
    shown_passages,
    sources_of,
    texts_inside,
)
from llama_index.evaluation.ragaliq.streams import (
    READING,
    failure_reason,
    follow_response,
    is_failure,
)
from ragaliq import (
    ConfigurationError,
    GuardRejected,
    Passage,
    SpanTarget,
    current_span_target,
    is_suppressed,
)
from ragaliq.capture import (
    LONE_CALL,
    Chosen,
    Explanation,
    Explanations,
    Extract,
    Found,
    FramingHandler,
    Keys,
    LogOnce,
    Message,
    Overrides,
    Reader,
    RunFilter,
    RunLog,
    RunRegistry,
    Search,
    find_current_runs,
    named_id,
    note_search,
    provided_passages,
    question_shown,
    searches_shown,
    without_answers,
)

if TYPE_CHECKING:
    from ragaliq import Monitor, RunHandle
    from ragaliq.capture import RecordedRun

__all__ = ["RagaliqSpanHandler"]

logger: Final = logging.getLogger("ragaliq.llama_index")
_LOG_ONCE: Final = LogOnce(logger)


class _Part(Enum):
    """Part of a span in a run, by its class and method."""

    ENGINE = auto()
    WORKFLOW = auto()
    RETRIEVE = auto()
    RERANK = auto()
    SYNTHESIZE = auto()
    RESPOND = auto()  # a synthesizer that is given plain texts
    MODEL = auto()
    TOOL = auto()
    WRITE = auto()  # a chat engine reads its own stream, for its history and for the application


_CHAT = ((BaseChatEngine, _Part.ENGINE), (BaseLLM, _Part.MODEL))
_PARTS: dict[str, tuple[tuple[type, _Part], ...]] = {
    prefix + method: parts
    for method, parts in {
        "query": ((BaseQueryEngine, _Part.ENGINE),),
        "chat": _CHAT,
        "stream_chat": _CHAT,
        "complete": ((BaseLLM, _Part.MODEL),),
        "stream_complete": ((BaseLLM, _Part.MODEL),),
        "retrieve": ((BaseRetriever, _Part.RETRIEVE),),
        "synthesize": ((BaseSynthesizer, _Part.SYNTHESIZE),),
        "get_response": ((BaseSynthesizer, _Part.RESPOND),),
        "call": ((BaseTool, _Part.TOOL),),
        WRITE: ((StreamingAgentChatResponse, _Part.WRITE),),
    }.items()
    for prefix in ("", "a")
} | {
    "run": ((Workflow, _Part.WORKFLOW),),
    RERANK: ((BaseNodePostprocessor, _Part.RERANK),),
}
_ROOTS = (_Part.ENGINE, _Part.WORKFLOW, _Part.SYNTHESIZE, _Part.RESPOND)
_ASKING = (*_ROOTS, _Part.MODEL)
# Whose methods have spans of LlamaIndex's; other spans are functions of the application's.
_LLAMA_INDEX = (DispatcherSpanMixin, IngestionPipeline)
# What evaluators ask is nobody's traffic, and nobody's context.
_CHECKED = (_Part.ENGINE, _Part.WORKFLOW, _Part.MODEL)
_MOST_IGNORED, _MOST_SEARCHES = 100_000, 1_000
_EVENTS = frozenset({LLMChatEndEvent, LLMCompletionEndEvent, LLMPredictStartEvent})
_LISTENING = threading.Lock()


@dataclass(slots=True)
class _Started:
    """A span that has started, and its part, if any."""

    id: str
    parent_id: str | None
    part: _Part | None
    arguments: BoundArguments
    instance: Any
    tags: Mapping[str, Any]


def _part_of(kinds: Sequence[tuple[type, _Part]], instance: Any) -> _Part | None:
    for kind, part in kinds:
        if isinstance(instance, kind):
            return part
    return None


@dataclass(slots=True, eq=False, weakref_slot=True)
class LlamaIndexRun:
    """One captured run, from its root span's start to its end.

    The registry asks for `key` (the root span's id), `started` (seconds on the monotonic clock),
    `closed`, `steps`, `size` and `discard`.
    """

    key: Hashable
    log: RunLog
    handle: RunHandle | RecordedRun | None = None  # of a function: none until it asks
    part: _Part | None = None  # its root span's; none of a function and of a frame
    started: float = field(default_factory=time.monotonic)
    closed: bool = False
    has_own_steps: bool = False  # of a workflow that the application wrote
    is_rag: bool = False  # of a query engine, or framed by hand: whatever its model is shown
    is_left_out: bool = False  # by sampling: framed by hand, so that nothing inside is a root
    is_open: bool = True  # whether the root span has not ended yet
    is_streamed: bool = False  # whether the answer is a model's stream, which plain code reads
    inputs: Mapping[str, Any] = field(default_factory=dict)  # for the application's own function
    outputs: Any = None
    session_id: str | None = None
    target: SpanTarget | None = None
    reply: str = ""  # the last that a model gave
    reply_blocks: object = None
    model: object = None  # that gave it
    arguments: Sequence[str] = ()  # of the tools that the last reply called
    guarded: set[str] = field(default_factory=set)  # answers that guards have scored
    parts: dict[Hashable, _Part | None] = field(default_factory=dict)  # of the spans that have one
    # The nodes that came by, by their ids, with their passages; and with their texts, so that
    # neither id is another's: some postprocessors change nodes.
    nodes: dict[int, tuple[object, str | None, Passage]] = field(default_factory=dict)
    # Lists and records that events handed on, by key and id, with their sizes then.
    handed: dict[tuple[str, int], tuple[object, int]] = field(default_factory=dict)
    inner: list[str] = field(default_factory=list)  # what engines inside it answered
    streaming: set[str] = field(default_factory=set)  # calls whose replies are being streamed
    # The messages that a completion's prompt is written from, by the span around it and by prompt.
    written_from: dict[Hashable, LLMPredictStartEvent | list[Message]] = field(default_factory=dict)
    # Tools' texts that are the framework's own, or say that a tool failed.
    not_evidence: set[str] = field(default_factory=set)
    direct: str = ""  # what a tool said that is to be the answer as it is, and supports nothing
    stream: object | None = None  # the chat stream whose end brings the answer, once returned
    written: tuple[object, str, str] | None = None  # the last that was read: text, failure

    @property
    def steps(self) -> Collection[Hashable]:
        """Ids of its spans so far."""
        return self.log.parents

    @property
    def size(self) -> int:
        """Bytes of what it holds, about."""
        return self.log.size

    def discard(self, reason: str) -> None:
        """End it without a case; called by the registry."""
        if self.handle is not None:
            self.handle.discard(reason)

    @property
    def has_synthesizer(self) -> bool:
        """True if one of its spans answers from given nodes."""
        return _Part.SYNTHESIZE in self.parts.values()

    def evidence(self, nodes: Any) -> list[Passage]:
        """Passages of a list of nodes, without those that some engines make of answers."""
        passages = []
        for each in nodes_listed(nodes):
            # Most nodes come by twice, as what was retrieved and as what is answered from.
            if type(each) is NodeWithScore or isinstance(each, NodeWithScore):
                node, score = each.node, each.score
            else:
                node, score = each, None
            text = getattr(node, "text", None)
            before = self.nodes.get(id(node))
            if before is not None and before[1] is text and before[2].score is score:
                passages.append(before[2])
                continue
            if (passage := passage_of(each)) is not None:
                self.nodes[id(node)] = (node, text, passage)
                passages.append(passage)
        return without_answers(passages, self.inner)

    def called(self, span: _Started, given: Mapping[str, Any]) -> None:
        """Handle the start of the engine, workflow or function that is the whole run."""
        start = span.arguments.arguments.get("start_event")
        # An agent's prompts are written from its memory.
        is_agent = start is not None and isinstance(start, AgentWorkflowStartEvent)
        self.log.is_conversation = self.log.is_conversation or is_agent
        self.has_own_steps = span.part is _Part.WORKFLOW and not is_agent
        if earlier := READER.earlier(given):
            self.log.conversation_given(READER, earlier)
        if span.part is _Part.WORKFLOW or span.part is None:
            self.passed(span.id, given, is_input=True)

    def began(self, span: _Started) -> None:
        """Handle the start of one of its spans."""
        log, part, arguments = self.log, span.part, span.arguments
        self.parts[span.id] = part
        if part is _Part.MODEL:
            messages = self._prompt(span)
            if self.not_evidence:
                messages = [
                    each._replace(role="system") if each.text in self.not_evidence else each
                    for each in messages
                ]
            self.model = span.instance
            log.model_called(span.id, messages)
        elif part is _Part.RETRIEVE:
            log.searched(span.id, query_of(arguments))
        elif part is _Part.RESPOND:
            chunks = arguments.arguments.get("text_chunks") or ()
            log.answering(span.id, [Passage(text) for text in chunks if isinstance(text, str)])
        elif part is _Part.SYNTHESIZE and not span.id.startswith(GENERATION):
            log.answering(span.id, self.evidence(arguments.arguments.get("nodes")))

    def _prompt(self, span: _Started) -> list[Message]:
        """Prompt of a model; of a completion, the messages that its prompt is written from."""
        messages = prompt_of(span.arguments)
        if "messages" not in span.arguments.arguments:
            text, known = messages[0].text if messages else "", self.written_from
            held = known.get(self.log.parents.get(span.id)) or known.get(text)
            if isinstance(held, LLMPredictStartEvent):
                written = held.template.format_messages(**(held.template_args or {}))
                held = [read for each in written if (read := READER.message(each)) is not None]
            messages = known[text] = held or messages
        # A model's method may call another of its own, some of them when nothing is around it.
        self.written_from[span.id] = messages
        return messages

    def ended(self, span_id: str, part: _Part, bound_args: BoundArguments, result: Any) -> None:
        """Handle the end of one of its spans without an error."""
        log = self.log
        if part is _Part.MODEL:
            if not self.replied(span_id, result):
                self.streaming.add(span_id)
        elif part is _Part.RETRIEVE:
            log.retrieved(span_id, self.evidence(result))
        elif part is _Part.RERANK:
            given = self.evidence(bound_args.arguments.get("nodes"))
            self.nodes.clear()  # it may have changed them, their metadata too
            log.reranked(span_id, self.evidence(result), given=given)
        elif part is _Part.ENGINE or part is _Part.WORKFLOW:
            payload = payload_of(result)
            if answer := answer_of(payload):
                self.inner.append(answer)
            if not self.has_synthesizer:
                log.step_returned(span_id, self.evidence(sources_of(payload)) or None)

    def replied(self, span_id: str, response: Any, *, is_streamed: bool = False) -> bool:
        """Handle a model's reply; False if it is still to be streamed."""
        reply = reply_of(response)
        if reply is None:
            return False
        self.log.replied(span_id, reply[0], tool_arguments=reply[1])
        self.reply, self.arguments = reply
        is_chat = not isinstance(response, CompletionResponse)
        self.reply_blocks = cited_blocks(response, is_streamed=is_streamed) if is_chat else ()
        self.log.provided(span_id, provided_passages(self.reply_blocks, *metadata_of(response)))
        return True

    def handed_on(self, span_id: str, bound_args: BoundArguments, result: Any) -> None:
        """Handle the end of a workflow's step; nodes in its events may be its own search's."""
        given = [n for each in bound_args.arguments.values() for n in nodes_in(each)]
        kept = [] if isinstance(result, StopEvent) else nodes_in(result)
        if not isinstance(result, StopEvent):
            self.passed(span_id, result)
        if given or kept:
            passages = self.evidence(given)
            is_same = not kept or (len(kept) == len(given) and all(map(is_, kept, given)))
            self.log.reranked(span_id, passages if is_same else self.evidence(kept), given=passages)

    def passed(self, span_id: Hashable, event: Any, *, is_input: bool = False) -> None:
        """Keep an event's texts, which may be evidence."""
        for key, value in fields_handed_on(event):
            if type(value) in (list, dict):  # the same state is handed on and on, and may grow
                before, size = self.handed.get((key, id(value))), len(value)
                if before is not None and before[1] == size:
                    continue
                self.handed[key, id(value)] = value, size
            for text in texts_inside(value):
                self.log.text_passed(span_id, text, key, is_input=is_input)

    def tool_ended(self, span_id: str, tool: Any, output: ToolOutput) -> None:
        """Handle a tool's result."""
        if output.is_error:
            self.tool_failed(output)
            return
        if tool.metadata.name == "handoff":  # a name that LlamaIndex keeps to itself
            self.not_evidence.add(output.content)
            return
        if tool.metadata.fn_schema is type(output.raw_output):
            self.not_evidence.add(output.content)  # a form that the model itself has filled in
            return
        raw = nodes_listed(output.raw_output)
        nodes = [node for node in raw if isinstance(node, NodeWithScore)]
        if nodes:
            self.log.tool_returned(span_id, passages_of(nodes))
        else:
            self.log.tool_returned(span_id, READER.tool_result(output.content))

    def tool_failed(self, output: ToolOutput) -> None:
        """Handle a failed or missing tool: the model gets a message about it."""
        self.not_evidence.add(output.content)
        self.log.had_errors = True

    def tool_called(self, result: ToolCallResult) -> None:
        """Handle the end of an agent's tool call; the tool's own span may end in an error."""
        said = result.tool_output.content
        if result.tool_output.is_error:
            self.tool_failed(result.tool_output)
        elif result.return_direct and said not in self.inner:
            # From a model that the tool called, or that called the tool to submit an answer.
            given = [self.reply, *(text for text in self.arguments if " " in text.strip())]
            is_models = any(text and text in said for text in given)
            self.direct = "" if is_models else said.strip()

    def missing(self) -> str:
        """Reason why there is no case; empty if there is one."""
        log = self.log
        is_rag = log.has_retrieved or log.was_given_text or (self.is_rag and log.has_asked)
        if log.passages is None and not is_rag:
            return "not_rag"
        is_tools = log.answer.text.strip() == self.direct and log.answer.where == "output"
        return log.lacks or ("no_answer" if is_tools else "")


FRAME: ContextVar[LlamaIndexRun | None] = ContextVar("ragaliq_llama_index_frame", default=None)
"""The run that the code of this task or thread framed by hand."""


def _current_runs() -> list[tuple[RunLog, Reader]]:
    """The runs that this code is in, of each handler, for `Monitor.add_context`."""
    framed, span_id = FRAME.get(), SPAN_ID.get()
    handlers = (h for h in get_dispatcher().span_handlers if isinstance(h, RagaliqSpanHandler))
    runs = (framed, *(handler._runs.runs.get(span_id) for handler in handlers))
    found = {id(run): run for run in runs if run is not None and not run.closed}
    return [(run.log, READER) for run in found.values()]


find_current_runs(_current_runs)


class RagaliqSpanHandler(FramingHandler, BaseSpanHandler[BaseSpan], BaseEventHandler):
    """Finds question, context and answer of every run and submits them to a monitor.

    Attach it with `attach`. It works on LlamaIndex's root dispatcher only: the dispatchers of
    single modules see a part of a run.

    Args:
        monitor: Samples and evaluates the runs.
        pipeline: The application's name for what it runs.
        extract: A function of a run's inputs (a mapping by argument, or by field of a workflow's
            start event) and its output, which returns any of `question`, `contexts` (texts or
            nodes) and `answer` as a mapping; the rest is inferred. It runs before the call returns,
            so it must be fast. A run for which it raises is counted `extract_failed`.
        question_key: Key of the question in a run's inputs, such as `wish` or `data.wish`; of
            several, the first existing one.
        answer_key: Key of the answer in its output; of several, all existing ones.
        context_key: Key of the context in its output or inputs, such as `hits.body` for a text of
            each hit; of several, all existing ones.
        only: Capture only runs of these classes, functions or tags (`"support-*"`), or with these
            values of LlamaIndex's `instrument_tags` (`{"tenant": "acme"}`), also inside other runs;
            a list of them for any.
        ignore: Capture no such runs, nor anything inside them.
        covers: Whether to capture what starts here and now; always by default.
        max_runs: Runs in progress that are kept; beyond, the oldest is counted `evicted`.
        max_age: Seconds a run may take, its stream included; after that it is counted `expired`.

    Attributes:
        monitor: Where the runs go.
        pipeline: See above.
        attached_as: What `attach` was called with; empty for a handler of another's.
        errors: Events that ragaliq failed to handle; the application never notices them.

    Raises:
        ConfigurationError: `extract` is not a plain function, or `monitor` not a monitor.
    """

    _frame: ClassVar[ContextVar[Any]] = FRAME

    if TYPE_CHECKING:
        monitor: Monitor
        pipeline: str
        attached_as: tuple[object, ...]
        errors: int
        _runs: RunRegistry[LlamaIndexRun]
        _explained: Explanations
        _overrides: Overrides
        _filter: RunFilter
        _covers: Callable[[], bool]
        _awaited: WeakValueDictionary[int, LlamaIndexRun]
        _ignored: dict[str, None]
        _searches: RunRegistry[Search]
        _conversations: WeakKeyDictionary[object, str]

    def __init__(
        self,
        monitor: Monitor,
        *,
        pipeline: str = "",
        extract: Extract | None = None,
        question_key: Keys | None = None,
        answer_key: Keys | None = None,
        context_key: Keys | None = None,
        only: Chosen | None = None,
        ignore: Chosen | None = None,
        covers: Callable[[], bool] = lambda: True,
        max_runs: int = 10_000,
        max_age: float = 600.0,
    ) -> None:
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
            attached_as=(),
            errors=0,
            _runs=RunRegistry(max_runs=max_runs, max_age=max_age, sweep_later=monitor.sweep_later),
            _explained=Explanations(logger),
            _overrides=Overrides(
                READER,
                logger,
                extract=extract,
                question_key=question_key,
                answer_key=answer_key,
                context_key=context_key,
            ),
            _filter=RunFilter(only, ignore),
            _covers=covers,
            # Chat streams by their ids; the runs hold the streams, so that the ids stay theirs.
            _awaited=WeakValueDictionary(),
            _ignored={},
            # Searches that nothing is around, until a model is shown what they found.
            _searches=RunRegistry(max_runs=_MOST_SEARCHES, sweep_later=monitor.sweep_later),
            # A chat engine has one conversation, which seldom has a name.
            _conversations=WeakKeyDictionary(),
        )

    @property
    def runs_in_progress(self) -> int:
        """Captured runs that have not ended."""
        return len(self._runs)

    def explain(self, run_id: str) -> Explanation | None:
        """Explain one of the latest runs: its parts and their sources, or why it has no case.

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
        """Handle the start of a span."""
        try:
            run = self._runs.runs.get(parent_id)
            if run is None and parent_id in self._ignored:
                self._ignore(id_)
                return
            # The method's name alone identifies most spans; models, for one, have a `chat` too.
            kinds = _PARTS.get(id_[:-ID_END].rpartition(".")[2])
            part = None if kinds is None else _part_of(kinds, instance)
            is_read = part is not None and part is not _Part.RESPOND  # of an engine's synthesizer
            if run is not None and run.handle is not None and not is_read:
                self._add(id_, parent_id, run)  # most spans
            else:
                self._enter(_Started(id_, parent_id, part, bound_args, instance, tags or {}), run)
        except Exception as error:  # noqa: BLE001 - would be dropped without a word
            run = self._runs.runs.get(id_) or self._runs.runs.get(parent_id or "")
            if run is not None:  # it is lost; what follows is still a part of it
                run.log.began(id_, run.key)
                self._runs.join(run, id_)
            self._fail(error, run)

    def span_exit(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: Any | None = None,
        result: Any | None = None,
        **kwargs: Any,
    ) -> None:
        """Handle the end of a span without an error."""
        try:
            self._exit(id_, bound_args, instance, result)
        except Exception as error:  # noqa: BLE001 - would be dropped without a word
            self._fail(error, self._runs.runs.get(id_) or self._awaited.get(id(instance)))

    def span_drop(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: Any | None = None,
        err: BaseException | None = None,
        **kwargs: Any,
    ) -> None:
        """Handle the end of a span with an exception."""
        try:
            self._drop(id_, err)
        except Exception as error:  # noqa: BLE001 - would be dropped without a word
            self._fail(error, self._runs.runs.get(id_) or self._awaited.get(id(instance)))

    def _no_span(self, *args: Any, **kwargs: Any) -> BaseSpan | None:
        return None

    new_span = prepare_to_exit_span = prepare_to_drop_span = _no_span

    def listen(self) -> None:
        """Register this handler at LlamaIndex's root dispatcher."""
        dispatcher = get_dispatcher()
        with _LISTENING:
            if not any(each is self for each in dispatcher.span_handlers):
                dispatcher.event_handlers = [*dispatcher.event_handlers, self]
                dispatcher.span_handlers = [*dispatcher.span_handlers, self]

    def stop_listening(self) -> None:
        """Undo `listen`."""
        dispatcher = get_dispatcher()
        with _LISTENING:
            # New lists: another thread may be walking the old ones, and would skip a handler. By
            # identity: LlamaIndex's handlers compare equal when their fields do.
            spans = [each for each in dispatcher.span_handlers if each is not self]
            events = [each for each in dispatcher.event_handlers if each is not self]
            dispatcher.span_handlers, dispatcher.event_handlers = spans, events

    def scored_by_guard(self, span_id: str, answer: str) -> None:
        """Mark `answer` as checked by a guard inside this span, so that it is not scored again."""
        run = self._runs.runs.get(span_id)
        if run is not None:
            run.guarded.add(answer.strip())

    def handle(self, event: Any, **kwargs: Any) -> None:
        """Handle an event; there is one for each token.

        A model's streamed text is in no span: its span ends with the first token.
        """
        kind = type(event)
        if kind not in _EVENTS:
            return
        try:
            run = self._runs.runs.get(event.span_id or "")
            if kind is LLMPredictStartEvent:
                # A function of the application's that fills the template in is not called again.
                is_chat = isinstance(event.template, ChatPromptTemplate)
                if run is not None and is_chat and not event.template.function_mappings:
                    run.written_from[event.span_id] = event
            elif run is not None and event.span_id in run.streaming:
                run.streaming.discard(event.span_id)
                run.replied(event.span_id, event.response, is_streamed=True)
                if run.is_streamed and not run.streaming:
                    self._finish(run, run.reply)
        except Exception as error:  # noqa: BLE001 - would be dropped without a word
            self._fail(error)

    @staticmethod
    def _text_of_item(item: Any) -> str:
        text = item if isinstance(item, str) else getattr(item, "delta", None)
        return text if isinstance(text, str) else ""

    def frame_started(self, question: object, pipeline: str) -> LlamaIndexRun | None:
        """Begin a run that is framed by hand; never raises."""
        key = f"frame-{uuid4()}"
        try:
            if self._runs.follows(FRAME.get()) or is_suppressed():
                return None
            handle = self._begin(key, pipeline)
            run = self._opened(key, handle)
            run.is_rag, run.is_left_out = True, handle is None
            asked = None if question is None else READER.question(question)
            run.log.question = run.log.question if asked is None else asked
        except Exception as error:  # noqa: BLE001 - the application must not notice
            self._fail(error)
            return None
        return run

    def frame_ended(self, run: LlamaIndexRun, answer: object, error: BaseException | None) -> None:
        """End a run that is framed by hand; never raises."""
        try:
            if run.is_left_out:
                self._runs.close(run)
            elif error is not None:
                self._discard(run, failure_reason(error))
            else:
                said = answer_of(payload_of(answer)) if answer is not None else run.reply
                self._finish(run, said)
        except Exception as failure:  # noqa: BLE001 - as above
            self._fail(failure, run)

    def _begin(self, span_id: str, pipeline: str = "") -> RunHandle | RecordedRun | None:
        """Announce a run; None if it is not evaluated. A recorder keeps its runs instead."""
        name = pipeline or self.pipeline
        return self.monitor.begin(span_id, pipeline=name, framework="llama_index")

    def close(self) -> None:
        """End the runs in progress, counted `interrupted`; called when LlamaIndex shuts down."""
        self._searches.give_up("interrupted")
        self._runs.give_up("interrupted")

    def close_open(self) -> None:
        """End the runs that need further events, when nothing listens any more."""
        for run in self._runs.open_runs():
            if run.is_open:  # a stream brings its answer without any
                self._discard(run, "interrupted")

    # Starts

    def _add(self, span_id: str, parent_id: Hashable, run: LlamaIndexRun) -> None:
        """Make a span a part of a run."""
        run.log.parents[span_id] = parent_id
        self._runs.runs[span_id] = run  # as `join` does: most spans come no further
        if run.closed:
            self._runs.join(run, span_id)

    def _enter(self, span: _Started, around: LlamaIndexRun | None) -> None:
        if around is None and self._is_ignored(span.parent_id):
            self._ignore(span.id)
            return
        run = self._run_elsewhere(span) if around is None else around
        if run is None:
            # Not only spans without a parent: the parent may have started before we listened, or
            # be of no interest, such as a function of the application's that is asked nothing.
            self._enter_root(span)
            return
        if not self._is_followed(run, span):
            self._ignore(span.id)
            return
        part = span.part
        self._add(span.id, run.key if around is None else span.parent_id, run)
        if part is None or part is _Part.RESPOND:  # of an engine's synthesizer
            return
        if run.target is None:
            run.target = current_span_target()
        run.began(span)
        if part is _Part.WRITE:
            ended = functools.partial(self._stream_ended, run, span.instance)
            follow_response(span.instance, run, ended)

    def _run_elsewhere(self, span: _Started) -> LlamaIndexRun | None:
        """Run that a span is part of, though it is not below one of its spans."""
        # A stream is read, in a span without a parent.
        run = None
        if span.part is _Part.WRITE:
            run = self._awaited.get(id(span.instance))
        elif span.part is _Part.MODEL:
            reading = READING.get()
            run = reading if isinstance(reading, LlamaIndexRun) else None
        run = FRAME.get() if run is None or run.closed else run
        return None if run is None or run.closed else run

    def _is_followed(self, run: LlamaIndexRun, span: _Started) -> bool:
        """True if a span inside a run is part of it."""
        if span.part in _CHECKED and (is_suppressed() or is_called_by(BaseEvaluator)):
            return False
        if run.handle is not None or run.is_left_out:
            return not run.is_left_out
        # A function that has asked nobody yet; it may be there to search only.
        if span.part is _Part.RETRIEVE:
            self._note_search(span)
        if span.part not in _ASKING:
            return True
        run.handle = self._begin(str(run.key))
        if run.handle is None:
            self._runs.close(run)
            return False
        if span.part is _Part.MODEL:
            for search in searches_shown(prompt_of(span.arguments)):  # by the function's caller
                run.log.found_before(search.query, search.passages)
        else:
            self._called(run, span)
        return True

    def _enter_root(self, span: _Started) -> None:
        if not self._filter.is_empty:
            owner, _, method = span.id[:-ID_END].rpartition(".")
            described = method if span.part is None else owner, labels_of(span.tags), span.tags
            if self._filter.ignores(*described):
                self._ignore(span.id)
                return
        is_chosen = self._filter.is_empty or self._filter.chooses(*described)
        if not (is_chosen and self._covers()):
            if span.part in {_Part.RETRIEVE, _Part.MODEL}:
                self._ignore(span.id)
        elif span.part is None:
            self._enter_function(span)
        elif span.part is _Part.RETRIEVE:
            # A retriever may ask query engines of its own; what it gets is not for a user.
            self._ignore(span.id)
            self._note_search(span)
        elif span.part is _Part.MODEL:
            self._enter_call(span)
        elif span.part in _ROOTS and (span.part is not _Part.SYNTHESIZE or span.parent_id is None):
            self._enter_engine(span)

    def _enter_engine(self, span: _Started) -> None:
        """Begin a run for an engine, a workflow or a synthesizer."""
        callers = (BaseEvaluator, BaseIndex) if span.part is _Part.SYNTHESIZE else BaseEvaluator
        handle = None if is_called_by(callers) else self._begin(span.id)
        if handle is None:
            # Remembered, or the engines below would be taken for roots.
            self._ignore(span.id)
            return
        run = self._opened(span.id, handle, span.part, span.tags)
        run.is_rag = span.id[:-ID_END].endswith("query")
        run.inputs = self._called(run, span)
        is_workflow = span.part is _Part.WORKFLOW
        guessed = (question_of_run if is_workflow else question_of_call)(run.inputs)
        run.log.question = self._overrides.question(run.inputs) or guessed
        run.began(span)

    def _enter_function(self, span: _Started) -> None:
        """Begin a run for a decorated function, if it has a question and calls models."""
        if isinstance(span.instance, _LLAMA_INDEX) or is_suppressed():
            return
        given = inputs_of(span.arguments)
        asked = self._overrides.question(given) or question_of_function(given)
        if asked is None:
            return
        run = self._opened(span.id, None, tags=span.tags)
        run.log.question, run.inputs = asked, given
        run.called(span, given)

    def _enter_call(self, span: _Started) -> None:
        """Handle a model call of plain code: a run if its prompt has documents found before.

        Search and call belong together if they share a task or thread.
        """
        # A stream is read of a run that is over.
        if READING.get() is not None or is_suppressed() or is_called_by((BaseEvaluator, BaseIndex)):
            self._ignore(span.id)
            return
        messages = prompt_of(span.arguments)
        searches = searches_shown(messages)
        for search in searches:
            self._searches.close(search)
        if not searches:
            self._count_lone_call(span.id)
        handle = self._begin(span.id) if searches else None
        if handle is None:
            self._ignore(span.id)
            return
        run = self._opened(span.id, handle, _Part.MODEL)
        for search in searches:
            run.log.found_before(search.query, search.passages)
        run.log.question = question_shown(messages, searches) or run.log.question
        run.began(span)

    def _count_lone_call(self, span_id: str) -> None:
        """Count a search or a model's call that belong to no run."""
        handle = self._begin(span_id)
        if handle is not None:
            handle.discard("not_rag")
            _LOG_ONCE.message("lone call", LONE_CALL)

    def _opened(
        self,
        key: str,
        handle: RunHandle | RecordedRun | None,
        part: _Part | None = None,
        tags: Mapping[str, Any] = MappingProxyType({}),
    ) -> LlamaIndexRun:
        """Open a new run."""
        run = LlamaIndexRun(key, RunLog(key, {key: None}), handle, part)
        run.target = openinference_target() or current_span_target()
        if tags:
            run.session_id = named_id(tags.get("session_id"))
            run.log.is_conversation = run.session_id is not None
            run.log.tags = labels_of(tags)
        self._runs.open(run)
        return run

    def _called(self, run: LlamaIndexRun, span: _Started) -> Mapping[str, Any]:
        """Handle the start of an engine or workflow that is a whole run, or its function's call."""
        given = inputs_of(span.arguments)
        run.called(span, given)
        if isinstance(span.instance, BaseChatEngine):
            run.log.is_conversation = True
            run.log.conversation_key = self._conversations.setdefault(span.instance, uuid4().hex)
        return given

    def _note_search(self, span: _Started) -> None:
        if not is_suppressed():
            unused = functools.partial(self._count_lone_call, span.id)
            self._searches.open(search := Search(query_of(span.arguments), span.id, unused))
            note_search(search)

    def _is_ignored(self, parent_id: str | None) -> bool:
        return parent_id is not None and (
            parent_id in self._ignored or self._runs.is_ignored(parent_id)
        )

    def _ignore(self, span_id: str) -> None:
        """Ignore everything below this span, until it ends."""
        # Every span ends; should a future version lose some, memory stays bounded all the same.
        if len(self._ignored) >= _MOST_IGNORED:
            self._ignored.pop(next(iter(self._ignored)), None)
        self._ignored[span_id] = None

    # Ends

    def _exit(self, span_id: str, bound_args: BoundArguments, instance: Any, result: Any) -> None:
        run = self._runs.runs.get(span_id)
        if (search := self._searches.runs.get(span_id)) is not None:
            search.passages = shown_passages(result)
        if run is None:
            self._ignored.pop(span_id, None)
        elif span_id == run.key:
            self._exit_root(run, result)
        elif (part := run.parts.get(span_id)) is not None:
            if part is _Part.TOOL and isinstance(result, ToolOutput):
                run.tool_ended(span_id, instance, result)
            else:
                run.ended(span_id, part, bound_args, result)
        elif isinstance(result, ToolCallResult):
            run.tool_called(result)
        elif run.has_own_steps:
            run.handed_on(span_id, bound_args, result)

    def _exit_root(self, run: LlamaIndexRun, result: Any) -> None:
        run.is_open = False
        if run.handle is None:  # a function that asked nobody
            self._runs.close(run)
            return
        if run.part is _Part.MODEL:
            if not run.replied(str(run.key), result):
                run.streaming.add(str(run.key))
            self._answered(run, "")
            return
        if run.target is None or run.target.source != OPENINFERENCE:
            run.target = openinference_target() or run.target or current_span_target()
        payload = payload_of(result)
        if not self._overrides.is_empty:  # a stream that it held would never be given up
            run.outputs = output_of(result)
        if result is None and run.part is _Part.WORKFLOW:
            # How a workflow that its user cancelled ends.
            self._discard(run, "cancelled")
            return
        # What a synthesizer was given says more, and costs nothing more.
        if not run.has_synthesizer and (named := run.evidence(sources_of(payload))):
            run.log.cited_sources(named)
        is_stream = isinstance(payload, StreamingAgentChatResponse)
        if is_stream and payload.is_writing_to_memory:
            # The engine reads the model's stream itself, in a thread or task of its own, writes it
            # to its history and passes the tokens on through a queue. It may have done so before
            # this moment: what comes second finds the run ended.
            run.stream = payload
            self._awaited[id(payload)] = run
            if run.written is not None:
                self._stream_ended(run, *run.written)
        elif not follow_response(payload, run, functools.partial(self._stream_ended, run, None)):
            self._answered(run, answer_of(payload))

    def _answered(self, run: LlamaIndexRun, answer: str) -> None:
        """Handle the end of a run's root; without an answer the model's reply counts."""
        if answer or run.part not in (None, _Part.MODEL):
            self._finish(run, answer)
        elif run.streaming:
            run.is_streamed = True
        else:
            self._finish(run, run.reply or "\n".join(run.arguments))

    def _drop(self, span_id: str, error: BaseException | None) -> None:
        run = self._runs.runs.get(span_id)
        if run is None:
            self._ignored.pop(span_id, None)
        elif span_id != run.key:
            run.log.had_errors = run.log.had_errors or is_failure(error)
        else:
            run.is_open = False
            self._discard(
                run, _WITHDRAWN if isinstance(error, GuardRejected) else failure_reason(error)
            )

    def _stream_ended(
        self, run: LlamaIndexRun, stream: object | None, answer: str, failure: str
    ) -> None:
        """Handle the end of a stream; one that an engine reads has an object."""
        try:
            if stream is not None:
                run.written = stream, answer, failure
                if run.stream is not stream:
                    return  # it counts once the root has returned it
            if failure:
                self._discard(run, failure)
            else:
                self._finish(run, answer)
        except Exception as error:  # noqa: BLE001 - what reads the stream must not notice
            self._fail(error, run)

    # How runs end, each exactly once

    def _finish(self, run: LlamaIndexRun, answer: str) -> None:
        """End a run with a complete answer: submit it, or count the reason."""
        if run.closed:
            return
        if run.guarded and answer.strip() in run.guarded:
            self._discard(run, _WITHDRAWN)
            return
        log, said = run.log, self._overrides
        try:
            is_read = said.apply(log, run.inputs, run.outputs, run.outputs)
        except BaseException:
            # Something from outside, such as Ctrl-C: the run ends with it.
            self._discard(run, "interrupted")
            raise
        log.answer = log.answer if log.answer.text else Found(answer, "output")
        log.passages = said.passages(run.inputs) if log.passages is None else log.passages
        if reason := run.missing() if is_read else "extract_failed":
            self._discard(run, reason)
            return
        if not self._runs.close(run):
            return
        log.blocks = run.reply_blocks if log.answer.text == run.reply else None
        self._explained.note(log.id, log)
        if run.handle is not None:
            run.handle.submit(
                log, target=run.target, session_id=run.session_id, model=model_name_of(run.model)
            )

    def _discard(self, run: LlamaIndexRun, reason: str) -> None:
        if self._runs.close(run):
            self._explained.note(str(run.key), reason)
            if reason == _WITHDRAWN and run.handle is not None:
                run.handle.withdraw()
            else:
                run.discard(reason)

    def _fail(self, error: Exception, run: LlamaIndexRun | None = None) -> None:
        """Count our own error and discard its run.

        LlamaIndex drops whatever a handler raises without a word.
        """
        vars(self)["errors"] += 1
        _LOG_ONCE.failure("a run could not be captured", error, in_application=True)
        if run is not None:
            self._discard(run, "internal_error")


_WITHDRAWN = "withdrawn"
