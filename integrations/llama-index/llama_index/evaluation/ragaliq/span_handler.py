"""The handler that LlamaIndex's dispatcher calls."""

from __future__ import annotations

from inspect import BoundArguments
from typing import TYPE_CHECKING, Any

from llama_index.core.instrumentation.span import BaseSpan
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler

from llama_index.evaluation.ragaliq.capture import SpanCapture
from llama_index.evaluation.ragaliq.faults import FaultLog
from llama_index.evaluation.ragaliq.overrides import Extract, require_function
from llama_index.evaluation.ragaliq.reach import Reach
from llama_index.evaluation.ragaliq.run_state import RunRegistry
from ragaliq import ConfigurationError

if TYPE_CHECKING:
    from ragaliq import Monitor

__all__ = ["RagaliqSpanHandler"]


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
        reach: Which runs are followed; all of them by default.
        max_runs: Runs in progress that are kept; beyond, the oldest is counted `evicted`.
        max_age: Seconds a run may take, its stream included; after that it is counted `expired`.

    Attributes:
        monitor: Where the runs go.
        pipeline: See above.

    Raises:
        ConfigurationError: `extract` is no plain function, or `monitor` no monitor.
    """

    if TYPE_CHECKING:
        monitor: Monitor
        pipeline: str
        _runs: RunRegistry
        _faults: FaultLog
        _capture: SpanCapture

    def __init__(
        self,
        monitor: Monitor,
        *,
        pipeline: str = "",
        extract: Extract | None = None,
        reach: Reach | None = None,
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
        runs = RunRegistry(max_runs=max_runs, max_age=max_age, sweep_later=monitor.sweep_later)
        faults = FaultLog()
        # Past pydantic, whose private attributes take a detour that every span would pay for.
        vars(self).update(
            monitor=monitor,
            pipeline=pipeline,
            _runs=runs,
            _faults=faults,
            _capture=SpanCapture(
                monitor,
                pipeline=pipeline,
                runs=runs,
                faults=faults,
                extract=extract,
                reach=reach,
            ),
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
            self._capture.enter(id_, bound_args, instance, parent_id, tags)
        except Exception as error:  # noqa: BLE001 - would be dropped without a word
            self._faults.note(error)
            self._capture.give_up_entered(id_, parent_id)

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
            self._capture.exit(id_, instance, result)
        except Exception as error:  # noqa: BLE001 - would be dropped without a word
            self._faults.note(error)
            self._capture.give_up_ended(id_, instance)

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
            self._capture.drop(id_, instance, err)
        except Exception as error:  # noqa: BLE001 - would be dropped without a word
            self._faults.note(error)
            self._capture.give_up_ended(id_, instance)

    def scored_by_guard(self, span_id: str, answer: str) -> None:
        """A guard inside this span has judged `answer`: the run is not scored again for it."""
        try:
            self._capture.scored_by_guard(span_id, answer)
        except Exception as error:  # noqa: BLE001 - the guard's caller must not notice
            self._faults.note(error)

    def close(self) -> None:
        """End the runs in progress, counted `interrupted`; called when LlamaIndex shuts down."""
        self._capture.close()

    def close_open(self) -> None:
        """End the runs that more events would have to end; called when nobody listens any more."""
        self._capture.close_open()

    def new_span(self, *args: Any, **kwargs: Any) -> BaseSpan | None:
        """Nothing: no span is kept."""
        return None

    def prepare_to_exit_span(self, *args: Any, **kwargs: Any) -> BaseSpan | None:
        """Nothing: no span is kept."""
        return None

    def prepare_to_drop_span(self, *args: Any, **kwargs: Any) -> BaseSpan | None:
        """Nothing: no span is kept."""
        return None
