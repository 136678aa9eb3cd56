"""The callback handler: records LangChain's runs and never raises.

It is synchronous and inline (`run_inline = True`): of all ways to receive events that one costs a
request the least, on synchronous and asynchronous chains alike. It does not derive from
`BaseTracer`, which keeps every cancelled run for ever. LangChain delivers the events of one
invocation from several threads, sometimes twice, sometimes never.
"""

from __future__ import annotations

import functools
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Self, TypeVar, cast
from uuid import UUID, uuid4
from weakref import WeakKeyDictionary

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult

from langchain_ragaliq._private import CONFIG, EACH, EVALUATORS, is_interrupt
from langchain_ragaliq.judge import with_judge
from langchain_ragaliq.reading import READER
from langchain_ragaliq.run import LangChainRun, is_stopped
from ragaliq import ConfigurationError, GuardRejected, Monitor, RunHandle, is_suppressed
from ragaliq.capture import (
    LONE_CALL,
    Chosen,
    Explanation,
    Explanations,
    Extract,
    FramingHandler,
    Keys,
    LogOnce,
    Message,
    Overrides,
    Reader,
    RecordedRun,
    RunFilter,
    RunLog,
    RunRegistry,
    Search,
    find_current_runs,
    is_from_signal,
    name_part,
    note_search,
    passages_inside,
    question_shown,
    searches_shown,
    takes_only,
)

logger = logging.getLogger("ragaliq.langchain")

E = TypeVar("E", bound=Callable[..., None])

_LOG_ONCE = LogOnce(logger)
_MOST_SEARCHES = 1_000
_NAMING_EVENTS = {
    "ragaliq.question": "question",
    "ragaliq.contexts": "contexts",
    "ragaliq.answer": "answer",
}
# The handler that each run of a monitor belongs to: the first that got its start. A chain may have
# a handler with keys while the whole process is attached with the same monitor; LangChain calls the
# chain's own handlers first. Both handlers get the start right after each other, so that of runs
# that never end only the latest are remembered.
_OWNERS: WeakKeyDictionary[Monitor, OrderedDict[int, int]] = WeakKeyDictionary()
_OWNED_RUNS = 10_000


FRAME: ContextVar[LangChainRun | None] = ContextVar("ragaliq_langchain_frame", default=None)
"""The run that the code of this task or thread framed by hand."""


def _run_in_force() -> int | None:
    """Current run of a run without a parent, if any.

    Callbacks passed on by hand inside a LangGraph node start a run without a parent; the
    configuration in force still names the run it happens in.
    """
    config = CONFIG.get()
    parent_id = getattr(config.get("callbacks"), "parent_run_id", None) if config else None
    return parent_id.int if parent_id is not None else getattr(FRAME.get(), "key", None)


def _current_runs() -> list[tuple[RunLog, Reader]]:
    """Current runs of every handler, for `Monitor.add_context`."""
    framed, config = FRAME.get(), CONFIG.get()
    manager = config.get("callbacks") if config else None
    step = getattr(getattr(manager, "parent_run_id", None), "int", None)
    roots = [
        handler._evaluated_root(step)
        for handler in getattr(manager, "handlers", ())
        if isinstance(handler, RagaliqCallbackHandler)
    ]
    found = {id(root): root for root in (framed, *roots) if root is not None}
    return [(root.log, READER) for root in found.values() if root.handle is not None]


find_current_runs(_current_runs)


def _read(messages: list[list[BaseMessage]], options: Mapping[str, Any]) -> list[Message]:
    """Prompt of a chat model, with the documents passed next to the messages."""
    read = list(filter(None, map(READER.message, messages[0] if messages else ())))
    given = (options.get("invocation_params") or {}).get("documents")
    if given and read:
        texts = tuple(passage.text for passage in passages_inside(given))
        texts += tuple(each for each in given if isinstance(each, str))
        read[-1] = read[-1]._replace(documents=read[-1].documents + texts)
    return read


def _contained(event: E) -> E:
    """Contain every error of an event handler.

    The ones that every request calls do so themselves: passing keyword arguments on would cost as
    much as what they do.
    """

    @functools.wraps(event)
    def handle(self: RagaliqCallbackHandler, /, *args: Any, **kwargs: Any) -> None:
        try:
            event(self, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - the application's request must not notice
            self._log_failure(error)

    return cast("E", handle)


class RagaliqCallbackHandler(FramingHandler, BaseCallbackHandler):
    """Submits the answers of chains to a monitor.

    Args:
        monitor: Evaluates the answers; by default built from `monitor_options`.
        pipeline: The chain's name in results; by default the run's own name.
        only: Follow only runs of these names or tags (`"support-*"`) or with this metadata
            (`{"tenant": "acme"}`), also inside other runs; a list of them for any.
        ignore: Follow no such runs, nor anything inside them.
        extract: A function of a run's inputs and outputs that returns any of `question`, `contexts`
            and `answer` as a mapping. It runs before the call returns, so it must be fast. If it
            raises, the run is counted `extract_failed`.
        question_key: Key of the question in the inputs, such as `wish` or `data.wish`; of several,
            the first that is there.
        answer_key: Key of the answer in the output; of several, all that are there.
        context_key: Key of the context in the output, the inputs or a prompt's variables, such as
            `hits.body` for a text of each hit; of several, all that are there.
        run_inline: False delivers events through the event loop's thread pool, at a higher cost.
            Use it only with another handler that misses `on_llm_start` of completion models in
            asynchronous chains (a LangChain defect).
        max_runs: Runs followed at the same time; beyond it the oldest is dropped.
        max_age: Seconds after which a run that never ended is dropped.
        **monitor_options: Arguments of `ragaliq.Monitor`, such as `sample_rate` and `judge`, which
            may also be one of LangChain's chat models.

    Attributes:
        monitor: Gets the answers.
        errors: Events that could not be handled.

    Raises:
        TypeError: Both `monitor` and options for one are given.
        ragaliq.ConfigurationError: An option is wrong.
    """

    # Nothing but the application's own time limits is raised; LangChain would log and drop them.
    raise_error = True
    # Plain attributes: LangChain looks at one of them for every event.
    ignore_chain: bool = False
    ignore_llm: bool = False
    ignore_chat_model: bool = False
    ignore_retriever: bool = False
    ignore_agent: bool = False
    ignore_custom_event: bool = False

    _frame = FRAME

    @takes_only(Monitor)
    def __init__(
        self,
        monitor: Monitor | None = None,
        *,
        pipeline: str = "",
        only: Chosen | None = None,
        ignore: Chosen | None = None,
        extract: Extract | None = None,
        question_key: Keys | None = None,
        answer_key: Keys | None = None,
        context_key: Keys | None = None,
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
        named = Overrides(
            READER,
            logger,
            extract=extract,
            question_key=question_key,
            answer_key=answer_key,
            context_key=context_key,
        )
        self._overrides = None if named.is_empty else named
        self._filter = RunFilter(only, ignore)
        self.run_inline = run_inline
        self.monitor = monitor if monitor is not None else Monitor(**with_judge(monitor_options))
        self.errors = 0
        self._pipeline = pipeline
        self._owners = _OWNERS.setdefault(self.monitor, OrderedDict())
        self._owner = id(self)
        self._explained = Explanations(logger)
        # Searches that nothing is around, until a model is shown what they found.
        self._searches: RunRegistry[Search] = RunRegistry(
            max_runs=_MOST_SEARCHES, max_age=max_age, sweep_later=self.monitor.sweep_later
        )
        self._registry: RunRegistry[LangChainRun] = RunRegistry(
            max_runs=max_runs, max_age=max_age, sweep_later=self.monitor.sweep_later
        )

    # Chains are copied with their handlers: a copy must report to the same place.
    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    @property
    def open_runs(self) -> int:
        """Runs that have started and not ended."""
        return len(self._registry)

    def explain(self, run_id: UUID | str) -> Explanation | None:
        """Explain one of the latest runs: its parts and their sources, or why it has no case.

        Args:
            run_id: The run's id, as LangChain and the results know it.

        Returns:
            None for a run that was sampled out, goes on, or ended too long ago.
        """
        return self._explained.of(str(run_id))

    @staticmethod
    def _text_of_item(item: Any) -> str:
        found = item if isinstance(item, str) else READER.answer(item)
        return found if isinstance(found, str) else "" if found is None else found.text

    def frame_started(self, question: Any, pipeline: str) -> LangChainRun | None:
        """Begin a run that is framed by hand, unless another is around it; never raises."""
        try:
            if self._registry.follows(FRAME.get()) or is_suppressed():
                return None
            run_id = uuid4()
            self._root_started(
                run_id,
                None,
                question,
                name=pipeline or None,
                metadata=None,
                tags=None,
            )
            return self._registry.runs.get(run_id.int)
        except Exception as error:  # noqa: BLE001 - the application's request must not notice
            self._log_failure(error)
            return None

    def frame_ended(self, root: LangChainRun, answer: Any, error: BaseException | None) -> None:
        """End a run that is framed by hand; never raises."""
        try:
            if error is not None:
                self._root_failed(root, error)
            else:
                outputs = answer
                if outputs is None and root.handle is not None:
                    outputs = root.reply or None
                self._root_ended(root, outputs, None, is_stream=False)
        except Exception as failure:  # noqa: BLE001 - as above
            self._log_failure(failure)

    def _log_failure(self, error: Exception) -> None:
        """Count an error, and log the first; its message may quote the application's text."""
        if "errors" not in vars(self):
            return  # the attached handler was switched off meanwhile
        if is_from_signal(error):
            raise error  # a time limit of the application's, which struck in here
        self.errors += 1
        if self.errors == 1:
            logger.warning(
                "an event could not be handled (%s); further errors are counted in `errors`",
                type(error).__name__,
            )

    def _evaluated_root(self, step: int | None) -> LangChainRun | None:
        """Root run of a step, if it will be evaluated."""
        registry: RunRegistry[LangChainRun] | None = vars(self).get("_registry")
        root = None if registry is None else registry.runs.get(step)
        return root if root is not None and root.handle is not None else None

    def _begin(self, run_id: UUID, pipeline: str) -> RunHandle | RecordedRun | None:
        """Announce a run; None if it is not evaluated. A recorder keeps its runs instead."""
        return self.monitor.begin(run_id, pipeline=pipeline, framework="langchain")

    def _part_started(self, run_id: UUID, parent_id: UUID | None) -> LangChainRun | None:
        """Register a run below a known one and return its root; None if there is none."""
        step, registry = run_id.int, self._registry
        parent = parent_id.int if parent_id is not None else _run_in_force()
        root = registry.runs.get(parent)
        if root is None or (root.handle is not None and is_suppressed()):
            return None
        # A call inside that was given the same run id must not become its own parent.
        root.steps.setdefault(step, parent)
        registry.runs[step] = root
        if root.closed:
            registry.join(root, step)
        elif not root.has_child:
            root.first_child_started()
        return root

    def _choose(
        self,
        run_id: UUID,
        name: str | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> bool:
        """Choose or ignore an outermost run by its name, tags and metadata; True if chosen."""
        if self._filter.is_empty:
            return True
        described = name or "", tags or (), metadata or {}
        if self._filter.ignores(*described):
            self._registry.ignore(run_id.int)
            return False
        return self._filter.chooses(*described)

    def _root_started(
        self,
        run_id: UUID,
        parent_id: UUID | None,
        inputs: Any,
        *,
        name: str | None,
        metadata: Mapping[str, Any] | None,
        tags: Sequence[str] | None,
    ) -> None:
        """Register a chain that is not below a known one.

        It may still have a parent: inside a traced function, or with callbacks on a sub-chain, the
        parent is unknown to this handler.
        """
        run, registry = run_id.int, self._registry
        if run in registry.runs:
            return  # the same handler was given in two places
        if name is not None:
            if name.startswith(EACH) and isinstance(inputs, list):
                return  # its items are runs
            if name.endswith(EVALUATORS):
                registry.ignore(run)
                return
        parent = parent_id.int if parent_id is not None else _run_in_force()
        if parent is not None and registry.is_ignored(parent):
            registry.ignore(run)
            return
        handle = self._begin_owned(run_id, self._pipeline or name or "")
        # Followed before anything is looked at: should that fail, the run still ends.
        root = LangChainRun(run_id, handle, self._overrides)
        registry.open(root)
        if handle is not None:
            root.run_given(inputs, metadata or {}, tags or ())

    def _begin_owned(self, run_id: UUID, pipeline: str) -> RunHandle | RecordedRun | None:
        """Announce a run unless another handler of the same monitor has."""
        owners = self._owners
        # Each is one step of the interpreter's: threads need no lock.
        if owners.setdefault(run_id.int, self._owner) != self._owner:
            return None
        handle = self._begin(run_id, pipeline)
        if len(owners) > _OWNED_RUNS:
            owners.popitem(last=False)
        return handle

    def _count_lone_call(self, run_id: UUID) -> None:
        """Count a search or a model's call that belong to no run."""
        handle = self._begin_owned(run_id, self._pipeline)
        if handle is not None:
            self._owners.pop(run_id.int, None)
            handle.discard("not_rag")
            _LOG_ONCE.message("lone call", LONE_CALL)

    def _is_lone(self, run_id: UUID, parent_id: UUID | None, described: dict[str, Any]) -> bool:
        """True if a call has no enclosing run and is chosen; one to be ignored is noted as such."""
        is_alone = parent_id is None and _run_in_force() is None
        return is_alone and self._choose(run_id, **described)

    def _lone_call_started(self, run_id: UUID, messages: list[Message]) -> None:
        """Handle a model call outside chains: a run if its prompt has documents found before.

        Search and call belong together if they share a task or thread.
        """
        if is_suppressed() or run_id.int in self._registry.runs:
            return
        searches = searches_shown(messages)
        for search in searches:
            self._searches.close(search)
        if not searches:
            self._registry.ignore(run_id.int)
            self._count_lone_call(run_id)
            return
        handle = self._begin_owned(run_id, self._pipeline)
        if handle is None:
            self._registry.ignore(run_id.int)
            return
        root = LangChainRun(run_id, handle, self._overrides)
        self._registry.open(root)
        root.prompt_question = question_shown(messages, searches)
        for search in searches:
            root.log.found_before(search.query, search.passages)
        root.log.model_called(run_id.int, messages)

    def _root_ended(
        self, root: LangChainRun, outputs: Any, inputs: Any, *, is_stream: bool
    ) -> None:
        """Close a root that ended without an error and submit it, or count the reason."""
        # At once: detached meanwhile, the attached handler has none of its attributes any more.
        owners, registry, explained = self._owners, self._registry, self._explained
        owners.pop(root.key, None)  # another run may have the same id
        handle = root.handle
        if not registry.close(root) or handle is None:
            return
        try:
            reason = root.conclude(outputs, inputs, is_stream=is_stream)
            target = root.target()
        except BaseException as error:
            # Not only our own: Ctrl-C may come in the middle of the application's `extract`.
            is_ours = isinstance(error, Exception)
            handle.discard("internal_error" if is_ours else "interrupted")
            raise
        log = root.log
        if reason:
            handle.discard(reason)
        elif root.guarded and log.answer.text.strip() in root.guarded:
            handle.withdraw()
            reason = "withdrawn"
        explained.note(log.id, reason or log)
        if not reason:
            said = getattr(root.message, "response_metadata", {})
            response_id, model = said.get("id"), said.get("model_name") or said.get("model")
            handle.submit(
                log,
                target=target,
                session_id=root.session_id,
                response_id=response_id if isinstance(response_id, str) else None,
                model=model if isinstance(model, str) else None,
            )

    def _root_failed(self, root: LangChainRun, error: BaseException) -> None:
        """Close a root that ended in an error."""
        owners, registry, explained = self._owners, self._registry, self._explained
        owners.pop(root.key, None)
        if not registry.close(root) or root.handle is None:
            return
        if isinstance(error, GuardRejected):
            explained.note(root.log.id, "withdrawn")
            root.handle.withdraw()
            return
        reason = "interrupted" if is_interrupt(error) else "errored"
        reason = "cancelled" if is_stopped(error) else reason
        explained.note(root.log.id, reason)
        root.handle.discard(reason)

    # Events

    @_contained
    def scored_by_guard(self, run_id: UUID, answer: str) -> None:
        """Mark `answer` as checked by a guard inside this run, so that it is not scored again."""
        root = self._evaluated_root(run_id.int)
        if root is not None:
            root.guarded = (root.guarded or set()) | {answer.strip()}

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
        """Handle the begin of a chain or a step."""
        try:
            root = self._part_started(run_id, parent_run_id)
            if root is None:
                is_chain = run_type is None or run_type == "chain"
                if is_chain and self._choose(run_id, name, tags, metadata):
                    self._root_started(
                        run_id, parent_run_id, inputs, name=name, metadata=metadata, tags=tags
                    )
            elif root.handle is not None:
                root.step_started(run_id.int, inputs, run_type, tags)
        except Exception as error:  # noqa: BLE001 - the application's request must not notice
            self._log_failure(error)

    def on_chain_end(
        self,
        outputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """Handle the end of a chain or a step."""
        try:
            run = run_id.int
            root = self._registry.runs.get(run)
            if root is None:
                return
            if root.key == run:
                is_stream = "inputs" in kwargs
                self._root_ended(root, outputs, kwargs.get("inputs"), is_stream=is_stream)
            elif root.handle is not None:
                if "inputs" in kwargs:
                    root.step_given(run, kwargs["inputs"])
                root.step_ended(run, outputs)
        except Exception as error:  # noqa: BLE001 - as above
            self._log_failure(error)

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """Handle a call of a chat model."""
        try:
            root = self._part_started(run_id, parent_run_id)
            if root is not None and root.handle is not None:
                root.model_called(run_id.int, _read(messages, kwargs))
            elif root is None and self._is_lone(run_id, parent_run_id, kwargs):
                self._lone_call_started(run_id, _read(messages, kwargs))
        except Exception as error:  # noqa: BLE001 - as above
            self._log_failure(error)

    @_contained
    def on_llm_start(
        self,
        serialized: dict[str, Any],
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """Handle a call of a completion model."""
        root = self._part_started(run_id, parent_run_id)
        if root is not None and root.handle is not None:
            root.model_called(run_id.int, root.messages_of(prompts[:1]))
        elif root is None and self._is_lone(run_id, parent_run_id, kwargs):
            self._lone_call_started(run_id, [Message("user", tuple(prompts[:1]))])

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Handle a model's reply."""
        try:
            root = self._registry.runs.get(run_id.int)
            if root is not None and root.handle is not None:
                root.replied(run_id.int, response)
                if root.key == run_id.int:
                    self._root_ended(root, root.message or root.reply, None, is_stream=False)
        except Exception as error:  # noqa: BLE001 - as above
            self._log_failure(error)

    def on_retriever_start(
        self,
        serialized: dict[str, Any],
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """Handle a retriever's query."""
        try:
            root = self._part_started(run_id, parent_run_id)
            if root is None:
                # A chain inside it writes queries, not answers.
                self._registry.ignore(run_id.int)
                if self._is_lone(run_id, parent_run_id, kwargs) and not is_suppressed():
                    unused = functools.partial(self._count_lone_call, run_id)
                    self._searches.open(search := Search(query, run_id.int, unused))
                    note_search(search)
            elif root.handle is not None:
                root.retrievers.add(run_id.int)  # models below it write queries, not answers
                root.log.searched(run_id.int, query)
        except Exception as error:  # noqa: BLE001 - as above
            self._log_failure(error)

    def on_retriever_end(
        self, documents: Sequence[Document], *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Handle a retriever's documents."""
        try:
            root = self._registry.runs.get(run_id.int)
            if root is not None and root.handle is not None:
                root.retrieved(run_id.int, documents)
            elif (search := self._searches.runs.get(run_id.int)) is not None:
                search.passages = READER.document_list(documents) or ()
        except Exception as error:  # noqa: BLE001 - as above
            self._log_failure(error)

    @_contained
    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        """Handle a call of a tool."""
        self._part_started(run_id, parent_run_id)

    @_contained
    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Handle a tool's result."""
        root = self._evaluated_root(run_id.int)
        if root is not None:
            root.tool_ended(run_id.int, output)

    @_contained
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Handle the failure of a chain or a part; a retry or a fallback may still answer."""
        root = self._registry.runs.get(run_id.int)
        if root is not None and root.key == run_id.int:
            self._root_failed(root, error)
        elif root is not None and root.handle is not None:
            root.part_failed(run_id.int, error)

    # The model sees that a tool failed, not what was fetched until then.
    on_tool_error = on_llm_error = on_retriever_error = on_chain_error

    @_contained
    def on_custom_event(self, name: str, data: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Handle `dispatch_custom_event("ragaliq.contexts", {"contexts": [...]})`.

        Likewise `ragaliq.question` and `ragaliq.answer`.
        """
        what = _NAMING_EVENTS.get(name)
        root = self._evaluated_root(run_id.int) if what is not None else None
        if root is not None and what is not None:
            named = data.get(what) if isinstance(data, Mapping) else data
            name_part(root.log, what, named, reader=READER)
