"""One invocation of a chain, recorded on the request path, and its conclusion.

A run only keeps references; `ragaliq.capture` finds the answer's documents later, on the worker.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any
from uuid import UUID

from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult
from langchain_core.prompt_values import ChatPromptValue
from opentelemetry import trace

from langchain_ragaliq._private import (
    CONFIG,
    METADATA,
    SEQUENCE_STEP,
    is_control_flow,
    is_interrupt,
    span_by_run_id,
)
from langchain_ragaliq.reading import KINDS, READER, StateReader, tool_answer
from ragaliq import Passage, RunHandle, SpanTarget, span_target
from ragaliq.capture import (
    ANSWER_KEYS,
    CONTEXT_KEYS,
    Found,
    Message,
    Overrides,
    RecordedRun,
    RunLog,
    named_id,
    plain,
    provided_passages,
    text_blocks,
    texts_in,
)

_CONTEXT_KEYS = frozenset(CONTEXT_KEYS)
# Where a graph's state may hold an answer, apart from its messages.
_STATE_ANSWER_KEYS = frozenset((*ANSWER_KEYS, "structured_response"))
_MOST_TEXTS = 100  # of a list of them
_MOST_KEYS = 64  # of a state
_NOT_FETCHED = None, None, ()


def _follows(tags: Iterable[str] | None) -> bool:
    """True if a step is part of a sequence."""
    for tag in tags or ():  # noqa: SIM110 - a generator would take three times as long
        if tag.startswith(SEQUENCE_STEP):
            return True
    return False


def is_stopped(error: BaseException) -> bool:
    """True if the caller cancelled the run, so that it did not fail."""
    return isinstance(error, (GeneratorExit, asyncio.CancelledError))


class LangChainRun:
    """One invocation of a chain.

    A run that is not evaluated has no handle and little else: it is remembered only so that its
    children are not taken for roots. Runs go by the integer of their id, which a dictionary finds
    several times faster than a `UUID`. Defaults are of the class: most runs keep most of them.
    """

    closed = False
    session_id: str | None = None
    inputs: Any = None
    input_items = 0
    question: Found | None = None
    prompt_question: Found | None = None
    prompt: ChatPromptValue | None = None  # the latest
    keyed_passages: list[Passage] | None = None
    # The latest retriever's parent, what it returned, and that as it was read.
    fetched: tuple[int | None, Any, Sequence[Passage]] = _NOT_FETCHED
    # The latest reply of a model outside retrievers, and the message that has it.
    reply = ""
    message: BaseMessage | None = None
    # The answer in the arguments of the last call of tools, in case nothing is said after it.
    tool_answer: Found | None = None
    guarded: set[str] | None = None
    is_interrupted = False
    # What a thread's state had under the keys of answers before any step may have answered.
    kept: Mapping[Any, Any] = MappingProxyType({})
    has_answered = False

    def __init__(
        self,
        run_id: UUID,
        handle: RunHandle | RecordedRun | None,
        overrides: Overrides | None = None,
    ) -> None:
        self.key: Any = run_id.int  # of any kind, as a registry asks
        self.handle = handle
        self.started = time.monotonic()
        self.has_child = handle is None  # of a run that is not evaluated nothing is looked at
        if handle is None:
            self.steps: dict[Any, Any] = {self.key: None}
            return
        self.log = RunLog(handle.run_id, {self.key: None})
        self.steps = self.log.parents  # the same dictionary: what is added here is in the log
        self.overrides = overrides
        self.answer_keys = _STATE_ANSWER_KEYS
        if overrides is not None:
            self.answer_keys |= overrides.answer_keys
        self.run_id = run_id
        # The best span found so far, and how.
        self._span = span_by_run_id(run_id)
        self._ambient = trace.get_current_span()
        self.open_models: set[int] = set()
        self.open_steps: set[int] = set()
        self.retrievers: set[int] = set()
        self.state = StateReader()

    @property
    def size(self) -> int:
        """Bytes of what it holds, about."""
        return 0 if self.handle is None else self.log.size

    def discard(self, reason: str) -> None:
        """Discard the run."""
        if self.handle is not None:
            self.handle.discard(reason)

    # Steps

    def run_given(self, inputs: Any, metadata: Mapping[str, Any], tags: Sequence[str]) -> None:
        """Keep the run's input: at its begin, of a stream perhaps only at its end."""
        self.log.tags = tags
        if metadata:
            self.log.metadata = metadata
            self._known_by(metadata)
        overrides = self.overrides
        if overrides is not None:
            self.question = self.question or overrides.question(inputs)
            if self.keyed_passages is None:
                self.keyed_passages = overrides.passages(inputs)
            if overrides.extract is not None:
                self.inputs = inputs
        if self.question is None:
            self.question = READER.question(inputs)
        if not isinstance(inputs, str):
            self.step_given(self.key, inputs)
            messages = READER.earlier(inputs)
            if messages is not None:
                self.log.conversation_given(READER, messages)
            if isinstance(inputs, list) and READER.messages(inputs) is None:
                self.input_items = len(inputs)

    def first_child_started(self) -> None:
        """Handle the first child: its context shows more than the root's."""
        self.has_child = True
        config = CONFIG.get()
        if self._span is None:
            self._span = span_by_run_id(self.run_id, config.get("callbacks") if config else None)
        span = trace.get_current_span()
        if self._span is None and span is not self._ambient:
            current = span.get_span_context()
            if current.is_valid and current.span_id != self._ambient.get_span_context().span_id:
                self._span = "current", span
        configurable = config.get("configurable") if config else None
        if configurable:
            self._known_by(configurable)

    def _known_by(self, names: Mapping[str, Any]) -> None:
        """Find the conversation's name among metadata or configurable values."""
        thread_id = names.get("thread_id")
        self.log.keeps_turns = self.log.keeps_turns or thread_id is not None
        for found in (names.get("session_id"), thread_id, names.get("conversation_id")):
            if self.session_id is None and (name := named_id(found)) is not None:
                self.session_id = name
                self.log.is_conversation = True

    def step_started(
        self,
        step: int,
        inputs: Any,
        run_type: str | None,
        tags: Iterable[str] | None,
    ) -> None:
        """Handle the begin of a step."""
        parent = self.steps[step]
        if parent == self.key:
            self.open_steps.add(step)
        if run_type == "prompt":
            if self.overrides is not None and self.keyed_passages is None:
                self.keyed_passages = self.overrides.passages(inputs)
            if self.question is None and self.prompt_question is None:
                self.prompt_question = READER.question(inputs, "prompt")
        if isinstance(inputs, str):
            return
        if self.log.keeps_turns and not self.has_answered:
            fields = READER.fields(inputs) or {}
            kept = {k: fields[k] for k in self.answer_keys & fields.keys()}
            self.kept = {**self.kept, **kept}
        around, documents, passages = self.fetched
        if passages and inputs is documents and around == parent and _follows(tags):
            # A sequence gives it what its retriever returned: nobody had that in between.
            self.fetched = _NOT_FETCHED
            self.log.step_given(step, {None: passages})
        else:
            self.step_given(step, inputs)

    def model_called(self, step: int, messages: list[Message]) -> None:
        """Handle a call of a model."""
        self.open_models.add(step)
        self.log.model_called(step, messages)

    def messages_of(self, prompts: Sequence[str]) -> list[Message]:
        """Prompt of a completion model: the messages that it is written from, if they are known."""
        if self.prompt is not None and [self.prompt.to_string()] == prompts:
            read = map(READER.message, self.prompt.messages)
            return [message for message in read if message is not None]
        return [Message("user", tuple(prompts))]

    def step_given(self, step: int, inputs: Any) -> None:
        """Keep documents and texts in a step's input that may be evidence."""
        if KINDS[type(inputs)] not in {"", "document"}:
            return  # messages and prompts: models report those themselves
        self.log.step_given(step, self.state.documents_by_key(inputs))
        if isinstance(inputs, dict):
            for key, text in self.state.new_texts(inputs):
                self.log.text_passed(step, text, key, is_input=True)

    def retrieved(self, step: int, documents: Sequence[Any]) -> None:
        """Handle a retriever's documents."""
        passages = READER.document_list(documents) or ()
        self.fetched = self.steps.get(step), documents, passages
        self.log.retrieved(step, passages)

    def step_ended(self, step: int, outputs: Any) -> None:
        """Handle the end of a step."""
        self.open_steps.discard(step)
        log = self.log
        # Most return a text of the plain class.
        outputs = outputs if type(outputs) is str else plain(outputs)
        if isinstance(outputs, str):
            log.text_passed(step, outputs)
        elif isinstance(outputs, dict):
            self.has_answered = self.has_answered or not self.answer_keys.isdisjoint(outputs)
            log.step_returned(step, by_key=self.state.documents_by_key(outputs))
            for key, value in islice(outputs.items(), _MOST_KEYS):
                if type(value) is str:
                    log.text_passed(step, value, key)
                elif isinstance(value, str):  # the texts of messages are of a kind of their own
                    log.text_passed(step, plain(value), key)
                elif type(value) is list and key not in _CONTEXT_KEYS:
                    self._listed(step, value, key)
        elif type(outputs) is ChatPromptValue:
            self.prompt = outputs
        elif kind := KINDS[type(outputs)]:
            if kind == "document":  # messages and prompts are reported by models themselves
                log.step_returned(step, READER.document_list([outputs]))
        elif type(outputs) is list and outputs and isinstance(outputs[0], str):
            self._listed(step, outputs)
        elif isinstance(outputs, list) and (
            (documents := READER.document_list(outputs)) is not None
        ):
            log.step_returned(step, documents)
        elif (fields := READER.fields(outputs)) is not None or isinstance(outputs, (list, tuple)):
            self.has_answered = True
            held = outputs if fields is None else dict(fields)
            log.step_returned(step, by_key=self.state.documents_by_key(held))

    def _listed(self, step: int, values: list[Any], key: Any = "") -> None:
        """Keep a list that a step returned: its texts may be documents."""
        for value in values[:_MOST_TEXTS]:
            if not isinstance(value, str):
                return
            self.log.text_passed(step, plain(value), key)

    def replied(self, step: int, result: LLMResult) -> None:
        """Handle a model's reply; the last one outside retrievers may be the answer."""
        self.open_models.discard(step)
        first = result.generations[0][0] if result.generations and result.generations[0] else None
        text = first.text if first else ""
        tool_arguments: Sequence[str] = ()
        message = getattr(first, "message", None)
        calls: Sequence[Mapping[str, Any]] = getattr(message, "tool_calls", None) or ()
        if message is not None:
            content = message.content
            if not isinstance(content, str):
                text = "".join(text_blocks(content))
            if calls:
                tool_arguments = [
                    each for call in calls for each in texts_in(call.get("args"), numbers=True)
                ]
            found = message.additional_kwargs, message.response_metadata
            self.log.provided(step, provided_passages(content, *found))
        self.log.replied(step, text, tool_arguments)
        at: int | None = step
        while at is not None and at not in self.retrievers:
            at = self.steps.get(at)
        if at is None:
            self.reply, self.message = text, message
            self.tool_answer = tool_answer(calls) if calls else None

    def tool_ended(self, step: int, output: Any) -> None:
        """Handle a tool's result."""
        if getattr(self.message, "tool_calls", ()):  # what a model said with its call: no answer
            self.reply, self.message = "", None
        if getattr(output, "status", None) == "error":
            # The model gets the error, not what was fetched before.
            self.log.had_errors = True
        else:
            self.log.tool_returned(step, READER.tool_result(output))

    def part_failed(self, step: int, error: BaseException) -> None:
        """Handle a failure below the root; a retry or a fallback may still answer."""
        self.open_steps.discard(step)
        self.open_models.discard(step)
        self.has_answered = True  # as a graph does that passes control to its parent
        self.is_interrupted = self.is_interrupted or is_interrupt(error)
        if not is_stopped(error) and not is_control_flow(error):
            self.log.had_errors = True

    # The end

    def target(self) -> SpanTarget | None:
        """Target of the evaluation: the run's span, else the ambient one, else None.

        OpenInference never makes its span current but can be asked for it by run id: at the start
        where its handler comes before ours, at the end where it comes after. So can Traceloop's
        handler, from the start or from the first child on, and Langfuse's, which in asynchronous
        chains makes its span current in another thread. Other instrumentations, such as
        OpenTelemetry's own, make their span current inside children. Without any, the ambient
        span, such as the web request's, is what the evaluation speaks about.
        """
        found = self._span
        # A span that is current in children is only a guess: an answer by run id is better.
        if found is None or found[0] == "current":
            found = span_by_run_id(self.run_id) or found
        source, span = found or ("ambient", self._ambient)
        if span is trace.INVALID_SPAN:
            return None
        return span_target(span.get_span_context(), source=source)

    def conclude(self, outputs: Any, inputs: Any, *, is_stream: bool) -> str:
        """Conclude a run that ended without an error: record its parts, or return the reason.

        Args:
            outputs: The chain's output.
            inputs: The input of a stream, which may be known only at the end.
            is_stream: Whether the answer was streamed.
        """
        if self.is_interrupted:
            return "interrupted"
        if inputs is not None:
            self.run_given(inputs, self.log.metadata, self.log.tags)
        if isinstance(outputs, list) and 1 < self.input_items == len(outputs):
            return "several_questions"
        fresh = self._fresh(outputs) if self.kept else outputs
        answer = READER.answer(fresh) or self._reply(fresh) or self.tool_answer
        # A stream that is broken off ends like any other, but before its steps and its model do. A
        # model that was itself given up, say for a faster one, is open as well: then the answer is
        # the other's reply.
        is_broken_off = is_stream and bool(self.open_steps)
        is_waiting = self.open_models and (answer.text if answer else "") != self.reply
        if outputs is None or is_broken_off or is_waiting:
            return "truncated"
        log = self.log  # which has what the application named by events
        named = self.overrides
        if named is not None and not named.apply(log, self.inputs, outputs, fresh):
            return "extract_failed"
        if not log.question.text:
            # After an event's or `extract`'s: of a key or the input, echoed, of a prompt.
            question = self.question or READER.echoed_question(outputs) or self.prompt_question
            log.question = question or log.question
        if not log.answer.text:
            log.answer = answer or log.answer
        if log.lacks:
            return log.lacks
        if log.passages is None:
            log.passages = self.keyed_passages
        if self.message is not None and log.answer.text == self.reply:
            log.blocks = self.message.content
        if log.metadata:
            log.metadata = {k: v for k, v in log.metadata.items() if not k.startswith(METADATA)}
        sources = None if isinstance(outputs, str) else READER.context(outputs)
        if log.passages is None and sources is not None:
            log.cited_sources(sources)
        return ""

    def _fresh(self, outputs: Any) -> Any:
        """Output of the chain without answers that its thread kept from earlier turns.

        A graph that stops at a breakpoint, or ends without an answer, returns them again. A resumed
        run has no question: its answer may be from before the interruption.
        """
        if self.question is None or not isinstance(outputs, dict):
            return outputs
        return {k: v for k, v in outputs.items() if k not in self.kept or v is not self.kept[k]}

    def _reply(self, outputs: Any) -> Found | None:
        """Reply that is the answer of a chain whose output does not show which."""
        asked = self.question.text if self.question is not None else ""
        return self.log.answer_among_replies(READER, outputs, question=asked, last=self.reply)
