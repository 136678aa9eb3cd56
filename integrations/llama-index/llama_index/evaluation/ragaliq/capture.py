"""From LlamaIndex's span events to finished runs."""

from __future__ import annotations

from inspect import BoundArguments
from typing import TYPE_CHECKING, Any

from llama_index.core.chat_engine.types import StreamingAgentChatResponse

from llama_index.evaluation.ragaliq.chat_streams import ChatStreams
from llama_index.evaluation.ragaliq.evaluation_calls import is_in_evaluator
from llama_index.evaluation.ragaliq.faults import FaultLog
from llama_index.evaluation.ragaliq.finish import Finisher, context_of
from llama_index.evaluation.ragaliq.methods import Part, part_of
from llama_index.evaluation.ragaliq.overrides import Extract
from llama_index.evaluation.ragaliq.reach import Reach
from llama_index.evaluation.ragaliq.reading import (
    inputs_of,
    labels_of,
    output_of,
    passages_of,
    payload_of,
    question_of_call,
    question_of_run,
)
from llama_index.evaluation.ragaliq.run_state import Run, RunRegistry
from llama_index.evaluation.ragaliq.scope import Frame, Role, Scope
from llama_index.evaluation.ragaliq.streams import failure_reason, is_failure
from llama_index.evaluation.ragaliq.target import OPENINFERENCE, openinference_target
from ragaliq import GuardRejected, current_span_target

if TYPE_CHECKING:
    from ragaliq import Monitor

__all__ = ["SpanCapture"]

_SKIPPED = Frame("", Role.SKIPPED, None, None)
_ENGINES = (Part.ENGINE, Part.WORKFLOW)


class SpanCapture:
    """Follows every span from its root and hands finished runs to a monitor.

    Args:
        monitor: Decides what is evaluated, and evaluates it.
        pipeline: The application's name for what it runs.
        runs: The runs in progress.
        faults: Told of our own mistakes.
        extract: The application's own word on its runs, if it has any.
        reach: Which roots are followed; all of them by default.
    """

    def __init__(
        self,
        monitor: Monitor,
        *,
        pipeline: str,
        runs: RunRegistry,
        faults: FaultLog,
        extract: Extract | None = None,
        reach: Reach | None = None,
    ) -> None:
        self._monitor = monitor
        self._pipeline = pipeline
        self._runs = runs
        self._keeps_objects = extract is not None
        self._reach = reach
        self._finisher = Finisher(runs, faults, extract)
        self._chats = ChatStreams(runs, self._finisher)

    def enter(
        self,
        span_id: str,
        bound_args: BoundArguments,
        instance: Any,
        parent_id: str | None,
        tags: dict[str, Any] | None,
    ) -> None:
        """A span has started."""
        around = self._runs.frames.get(parent_id) if parent_id is not None else None
        part = part_of(span_id, instance)
        if part is Part.WRITE:
            self._chats.started(instance, None if around is None else around.run)
        if around is None:
            # Not only spans without a parent: the parent may have started before we listened, or
            # be of no interest, such as the application's own span around several queries.
            self._enter_root(span_id, part, bound_args, tags or {})
            return
        run = around.run
        if run is not None and run.target is None:
            run.target = current_span_target()
        # What goes on inside a retriever or a reranker is its own business.
        if part is not None and around.role is Role.ENGINE:
            around = self._enter_part(span_id, part, around, bound_args)
        self._runs.remember(span_id, around)

    def exit(self, span_id: str, instance: Any, result: Any) -> None:
        """A span has ended well."""
        self._chats.ended(instance)
        frame = self._runs.frames.get(span_id)
        if frame is None:
            return
        run, scope = frame.run, frame.scope
        if run is None or scope is None:
            self._runs.frames.pop(span_id, None)
        elif span_id == run.id:
            try:
                self._exit_root(run, result)
            except Exception as error:  # noqa: BLE001 - the run is over all the same
                self._finisher.failed(run, error)
        else:
            if span_id == frame.owner:
                self._exit_part(frame.role, scope, result)
            self._runs.frames.pop(span_id, None)

    def drop(self, span_id: str, instance: Any, error: BaseException | None) -> None:
        """A span has ended with an exception."""
        self._chats.ended(instance, error or RuntimeError())
        frame = self._runs.frames.get(span_id)
        if frame is None:
            return
        run = frame.run
        if run is not None and span_id == run.id:
            self._runs.close_root(run)
            if isinstance(error, GuardRejected):
                self._finisher.withdraw(run)
            else:
                self._finisher.discard(run, failure_reason(error))
        else:
            self._runs.frames.pop(span_id, None)
            if run is not None and is_failure(error):
                run.had_errors = True

    def scored_by_guard(self, span_id: str, answer: str) -> None:
        """A guard inside this span has judged `answer`: no run is scored again for it."""
        frame = self._runs.frames.get(span_id)
        run = None if frame is None else frame.run
        if frame is None or run is None:
            return
        if frame.owner == run.id:
            self._finisher.withdraw(run)  # what the guard lets out is what the run returns
        else:
            run.guarded = (run.guarded or set()) | {answer.strip()}

    def give_up_entered(self, span_id: str, parent_id: str | None) -> None:
        """Go on after a failed `enter`: the run is lost, what follows is still a part of it."""
        frame = self._runs.frames.get(span_id) or self._runs.frames.get(parent_id or "")
        if frame is None:
            return
        self._runs.remember(span_id, frame)
        if frame.run is not None:
            self._finisher.discard(frame.run, "internal_error")

    def give_up_ended(self, span_id: str, instance: Any) -> None:
        """Go on after a failed `exit` or `drop`."""
        writer = self._runs.awaiting(instance)
        if writer is not None:
            self._finisher.discard(writer, "internal_error")
        frame = self._runs.frames.pop(span_id, None)
        if frame is None or frame.run is None:
            return
        if span_id == frame.run.id:
            self._runs.close_root(frame.run)
        self._finisher.discard(frame.run, "internal_error")

    def close(self) -> None:
        """End all runs in progress, for there will be no more events."""
        for run in self._runs.take_all():
            run.ticket.discard("interrupted")

    def close_open(self) -> None:
        """End the runs that wait for more events; a stream brings its answer without any."""
        for run in self._runs.in_progress():
            if run.is_open:
                self._finisher.discard(run, "interrupted")

    def _enter_root(
        self, span_id: str, part: Part | None, bound_args: BoundArguments, tags: dict[str, Any]
    ) -> None:
        if part is Part.RETRIEVE:
            # A retriever may ask query engines of its own; what it gets is not for a user.
            self._runs.remember(span_id, _SKIPPED)
        if part not in _ENGINES or (self._reach is not None and not self._reach.covers(tags)):
            return
        if is_in_evaluator():
            self._runs.remember(span_id, _SKIPPED)
            return
        ticket = self._monitor.begin(span_id, pipeline=self._pipeline, framework="llama_index")
        if ticket is None:
            # Remembered, or the engines below would be taken for roots.
            self._runs.remember(span_id, _SKIPPED)
            return
        is_workflow = part is Part.WORKFLOW
        run = Run(span_id, ticket, is_workflow=is_workflow)
        self._runs.remember(span_id, Frame(span_id, Role.ENGINE, run, run.scope))
        self._runs.open(run)
        if self._keeps_objects:
            run.inputs = inputs_of(bound_args)
        run.question = (question_of_run if is_workflow else question_of_call)(bound_args)
        run.target = openinference_target() or current_span_target()
        session_id = tags.get("session_id")
        run.session_id = None if session_id is None else str(session_id)
        run.tags = labels_of(tags)

    def _enter_part(
        self, span_id: str, part: Part, around: Frame, bound_args: BoundArguments
    ) -> Frame:
        run, scope = around.run, around.scope
        if run is None or scope is None:
            return around
        if part in _ENGINES:
            inner = Scope(outer=scope, is_workflow=part is Part.WORKFLOW)
            return Frame(span_id, Role.ENGINE, run, inner)
        if part is Part.SYNTHESIZE:
            scope.synthesized.append(passages_of(bound_args.arguments.get("nodes") or ()))
        if part in {Part.SYNTHESIZE, Part.WRITE}:
            return around
        return Frame(span_id, Role.RETRIEVE if part is Part.RETRIEVE else Role.RERANK, run, scope)

    def _exit_part(self, role: Role, scope: Scope, result: Any) -> None:
        if role is Role.RETRIEVE:
            scope.retrieved.append(passages_of(result))
        elif role is Role.RERANK:
            scope.reranked.append(passages_of(result))
        elif scope.outer is not None:
            context = context_of(scope, payload_of(result))
            if context is not None:
                scope.outer.inner.append(context)

    def _exit_root(self, run: Run, result: Any) -> None:
        self._runs.close_root(run)
        if run.target is None or run.target.source != OPENINFERENCE:
            run.target = openinference_target() or run.target or current_span_target()
        payload = payload_of(result)
        if self._keeps_objects:
            run.outputs = output_of(result)
        if result is None and run.scope.is_workflow:
            # How a workflow that its user cancelled ends.
            self._finisher.discard(run, "cancelled")
        elif isinstance(payload, StreamingAgentChatResponse):
            self._chats.returned(run, payload)
        else:
            self._finisher.finish(run, payload)
