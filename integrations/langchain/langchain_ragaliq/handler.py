"""The callback handler: translates LangChain's events for the tracker and lets nothing escape.

It is synchronous and inline (`run_inline = True`): of all ways to receive events that one costs a
request the least, on synchronous and asynchronous chains alike. It does not derive from
`BaseTracer`, which keeps every cancelled run for ever.
"""

from __future__ import annotations

from typing import Any, Self
from uuid import UUID

from langchain_ragaliq.containment import contained
from langchain_ragaliq.model_events import ModelEvents
from langchain_ragaliq.overrides import Extract, Overrides
from langchain_ragaliq.source_events import SourceEvents
from langchain_ragaliq.tracker import RunTracker, run_in_force
from ragaliq import ConfigurationError, Monitor

__all__ = ["RagaliqCallbackHandler"]


class RagaliqCallbackHandler(ModelEvents, SourceEvents):
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
        return len(self._tracker) if self._tracker is not None else 0

    @property
    def errors(self) -> int:
        """Events that could not be handled."""
        return self._tracker.errors if self._tracker is not None else 0

    @contained
    def scored_by_guard(self, tracker: RunTracker, /, run_id: UUID, answer: str) -> None:
        """A guard inside this run has judged `answer`: the run is not scored again for it."""
        tracker.scored_by_guard(run_id, answer)

    # Most events of a run are steps that start and end. These two contain their errors themselves:
    # a decorator that passes keyword arguments on would cost as much as what they do.

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
            root = tracker.runs.get(run)
            if root is None:
                return
            if root.key == run:
                is_stream = "inputs" in kwargs
                tracker.root_ended(root, outputs, kwargs.get("inputs"), is_stream=is_stream)
            elif root.ticket is not None:
                if "inputs" in kwargs:
                    root.sources.given(run, kwargs["inputs"])
                root.step_ended(run, outputs, tags)
        except Exception as error:  # noqa: BLE001 - as above
            tracker.complain(error)

    @contained
    def on_chain_error(
        self,
        tracker: RunTracker,
        /,
        error: BaseException,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A chain or a step of one failed."""
        root = tracker.root_of(run_id)
        if root is None:
            return
        if root.key == run_id.int:
            tracker.root_failed(root, error)
        elif root.ticket is not None:
            root.step_failed(run_id.int, error)
