"""Following runs from start to end: what is kept of each, and what it amounts to.

LangChain delivers the events of one invocation from several threads, sometimes twice, sometimes
never. On the request path a run only keeps references; which documents its answer was made from is
found by `ragaliq.capture` where there is time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

from langchain_core.documents import Document
from langchain_core.load import Serializable
from langchain_core.outputs import LLMResult
from langchain_core.runnables.config import var_child_runnable_config

from langchain_ragaliq.overrides import Facts, Overrides
from langchain_ragaliq.reading import READER, documents_among, reply_of
from langchain_ragaliq.target import TargetFinder
from ragaliq import CaseDraft, GuardRejected, Monitor, OpenRun, Passage, is_suppressed
from ragaliq.capture import CONTEXT_KEYS, CaseSources, Explanations, Found, RunLog, RunRegistry

__all__ = ["RootRun", "RunTracker", "run_in_force"]

logger = logging.getLogger("ragaliq.langchain")

# What the classes of LangChain's own evaluators end in; their answers are grades.
_EVALUATORS = "EvalChain"
# What `chain.map()` is called: every item is a run of its own.
_EACH = "RunnableEach"
_SEQUENCE_STEP = "seq:step:"
# Metadata that frameworks add to a run's; the rest is the application's.
_OWN_METADATA = ("ls_", "langgraph_", "checkpoint_", "lc_", "__")
_CLAIMED_RUNS = 10_000
_NOTHING = Facts()


def run_in_force() -> int | None:
    """The run that one without a parent happens in, if any.

    Callbacks passed on by hand inside a LangGraph node start a run without a parent; the
    configuration in force still names the run it happens in.
    """
    config = var_child_runnable_config.get()
    if not config:
        return None
    parent_id = getattr(config.get("callbacks"), "parent_run_id", None)
    return parent_id.int if parent_id is not None else None


def _is_interrupt(error: BaseException) -> bool:
    """Whether LangGraph stopped a run to resume it later, say when a human has agreed."""
    return any(cls.__name__ == "GraphInterrupt" for cls in type(error).__mro__)


def _is_control_flow(error: BaseException) -> bool:
    # What LangGraph raises to get out of a node: interrupts, and commands to the graph around it.
    return any(cls.__name__ == "GraphBubbleUp" for cls in type(error).__mro__)


def _is_stopped(error: BaseException) -> bool:
    """Whether somebody lost interest, rather than something having failed."""
    return isinstance(error, GeneratorExit | asyncio.CancelledError)


class RootRun:
    """One invocation of a chain.

    A run that is not evaluated has no ticket and little else: it is remembered only so that its
    children are not taken for roots. Runs go by the integer of their id, which a dictionary finds
    several times faster than a `UUID`; `name` is the id as text.
    """

    __slots__ = (
        "closed",
        "guarded",
        "had_errors",
        "has_child",
        "input_items",
        "inputs",
        "is_interrupted",
        "key",
        "keyed_passages",
        "log",
        "metadata",
        "name",
        "open_models",
        "open_steps",
        "overrides",
        "prompt_question",
        "question",
        "reply",
        "response_id",
        "retrievers",
        "said",
        "session_id",
        "started",
        "steps",
        "tags",
        "target",
        "ticket",
    )

    def __init__(
        self, run_id: UUID, ticket: OpenRun | None, overrides: Overrides | None = None
    ) -> None:
        self.key = run_id.int
        self.ticket = ticket
        self.closed = False
        self.started = time.monotonic()
        self.has_child = ticket is None  # of a run that is not evaluated nothing is looked at
        if ticket is None:
            self.steps: dict[Any, Any] = {self.key: None}
            return
        self.name = ticket.run_id
        self.log = RunLog(self.key)
        self.steps = self.log.parents
        self.guarded: set[str] | None = None
        self.question: Found | None = None
        self.prompt_question: Found | None = None
        self.session_id: str | None = None
        self.is_interrupted = False
        self.had_errors = False
        self.tags: Sequence[str] = ()
        self.metadata: Mapping[str, Any] = {}
        self.target = TargetFinder(run_id)
        self.open_models: set[int] = set()
        self.open_steps: set[int] = set()
        self.retrievers: set[int] = set()
        self.reply = ""
        self.response_id: str | None = None
        self.keyed_passages: list[Passage] | None = None
        self.overrides = overrides
        self.said: Facts | None = None
        self.inputs: Any = None
        self.input_items = 0

    @property
    def size(self) -> int:
        """Bytes of what it holds, about."""
        return 0 if self.ticket is None else self.log.size

    def discard(self, reason: str) -> None:
        """It was given up."""
        if self.ticket is not None:
            self.ticket.discard(reason)

    # Steps

    def opened(self, inputs: Any, metadata: Mapping[str, Any], tags: Sequence[str]) -> None:
        """The run began: keep what can be known at once."""
        self.tags = tags
        self.target.at_start()
        overrides = self.overrides
        if overrides is None:
            self.question = READER.question(inputs)
        else:
            self.question = overrides.question(inputs) or READER.question(inputs)
            self.keyed_passages = overrides.passages(inputs)
            if overrides.extract is not None:
                self.inputs = inputs
        if type(inputs) is not str:
            self.took(self.key, inputs)
            if isinstance(inputs, list) and READER.messages(inputs) is None:
                self.input_items = len(inputs)
        if metadata:
            self.metadata = metadata
            self.known_by(metadata)

    def known_by(self, names: Mapping[str, Any]) -> None:
        """Find the conversation's name among metadata or configurable values."""
        thread_id = names.get("thread_id")
        self.log.keeps_turns = self.log.keeps_turns or thread_id is not None
        for found in (names.get("session_id"), thread_id, names.get("conversation_id")):
            if self.session_id is None and found is not None:
                self.session_id = str(found)

    def first_child_started(self) -> None:
        """Something below the root began; in its context more can be seen than in the root's."""
        self.has_child = True
        config = var_child_runnable_config.get()
        self.target.at_child(config)
        configurable = config.get("configurable") if config else None
        if configurable:
            self.known_by(configurable)

    def step_started(self, run: int, parent: int | None, inputs: Any, run_type: str | None) -> None:
        """A step of the chain began."""
        if parent == self.key:
            self.open_steps.add(run)
        if type(inputs) is str:
            return
        if run_type == "prompt":
            if self.overrides is not None and self.keyed_passages is None:
                self.keyed_passages = self.overrides.passages(inputs)
            if self.question is None and self.prompt_question is None:
                self.prompt_question = READER.question(inputs, "prompt")
        self.took(run, inputs)

    def step_ended(self, run: int, outputs: Any, tags: Iterable[str] | None) -> None:
        """A step of the chain returned."""
        self.open_steps.discard(run)
        log = self.log
        if type(outputs) is str:
            log.said(run, outputs)
        elif isinstance(outputs, Document):
            log.returned(run, READER.document_list([outputs]))
        elif isinstance(outputs, Serializable):
            return  # messages and prompts, which models report themselves
        elif isinstance(outputs, dict):
            log.returned(run, by_key=documents_among(outputs))
            for key, value in outputs.items():
                if type(value) is str:
                    log.said(run, value, key)
        elif isinstance(outputs, list) and (
            not outputs or (documents := READER.document_list(outputs)) is not None
        ):
            follows = any(tag.startswith(_SEQUENCE_STEP) for tag in tags or ())
            log.returned(run, documents if outputs else [], follows=follows)
        elif (fields := READER.fields(outputs)) is not None or isinstance(outputs, list | tuple):
            log.returned(run, by_key=documents_among(outputs if fields is None else dict(fields)))

    def step_failed(self, run: int, error: BaseException) -> None:
        """A step of the chain raised; a retry or a fallback may still answer."""
        self.open_steps.discard(run)
        self.log.failed(run)
        self.is_interrupted = self.is_interrupted or _is_interrupt(error)
        self.part_failed(error)

    def part_failed(self, error: BaseException) -> None:
        """Something below the root raised."""
        if not _is_stopped(error) and not _is_control_flow(error):
            self.had_errors = True

    def tool_ended(self, run: int, output: Any) -> None:
        """A tool answered."""
        if getattr(output, "status", None) == "error":
            # The model is told so, not what was fetched until then.
            self.had_errors = True
            self.log.failed(run)
        else:
            self.log.told(run, READER.told(output))

    def replied(self, run: int, result: LLMResult) -> None:
        """A model answered; the last reply outside retrievers may be the run's answer."""
        self.open_models.discard(run)
        text, also, response_id = reply_of(result)
        self.log.replied(run, text, also)
        at: int | None = run
        while at is not None and at not in self.retrievers:
            at = self.steps.get(at)
        if at is None:
            self.reply, self.response_id = text, response_id

    def told(self, what: str, value: Any) -> None:
        """The application itself named its question, contexts or answer."""
        if self.said is None:
            self.said = Facts()
        self.said.name(what, value)

    def took(self, run: int, inputs: Any) -> None:
        """A step was given these: keep the documents and texts that may be the context."""
        given = documents_among(inputs)
        if given:
            self.log.given(run, given)
        if isinstance(inputs, dict):
            for key in CONTEXT_KEYS:
                value = inputs.get(key)
                if type(value) is str and value:
                    self.log.said(run, value, key)

    # The end

    def conclude(  # noqa: PLR0911 - one a reason
        self, outputs: Any, inputs: Any, *, is_stream: bool
    ) -> CaseDraft | str:
        """A case of the run that ended well, or the reason why there is none.

        Args:
            outputs: What the chain returned.
            inputs: What it took, of a stream, where that is known only at the end.
            is_stream: Whether the answer was handed out piece by piece.
        """
        if self.is_interrupted:
            return "interrupted"
        if isinstance(outputs, list) and 1 < self.input_items == len(outputs):
            return "several_questions"
        answer = READER.answer(outputs) or self._reply(outputs)
        # A stream that is broken off ends like any other, but before its steps and its model do. A
        # model that was itself given up, say for a faster one, is open as well: then the answer is
        # the other's reply.
        is_broken_off = is_stream and bool(self.open_steps)
        is_waiting = self.open_models and (answer.text if answer else "") != self.reply
        if outputs is None or is_broken_off or is_waiting:
            return "truncated"
        said = self._said(outputs, inputs)
        if said is None:
            return "extract_failed"
        if said.question:
            question: Found | None = Found(said.question, "application")
        else:
            question = self.question or (None if inputs is None else READER.question(inputs))
            question = question or READER.echoed_question(outputs) or self.prompt_question
        if said.answer:
            answer = Found(said.answer, "application")
        if question is None:
            return "no_question"
        if answer is None:
            return "no_answer"
        passages = said.passages if said.passages is not None else self.keyed_passages
        log = self.log
        if passages is None and type(outputs) is not str:
            named = READER.context(outputs)
            if named is not None:
                log.named(named)
            log.turn(READER.turn(outputs))
        return CaseDraft(
            id=self.name,
            query=question.text,
            passages=passages,
            response=answer.text,
            finder=log,
            tags=self.tags,
            metadata={
                key: value
                for key, value in self.metadata.items()
                if not key.startswith(_OWN_METADATA)
            },
            sources=CaseSources(
                question=question.where,
                answer=answer.where,
                context="" if passages is None else "application",
            ),
            had_errors=self.had_errors,
        )

    def _said(self, outputs: Any, inputs: Any) -> Facts | None:
        """What the application itself says of the run; None if its function for that failed.

        Its function goes before the events it sent, and those before the keys it named.
        """
        overrides, said = self.overrides, self.said or _NOTHING
        if overrides is None:
            return said
        try:
            facts = overrides.facts(self.inputs if inputs is None else inputs, outputs)
        except Exception as error:  # noqa: BLE001 - the application's own code may do anything
            overrides.complain(error)
            return None
        facts.question = facts.question or said.question or _text(overrides.question(inputs))
        facts.answer = facts.answer or said.answer or _text(overrides.answer(outputs))
        for passages in (said.passages, overrides.passages(outputs), overrides.passages(inputs)):
            if facts.passages is None:
                facts.passages = passages
        return facts

    def _reply(self, outputs: Any) -> Found | None:
        """The last model's reply, unless the chain returned something else than an answer.

        A chain may return documents only, or a state in which nothing has been answered yet: then
        the last reply was a rewritten question or a grade.
        """
        reply = self.reply
        if not reply or READER.document_list(outputs):
            return None
        if isinstance(outputs, dict):
            values = list(outputs.values())
            asked = self.question.text if self.question is not None else None
            echoes = any(isinstance(v, str) and v.strip() == asked for v in values)
            is_state = echoes or READER.context(outputs) is not None
            if is_state and all(_text(READER.answer(value)) != reply for value in values):
                return None
        return Found(reply, "reply")


def _text(found: Found | None) -> str | None:
    return found.text if found is not None else None


class RunTracker:
    """The runs in progress of one handler.

    Args:
        monitor: Gets the finished runs.
        pipeline: Name for every run; by default the run's own name.
        overrides: What the application says about its runs, if anything.
        max_runs: Runs followed at the same time; beyond it the oldest is given up (`evicted`).
        max_age: Seconds after which a run that never ended is given up (`expired`).

    Attributes:
        errors: Events that could not be handled.
        registry: The runs in progress.
        explained: What became of the latest runs.
    """

    def __init__(
        self,
        monitor: Monitor,
        *,
        pipeline: str,
        overrides: Overrides | None,
        max_runs: int,
        max_age: float,
    ) -> None:
        self.monitor = monitor
        self.errors = 0
        self._pipeline = pipeline
        self._overrides = overrides
        self._claims = _CLAIMS.setdefault(monitor, Claims())
        self.explained = Explanations(logger)
        self.registry: RunRegistry[RootRun] = RunRegistry(
            max_runs=max_runs, max_age=max_age, sweep_later=monitor.sweep_later
        )

    def complain(self, error: Exception) -> None:
        """Count an error, and log the first; its message may quote the application's text."""
        self.errors += 1
        if self.errors == 1:
            logger.warning(
                "an event could not be handled (%s); further errors are counted in `errors`",
                type(error).__name__,
            )

    def evaluated_root(self, run_id: UUID) -> RootRun | None:
        """The root a run belongs to, if it will be evaluated."""
        root = self.registry.runs.get(run_id.int)
        return root if root is not None and root.ticket is not None else None

    def child_started(self, run: int, parent: int | None) -> RootRun | None:
        """Note a run below a known one and return its root; None where there is none."""
        registry = self.registry
        root = registry.runs.get(parent)
        if root is None or (root.ticket is not None and is_suppressed()):
            return None
        root.steps[run] = parent
        registry.runs[run] = root
        if root.closed:
            registry.join(root, run)
        elif not root.has_child:
            root.first_child_started()
        return root

    def root_started(
        self,
        run_id: UUID,
        parent: int | None,
        inputs: Any,
        *,
        name: str | None,
        metadata: Mapping[str, Any] | None,
        tags: Sequence[str] | None,
    ) -> None:
        """Note a chain that is not below a known one.

        Its parent may still be given: inside a traced function, or with callbacks on a sub-chain,
        the parent is somebody we never heard of.
        """
        run, registry = run_id.int, self.registry
        if run in registry.runs:
            return  # the same handler was given in two places
        if name is not None:
            if name.startswith(_EACH) and isinstance(inputs, list):
                return  # its items are runs
            if name.endswith(_EVALUATORS):
                registry.ignore(run)
                return
        if parent is not None and registry.is_ignored(parent):
            registry.ignore(run)
            return
        ticket = None
        if self._claims.take(run, self):
            ticket = self.monitor.begin(
                run_id, pipeline=self._pipeline or name or "", framework="langchain"
            )
        # Followed before anything is looked at: should that fail, the run still ends.
        root = RootRun(run_id, ticket, self._overrides)
        registry.open(root)
        if ticket is not None:
            root.opened(inputs, metadata or {}, tags or ())

    def root_ended(self, root: RootRun, outputs: Any, inputs: Any, *, is_stream: bool) -> None:
        """Close a root that ended well and submit it, or say why it cannot be evaluated."""
        if not self._close(root) or root.ticket is None:
            return
        try:
            found = root.conclude(outputs, inputs, is_stream=is_stream)
            target = root.target.at_end()
        except BaseException as error:
            # Not only our own: Ctrl-C may come in the middle of the application's `extract`.
            is_ours = isinstance(error, Exception)
            root.ticket.discard("internal_error" if is_ours else "interrupted")
            raise
        self.explained.note(root.name, found)
        if isinstance(found, str):
            root.ticket.discard(found)
        elif root.guarded and found.response.strip() in root.guarded:
            root.ticket.withdraw()
            self.explained.note(root.name, "withdrawn")
        else:
            root.ticket.submit(
                found,
                target=target,
                session_id=root.session_id,
                response_id=root.response_id,
            )

    def root_failed(self, root: RootRun, error: BaseException) -> None:
        """Close a root that ended in an error."""
        if not self._close(root) or root.ticket is None:
            return
        if isinstance(error, GuardRejected):
            root.ticket.withdraw()
            return
        reason = "interrupted" if _is_interrupt(error) else "errored"
        reason = "cancelled" if _is_stopped(error) else reason
        self.explained.note(root.name, reason)
        root.ticket.discard(reason)

    def _close(self, root: RootRun) -> bool:
        self._claims.release(root.key)
        return self.registry.close(root)


class Claims:
    """Which of a monitor's handlers each run belongs to: the first that heard of it.

    A chain may be given a handler with names of keys while the process as a whole is attached with
    the same monitor. LangChain tells the chain's own handlers first. Two handlers are told of one
    start right after each other, so that of runs that never end only the latest are remembered.
    """

    def __init__(self) -> None:
        # Each of its methods is one step of the interpreter's: threads need no lock.
        self._by_run: OrderedDict[int, int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_run)

    def take(self, run: int, follower: object) -> bool:
        """Whether the run that has just started is this follower's to report."""
        by_run = self._by_run
        if by_run.setdefault(run, id(follower)) != id(follower):
            return False
        if len(by_run) > _CLAIMED_RUNS:
            by_run.popitem(last=False)
        return True

    def release(self, run: int) -> None:
        """The run is over: another one may have the same id."""
        self._by_run.pop(run, None)


_CLAIMS: WeakKeyDictionary[Monitor, Claims] = WeakKeyDictionary()
