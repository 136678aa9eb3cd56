"""The callback handler: translates LangChain's events for the tracker and lets nothing escape.

It is synchronous and inline (`run_inline = True`): of all ways to receive events that one costs a
request the least, on synchronous and asynchronous chains alike. It does not derive from
`BaseTracer`, which keeps every cancelled run for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult

from langchain_ragaliq.containment import Contained, contained
from langchain_ragaliq.extract import documents_of, prompt_context, reply_of, takes_documents
from langchain_ragaliq.tracker import CONTEXTS_EVENT, RunTracker
from ragaliq import Monitor

__all__ = ["RagaliqCallbackHandler"]


class RagaliqCallbackHandler(Contained, BaseCallbackHandler):
    """Hands the answers of the chains it is given to, to a monitor.

    Args:
        monitor: Evaluates the answers; built from `monitor_options` when not given.
        pipeline: Name of the application's chain in results; by default the run's own name.
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

    def __init__(
        self,
        monitor: Monitor | None = None,
        *,
        pipeline: str = "",
        run_inline: bool = True,
        max_runs: int = 10_000,
        max_age: float = 600.0,
        **monitor_options: Any,
    ) -> None:
        if monitor is not None and monitor_options:
            raise TypeError(f"give a monitor or its options, not both: {sorted(monitor_options)}")
        self.run_inline = run_inline
        self._tracker = RunTracker(
            monitor if monitor is not None else Monitor(**monitor_options),
            pipeline=pipeline,
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
    def _is_off(self) -> bool:
        return self._tracker is None

    ignore_chain = ignore_llm = ignore_chat_model = ignore_retriever = _is_off
    ignore_agent = ignore_custom_event = _is_off

    # --- chains ---------------------------------------------------------------------------------

    @contained
    def on_chain_start(
        self,
        tracker: RunTracker,
        /,
        serialized: dict[str, Any],
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A chain or a step of one began."""
        run_type = kwargs.get("run_type")
        root = tracker.chain_started(
            run_id,
            parent_run_id,
            inputs,
            name=kwargs.get("name"),
            run_type=run_type,
            metadata=metadata,
        )
        if root is None or root.ticket is None or root.root_id == run_id:
            return
        if run_type == "prompt":
            root.prompt_context = prompt_context(inputs) or root.prompt_context
        elif takes_documents(inputs):
            root.steps_with_documents.add(run_id)

    @contained
    def on_chain_end(
        self,
        tracker: RunTracker,
        /,
        outputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A chain or a step of one ended."""
        if tracker.is_root(run_id):
            tracker.root_ended(run_id, outputs, kwargs.get("inputs"))
            return
        root, documents = tracker.root_of(run_id), documents_of(outputs)
        if root is not None and documents:
            root.step_returned_documents(run_id, documents)

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
        if tracker.is_root(run_id):
            tracker.root_failed(run_id, error)

    # --- models ---------------------------------------------------------------------------------

    @contained
    def on_chat_model_start(
        self,
        tracker: RunTracker,
        /,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A chat model was called."""
        _model_started(tracker, run_id, parent_run_id)

    @contained
    def on_llm_start(
        self,
        tracker: RunTracker,
        /,
        serialized: dict[str, Any],
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A completion model was called."""
        _model_started(tracker, run_id, parent_run_id)

    @contained
    def on_llm_end(
        self,
        tracker: RunTracker,
        /,
        response: LLMResult,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A model answered."""
        root = tracker.root_of(run_id)
        if root is not None:
            root.replied(run_id, *reply_of(response))

    @contained
    def on_llm_error(
        self,
        tracker: RunTracker,
        /,
        error: BaseException,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A model failed; a retry or a fallback may still answer."""
        root = tracker.root_of(run_id)
        if root is not None:
            root.open_models.discard(run_id)

    # --- retrievers and tools -------------------------------------------------------------------

    @contained
    def on_retriever_start(
        self,
        tracker: RunTracker,
        /,
        serialized: dict[str, Any],
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A retriever was asked."""
        root = tracker.child_started(run_id, parent_run_id)
        if root is not None:
            root.retriever_started(run_id)

    @contained
    def on_retriever_end(
        self,
        tracker: RunTracker,
        /,
        documents: Sequence[Document],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """A retriever returned documents."""
        root = tracker.root_of(run_id)
        if root is not None:
            root.retrieved(run_id, documents)

    @contained
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
        """A tool was called; what it retrieves belongs to the run."""
        tracker.child_started(run_id, parent_run_id)

    @contained
    def on_custom_event(
        self, tracker: RunTracker, /, name: str, data: Any, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """`dispatch_custom_event("ragaliq.contexts", {"contexts": [...]})` names the context."""
        if name != CONTEXTS_EVENT:
            return
        root = tracker.root_of(run_id)
        contexts = data.get("contexts") if isinstance(data, Mapping) else data
        if root is not None and isinstance(contexts, list):
            root.custom_contexts = [
                item.page_content if isinstance(item, Document) else str(item) for item in contexts
            ]


def _model_started(tracker: RunTracker, run_id: UUID, parent_run_id: UUID | None) -> None:
    root = tracker.child_started(run_id, parent_run_id)
    if root is not None:
        root.open_models.add(run_id)
