"""The callback handler: translates LangChain's events for the tracker and lets nothing escape.

It is synchronous and inline (`run_inline = True`): of all ways to receive events that one costs a
request the least, on synchronous and asynchronous chains alike. It does not derive from
`BaseTracer`, which keeps every cancelled run for ever.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, Self, TypeVar
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult

from langchain_ragaliq.following import RunTracker, run_in_force
from langchain_ragaliq.overrides import Extract, Overrides
from langchain_ragaliq.reading import READER, prompt_of
from ragaliq import ConfigurationError, Monitor
from ragaliq.capture import Explanation, Message

__all__ = ["RagaliqCallbackHandler"]

P = ParamSpec("P")
H = TypeVar("H", bound="RagaliqCallbackHandler")

_NAMING_EVENTS = {
    "ragaliq.question": "question",
    "ragaliq.contexts": "contexts",
    "ragaliq.answer": "answer",
}


def _contained(
    event: Callable[Concatenate[H, RunTracker, P], None],
) -> Callable[Concatenate[H, P], None]:
    """Give an event handler the tracker, and keep every error of it from the application."""

    @functools.wraps(event)
    def handle(self: H, /, *args: P.args, **kwargs: P.kwargs) -> None:
        tracker = self._tracker
        if tracker is None:
            return
        try:
            event(self, tracker, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - the application's request must not notice
            tracker.complain(error)

    return handle


class RagaliqCallbackHandler(BaseCallbackHandler):
    """Hands the answers of the chains it is given to, to a monitor.

    Args:
        monitor: Evaluates the answers; built from `monitor_options` when not given.
        pipeline: Name of the application's chain in results; by default the run's own name.
        extract: A function of a run's inputs and outputs which returns any of `question`,
            `contexts` and `answer` as a mapping; the rest is guessed. It runs before the call
            returns, so it should do no more than look things up. A run for which it raises is
            counted `extract_failed`.
        question_key: Key of the question among the inputs, where it has an unusual name.
        answer_key: Key of the answer in the output.
        context_key: Key of the context in the output, the inputs or a prompt's variables.
        run_inline: False delivers events through the event loop's thread pool instead. It costs
            more and is needed only beside handlers that miss `on_llm_start` of completion models
            in asynchronous chains as soon as any handler is inline (a LangChain defect).
        max_runs: Runs followed at the same time; beyond it the oldest is given up.
        max_age: Seconds after which a run that never ended is given up.
        **monitor_options: Arguments of `ragaliq.Monitor`, such as `judge` and `sample_rate`.

    Raises:
        TypeError: Both `monitor` and options for one are given.
        ragaliq.ConfigurationError: An option is wrong.
    """

    raise_error = False
    # None while switched off.
    _tracker: RunTracker | None = None
    # Plain attributes: LangChain looks at one of them for every event.
    ignore_chain: bool = False
    ignore_llm: bool = False
    ignore_chat_model: bool = False
    ignore_retriever: bool = False
    ignore_agent: bool = False
    ignore_custom_event: bool = False

    def __init__(
        self,
        monitor: Monitor | None = None,
        *,
        pipeline: str = "",
        extract: Extract | None = None,
        question_key: str | None = None,
        answer_key: str | None = None,
        context_key: str | None = None,
        run_inline: bool = True,
        max_runs: int = 10_000,
        max_age: float = 600.0,
        **monitor_options: Any,
    ) -> None:
        if monitor is not None and monitor_options:
            raise TypeError(f"give a monitor or its options, not both: {sorted(monitor_options)}")
        if monitor is not None and not callable(getattr(monitor, "begin", None)):
            raise ConfigurationError(
                f"RagaliqCallbackHandler: monitor must be a ragaliq.Monitor, got "
                f"{type(monitor).__name__}; a judge is given by name: judge=..."
            )
        said = {
            "question_key": question_key,
            "answer_key": answer_key,
            "context_key": context_key,
        }
        is_said = extract is not None or any(key is not None for key in said.values())
        overrides = Overrides(extract=extract, **said) if is_said else None
        self.run_inline = run_inline
        self._tracker = RunTracker(
            monitor if monitor is not None else Monitor(**monitor_options),
            pipeline=pipeline,
            overrides=overrides,
            max_runs=max_runs,
            max_age=max_age,
        )

    # Chains are copied with their handlers: a copy must report to the same place.
    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    @property
    def monitor(self) -> Monitor:
        """The monitor that gets the answers."""
        if self._tracker is None:
            raise RuntimeError("this handler is detached")
        return self._tracker.monitor

    @property
    def open_runs(self) -> int:
        """Runs that have started and not ended."""
        return len(self._tracker.registry) if self._tracker is not None else 0

    @property
    def errors(self) -> int:
        """Events that could not be handled."""
        return self._tracker.errors if self._tracker is not None else 0

    def explain(self, run_id: UUID | str) -> Explanation | None:
        """What became of one of the latest runs: its parts, where they came from, or why not.

        Args:
            run_id: The run's id, as LangChain and the results know it.

        Returns:
            None for a run that was sampled out, goes on, or ended too long ago.
        """
        return self._tracker.explained.of(str(run_id)) if self._tracker is not None else None

    @_contained
    def scored_by_guard(self, tracker: RunTracker, /, run_id: UUID, answer: str) -> None:
        """A guard inside this run has judged `answer`: the run is not scored again for it."""
        root = tracker.evaluated_root(run_id)
        if root is not None:
            root.guarded = (root.guarded or set()) | {answer.strip()}

    # Most events of a run are steps, chats and retrievers that start and end. These contain their
    # errors themselves: a decorator that passes keyword arguments on would cost as much as what
    # they do.

    def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        run_type: str | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        """A chain or a step of one began."""
        tracker = self._tracker
        if tracker is None:
            return
        try:
            run = run_id.int
            parent = parent_run_id.int if parent_run_id is not None else run_in_force()
            root = tracker.child_started(run, parent) if parent is not None else None
            if root is None:
                if run_type is None or run_type == "chain":
                    tracker.root_started(
                        run_id, parent, inputs, name=name, metadata=metadata, tags=tags
                    )
            elif root.ticket is not None:
                root.step_started(run, parent, inputs, run_type)
        except Exception as error:  # noqa: BLE001 - the application's request must not notice
            tracker.complain(error)

    def on_chain_end(
        self,
        outputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        **kwargs: Any,
    ) -> None:
        """A chain or a step of one ended."""
        tracker = self._tracker
        if tracker is None:
            return
        try:
            run = run_id.int
            root = tracker.registry.runs.get(run)
            if root is None:
                return
            if root.key == run:
                is_stream = "inputs" in kwargs
                tracker.root_ended(root, outputs, kwargs.get("inputs"), is_stream=is_stream)
            elif root.ticket is not None:
                if "inputs" in kwargs:
                    root.took(run, kwargs["inputs"])
                root.step_ended(run, outputs, tags)
        except Exception as error:  # noqa: BLE001 - as above
            tracker.complain(error)

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A chat model was called."""
        tracker = self._tracker
        if tracker is None:
            return
        try:
            run = run_id.int
            parent = parent_run_id.int if parent_run_id is not None else run_in_force()
            root = tracker.child_started(run, parent)
            if root is not None and root.ticket is not None:
                root.open_models.add(run)
                root.log.asked(run, prompt_of(messages[0]) if messages else ())
        except Exception as error:  # noqa: BLE001 - as above
            tracker.complain(error)

    def on_llm_start(
        self,
        serialized: dict[str, Any],
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A completion model was called."""
        tracker = self._tracker
        if tracker is None:
            return
        try:
            run = run_id.int
            parent = parent_run_id.int if parent_run_id is not None else run_in_force()
            root = tracker.child_started(run, parent)
            if root is not None and root.ticket is not None:
                root.open_models.add(run)
                root.log.asked(run, (Message("user", tuple(prompts[:1])),))
        except Exception as error:  # noqa: BLE001 - as above
            tracker.complain(error)

    def on_llm_end(
        self,
        response: LLMResult,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A model answered."""
        tracker = self._tracker
        if tracker is None:
            return
        try:
            root = tracker.registry.runs.get(run_id.int)
            if root is not None and root.ticket is not None:
                root.replied(run_id.int, response)
        except Exception as error:  # noqa: BLE001 - as above
            tracker.complain(error)

    def on_retriever_start(
        self,
        serialized: dict[str, Any],
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A retriever was asked."""
        tracker = self._tracker
        if tracker is None:
            return
        try:
            run = run_id.int
            parent = parent_run_id.int if parent_run_id is not None else run_in_force()
            root = tracker.child_started(run, parent)
            if root is None:
                tracker.registry.ignore(run)  # a chain inside it writes queries, not answers
            elif root.ticket is not None:
                root.retrievers.add(run)  # models below it write queries, not answers
                root.log.retrieving(run)
        except Exception as error:  # noqa: BLE001 - as above
            tracker.complain(error)

    def on_retriever_end(
        self,
        documents: Sequence[Document],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A retriever returned documents."""
        tracker = self._tracker
        if tracker is None:
            return
        try:
            root = tracker.registry.runs.get(run_id.int)
            if root is not None and root.ticket is not None:
                root.log.retrieved(run_id.int, READER.document_list(documents) or ())
        except Exception as error:  # noqa: BLE001 - as above
            tracker.complain(error)

    @_contained
    def on_chain_error(
        self, tracker: RunTracker, /, error: BaseException, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """A chain or a step of one failed."""
        root = tracker.registry.runs.get(run_id.int)
        if root is None:
            return
        if root.key == run_id.int:
            tracker.root_failed(root, error)
        elif root.ticket is not None:
            root.step_failed(run_id.int, error)

    @_contained
    def on_llm_error(
        self, tracker: RunTracker, /, error: BaseException, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """A model failed; a retry or a fallback may still answer."""
        root = tracker.evaluated_root(run_id)
        if root is not None:
            root.open_models.discard(run_id.int)
            root.part_failed(error)

    @_contained
    def on_retriever_error(
        self, tracker: RunTracker, /, error: BaseException, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """A retriever failed; the application may go on without it."""
        root = tracker.evaluated_root(run_id)
        if root is not None:
            root.part_failed(error)

    @_contained
    def on_tool_start(
        self,
        tracker: RunTracker,
        /,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A tool was called."""
        parent = parent_run_id.int if parent_run_id is not None else run_in_force()
        tracker.child_started(run_id.int, parent)

    @_contained
    def on_tool_end(
        self, tracker: RunTracker, /, output: Any, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """A tool answered."""
        root = tracker.evaluated_root(run_id)
        if root is not None:
            root.tool_ended(run_id.int, output)

    @_contained
    def on_tool_error(
        self, tracker: RunTracker, /, error: BaseException, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """A tool failed: the model is told so, not what was fetched until then."""
        root = tracker.evaluated_root(run_id)
        if root is not None:
            root.log.failed(run_id.int)
            root.part_failed(error)

    @_contained
    def on_custom_event(
        self, tracker: RunTracker, /, name: str, data: Any, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """`dispatch_custom_event("ragaliq.contexts", {"contexts": [...]})` names the context.

        Likewise `ragaliq.question` and `ragaliq.answer`.
        """
        what = _NAMING_EVENTS.get(name)
        root = tracker.evaluated_root(run_id) if what is not None else None
        if root is not None and what is not None:
            root.told(what, data.get(what) if isinstance(data, Mapping) else data)
