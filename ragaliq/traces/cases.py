"""Cases of the runs in a trace, or the reason why a run gives none."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ragaliq.capture.calls import FinalReply, is_grade
from ragaliq.capture.phrases import is_telling
from ragaliq.capture.plain_code import Search, asks_with, question_shown, without_texts
from ragaliq.capture.run import RunLog
from ragaliq.capture.texts import (
    ANSWER_KEYS,
    Found,
    Message,
    models_words,
    question_in,
    without_answers,
)
from ragaliq.core.log_once import LogOnce
from ragaliq.core.passages import Passage, TextFetcher
from ragaliq.core.run import RunInfo, SpanTarget
from ragaliq.core.test_case import RAGTestCase
from ragaliq.traces import llama_index
from ragaliq.traces.conventions import (
    FINISH_REASONS,
    FRAMEWORKS,
    LANGCHAIN_SCOPES,
    METADATA,
    MODELS,
    REDACTED,
    RESPONSE_ID,
    RUNS,
    SESSIONS,
    Kind,
    Step,
)
from ragaliq.traces.mapping import SpanRule
from ragaliq.traces.messages import READER, asked_last, decoded, is_langgraphs
from ragaliq.traces.span import TraceSpan
from ragaliq.traces.tree import forest_of, walk

logger = logging.getLogger(__name__)

REASONS = {
    "not_rag": "the spans show no search, store or tool, or no model that answered",
    "no_question": "the spans show no question",
    "no_answer": "the spans show no answer",
    "answer_streamed": "the answer was streamed, and the spans do not hold it",
    "content_hidden": "question, context or answer was kept out of the spans",
    "texts_not_fetched": "the function that fetches the texts of documents failed",
    "attributes_cut": "texts are cut, or attributes were dropped: raise the SDK's limits",
    "truncated": "the answer was broken off",
    "errored": "the run failed",
    "cancelled": "the run was cancelled",
    "interrupted": "the run waits for a person",
    "ambiguous": "several questions or answers in one request, and nothing tells them apart",
    "malformed": "the spans contradict each other",
    "internal_error": "ragaliq could not read it; please report",
}
"""Why a run in a trace gives no case, with what it means; the common reasons first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeNames:
    """Attributes of a run's first span that the application itself fills.

    They take precedence over everything that is inferred. Values may be texts, or JSON as the
    conventions write it.

    Attributes:
        question: Name of the attribute with the user's question; empty for none.
        answer: Name of the attribute with the answer.
        contexts: Name of the attribute with the context: a list of texts, or JSON of one.
    """

    question: str = ""
    answer: str = ""
    contexts: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCase:
    """One run of a RAG application, read from its trace.

    Attributes:
        run: The run. Its id is trace id, hyphen, span id: the same for each reading of the trace.
        log: The run's events, question and answer; None if there is a `reason`.
        reason: Reason why there is no case: a key of `REASONS`. Empty if there is one.
        steps: The steps that the run's spans were read as, the run's own first.
    """

    run: RunInfo
    log: RunLog | None = None
    reason: str = ""
    steps: Sequence[Step] = ()

    @property
    def target(self) -> SpanTarget:
        """The run's own span, which results refer to."""
        assert self.run.target is not None  # noqa: S101 - a run of a trace has one
        return self.run.target


_NO_NAMES = AttributeNames()
_LOG_ONCE = LogOnce(logger)


def cases_of_trace(
    spans: Iterable[TraceSpan],
    *,
    attribute_names: AttributeNames = _NO_NAMES,
    mapping: Sequence[SpanRule] = (),
    resolve: TextFetcher | None = None,
) -> list[TracedCase]:
    """Read the runs of one trace, in the order they ended.

    Spans of every convention in `ragaliq.traces.conventions` are read. A run without retrieval,
    such as a single model call, has the reason `not_rag`. Never raises.

    Args:
        spans: All spans of the trace, in any order.
        attribute_names: Attributes in which the application keeps what the conventions lack.
        mapping: Mapping of the application's own spans.
        resolve: Called once for a run with the ids of the documents without text in its spans; may
            block.
    """
    listed = list(spans)
    found: list[TracedCase] = []
    try:
        forest = forest_of(listed, mapping)
    except Exception as error:  # noqa: BLE001 - spans are anybody's
        return [_unreadable([Step(span=listed[0], kind=Kind.NONE)], error)] if listed else []
    for steps in forest.runs:
        fetching: Fetching = "no" if resolve is None else _fetch_texts(steps, resolve)
        try:
            found.append(TraceRun(steps, attribute_names, fetching).case())
        except Exception as error:  # noqa: BLE001 - as above
            found.append(_unreadable(steps, error))
    if forest.knotted:
        knot = Step(span=forest.knotted[0], kind=Kind.NONE)
        found.append(_traced([knot], reason="malformed"))
    return sorted(found, key=lambda case: case.run.ended_at)


def _unreadable(steps: Sequence[Step], error: Exception) -> TracedCase:
    logger.debug("a trace could not be read: %s", type(error).__name__)
    # Values may be nested a thousand deep.
    is_deep = isinstance(error, RecursionError)
    return _traced(steps, reason="malformed" if is_deep else "internal_error")


Fetching = Literal["no", "done", "failed"]
"""Whether texts of a run's documents were fetched."""


def _fetch_texts(steps: Sequence[Step], resolve: TextFetcher) -> Fetching:
    """Fetch the texts of documents that spans identify by id only."""
    listed = [passages for step in steps for passages in (step.found, step.given) if passages]
    ids = dict.fromkeys(p.id for passages in listed for p in passages if p.id and not p.text)
    if not ids:
        return "no"
    try:
        texts = resolve(list(ids))
    except Exception as error:  # noqa: BLE001 - the application's own function
        _LOG_ONCE.failure("resolve could not fetch texts", error, in_application=True)
        return "failed"
    if not isinstance(texts, Mapping) or not all(
        isinstance(text, str | None) for text in texts.values()
    ):
        _LOG_ONCE.message("", "resolve must return a dictionary of document ids to texts")
        return "failed"
    for passages in listed:
        passages[:] = [
            p if p.text else p._replace(text=texts.get(p.id or "") or "") for p in passages
        ]
    for step in steps:
        if step.found:
            step.is_hidden = not all(passage.text for passage in step.found)
    return "done"


_SKEW_NS = 2_000_000
"""Node notes the start of a span in whole milliseconds, and other clocks go apart as far."""


def _adopt_content(root: Step) -> None:
    """Move the content of an empty span's only child to it.

    OpenLLMetry writes two spans for each LangGraph graph, of which the inner one has the content.
    """
    inner = root
    while inner.inputs is None and inner.outputs is None and len(inner.children) == 1:
        inner = inner.children[0]
    if root.kind in RUNS and inner.kind in RUNS:
        root.inputs, root.outputs = inner.inputs, inner.outputs
        root.is_hidden, root.is_cut = inner.is_hidden, root.is_cut or inner.is_cut


_LABEL = re.compile(
    r"^\s*(?:the\s+)?(?:user(?:'s)?\s+)?(?:question|query)\s*:[ \t]*(\S.*)$",
    re.IGNORECASE | re.MULTILINE,
)


def _labelled(prompt: str) -> Found | None:
    """Question in a prompt, on its own line after a label."""
    lines = _LABEL.findall(prompt)
    return Found(lines[-1].strip(), "prompt.question") if lines else None


class TraceRun:
    """Reads one run; its first step may be only an enclosing span, such as a request."""

    def __init__(
        self, steps: Sequence[Step], attribute_names: AttributeNames, fetching: Fetching
    ) -> None:
        self._steps = steps
        self._root = root = steps[0]
        _adopt_content(root)
        self._names = attribute_names
        self._is_loose = root.kind is Kind.NONE
        self._fetching = fetching
        self._method = llama_index.method_of(root.span)
        # OpenLLMetry ends the span of a workflow of LlamaIndex's while its steps go on.
        has_ended = root.outputs is not None or root.kind is Kind.NONE
        goes_on = not has_ended and any(s.span.start_ns > root.span.end_ns for s in steps[1:])
        self._ended = max(s.span.end_ns for s in steps) if goes_on else root.span.end_ns
        says = root.inputs is not None or root.outputs is not None
        self._is_langchain = says and root.span.scope in LANGCHAIN_SCOPES
        self._models: list[Step] = []  # without those below a retriever, which write queries
        self._queries: list[str] = []
        self._sources: list[Step] = []
        beyond = -1
        for step in steps:
            if step.kind is Kind.LLM and step.index > max(beyond, 0):
                self._models.append(step)
            elif step.kind in {Kind.RETRIEVER, Kind.RERANKER}:
                self._sources.append(step)
            if step.kind is Kind.RETRIEVER:
                beyond = max(beyond, step.last)
                asked = READER.question(step.inputs)
                self._queries += [asked.text] if asked else []
        self._found = {p.text for step in self._sources for p in step.passages or () if p.text}
        self._is_unclear = False  # whether another model's reply may be the answer as well

    def case(self) -> TracedCase:
        """Case of the run, or the reason why there is none."""
        if reason := self._failure():
            return _traced(self._steps, reason=reason)
        log = self._log()
        reason = self._missing(log)
        return _traced(
            self._steps, log=None if reason else log, reason=reason, model=self._last_model()
        )

    def _failure(self) -> str:
        """Reason why a run has no answer, as in the handlers; empty if it may have one."""
        root = self._root.span
        if any(_raised(step.span, _INTERRUPTS) for step in self._steps):
            return "interrupted"
        if not root.is_error:
            return ""
        return "cancelled" if _raised(root, _STOPPED) else "errored"

    # What the application says itself

    def _attribute(self, part: str) -> object:
        name = getattr(self._names, part)
        return decoded(self._root.span.attributes.get(name)) if name else None

    def _own(self, part: Literal["question", "answer"]) -> Found | None:
        held = self._attribute(part)
        if held is None:
            return None
        where = f"attribute {getattr(self._names, part)}"
        return READER.question(held, where) if part == "question" else READER.answer(held, where)

    # Question

    def _question(self, final: FinalReply, answer: str) -> Found | None:
        """User's question, from the most reliable place that has it."""
        root = self._root
        if self._method == llama_index.WORKFLOW:
            # Its span does not show what it was started with.
            given = (llama_index.asked_of_agent(step.span, step.inputs) for step in self._steps)
            asked = next((texts for texts in given if any(texts)), ())
            found = question_in(asked, "input.user_msg")
            if found is not None:
                self._root.rules.append("llama_index.agent_input")
            return found or self._asked(final, answer)
        found = (READER.question if self._reads_input else READER.named_question)(root.inputs)
        if found is not None and not self._reads_input and self._holds_documents(found.text):
            found = None  # a prompt around documents is not a question
        if found is not None and self._is_function and not self._is_asked(found.text):
            found = None  # the question of a function is the argument that it asks with
        found = found or READER.echoed_question(root.outputs)
        if found is None:
            variables = (step.inputs for step in self._steps if step.kind is Kind.PROMPT)
            found = next((f for each in variables if (f := READER.question(each, "prompt"))), None)
        is_open = found is None and not self._is_langchain
        return self._asked(final, answer) if is_open else found

    @property
    def _is_function(self) -> bool:
        """True for a function, or a method, that LlamaIndex's decorator traces."""
        methods = {*llama_index.ENGINES, *llama_index.SYNTHESIZE, llama_index.WORKFLOW, ""}
        return self._method not in methods

    def _is_asked(self, text: str) -> bool:
        prompts = (message.text for step in self._models for message in step.messages)
        return text in self._queries or any(text in prompt for prompt in prompts)

    @property
    def _reads_input(self) -> bool:
        """True if the run's inputs are known to contain its question."""
        return self._is_langchain or bool(self._method)

    def _asked(self, final: FinalReply, answer: str) -> Found | None:
        """Question in the models' prompts, unless they wrap documents; else the search query."""
        lone = READER.question(self._root.inputs)
        if self._method:
            held = (llama_index.prompt_arguments(step.inputs) for step in self._steps)
            lone = next((READER.question(each) for each in held if each), None)
        if lone is not None and self._holds_documents(lone.text):
            lone = None
        said = [step.messages for step in self._models if step.reply and step.reply == answer]
        prompts = [*said[-1:], *([final.call.messages] if final.call is not None else [])]
        prompts += [step.messages for step in self._models[:1]]
        queries = [query for query in self._queries if not self._said_by_model(query)]
        found = (self._asked_in(messages, lone, queries) for messages in prompts)
        if question := next((each for each in found if each is not None), None):
            return self._users_own(question)
        if self._queries:
            return self._users_own(Found((queries or self._queries)[0], "retriever.query"))
        asked = (asked_last(messages) for messages in prompts)
        if first := next((text for text in asked if text), ""):
            return _labelled(first)
        return lone if lone is not None and not self._models and " " in lone.text else None

    def _asked_in(
        self, messages: Sequence[Message], lone: Found | None, queries: Sequence[str]
    ) -> Found | None:
        """The question in a prompt: of what was looked for, or given, what stands there; or all."""
        asked = asked_last(messages) or ""
        if lone is not None and lone.text in asked:
            return lone
        rest = without_texts(asked, self._found)
        if query := next((query for query in queries if asks_with(rest, query)), None):
            return Found(query, "retriever.query")
        if asked and not self._holds_documents(asked) and not self._holds_replies(asked):
            return Found(asked.strip(), "prompt.user")
        replies = (step.reply for step in self._models if is_telling(step.reply or ""))
        known = [Passage(text) for text in (*self._found, *replies) if text and text in asked]
        return question_shown(messages, [Search("", passages=known)]) if known else None

    def _holds_documents(self, text: str) -> bool:
        return any(found in text for found in self._found)

    def _holds_replies(self, text: str) -> bool:
        replies = {(step.reply or "").strip() for step in self._models} - {text.strip()}
        replies.update(each for step in self._models for each in step.also)
        return any(is_telling(reply) and reply in text for reply in replies)

    def _said_by_model(self, text: str) -> bool:
        return any(text == (s.reply or "").strip() or text in s.also for s in self._models)

    def _users_own(self, found: Found) -> Found | None:
        """User's words in place of a question that a model had rewritten."""
        for step in sorted(self._models, key=lambda each: each.span.end_ns, reverse=True):
            said = (step.reply or "").strip()
            if said and (said == found.text or found.text in step.also):
                has_instructions = any(message.role == "system" for message in step.messages)
                asked = (step.asked or "").strip()
                own = Found(asked, "prompt.user") if has_instructions and asked else None
                return own or _labelled(asked)
        return found

    # Answer

    def _answer(self, log: RunLog, final: FinalReply) -> Found | None:
        """Output of the run, else a model's reply, unless the run returned something else."""
        if self._method:
            return self._llama_index_answer(final)
        outputs = self._fresh(self._root.outputs)
        found = READER.answer(outputs)
        if found is not None or READER.document_list(outputs):
            return found
        if self._is_langchain:
            return self._langchain_answer(outputs, log)
        if isinstance(outputs, Mapping) and any(
            isinstance(value, str) and log.has_reply(value) for value in outputs.values()
        ):
            return log.answer_among_replies(READER, outputs, question="", last=final.text)
        return self._final_answer(final)

    def _langchain_answer(self, outputs: Any, log: RunLog) -> Found | None:
        """The answer of a chain of LangChain's, decided as its handler does."""
        model = self._last_model()
        if model is None:
            return None
        question = READER.question(self._root.inputs)
        # What it said on the way is none.
        last = "" if model.also and self._called_by(model) else model.reply or ""
        asked = question.text if question is not None else ""
        said = _objects(model)
        if isinstance(outputs, Mapping) and any(each == outputs for each in said):  # structured
            if not last:
                return READER.answer_text(outputs)
            return Found(json.dumps(outputs, ensure_ascii=False), "output")
        found = log.answer_among_replies(READER, outputs, question=asked, last=last)
        return found or next((f for each in said if (f := READER.answer(each, "tool call"))), None)

    def _llama_index_answer(self, final: FinalReply) -> Found | None:
        root = self._root
        arguments = [text for step in self._models for text in step.also]
        by_engines = [text for step in self._steps[1:] for text in _engine_answers(step)]
        by_tools = [text for step in self._steps for text in _tool_texts(step)]
        replies = [step.reply for step in self._models if step.reply]
        said = [each for texts in (replies, by_engines, by_tools) for each in reversed(texts)]
        said += arguments
        payload = llama_index.payload_of(root.span, root.outputs, said)
        if payload is not root.outputs:
            root.rules.append("llama_index.result")
        found = READER.answer(payload) or READER.answer_text(payload)
        is_open = self._is_function and root.outputs is None
        if found is None and (is_open or llama_index.is_streamed(root.span, root.outputs)):
            found = self._final_answer(final)
        if found is not None and llama_index.is_cut(found.text):
            root.is_cut = True
        if found is not None and found.text in by_tools:
            # A tool's own text, handed on as it is, answers nothing that a model said.
            given = (text for text in (*replies[-1:], *arguments) if " " in text.strip())
            found = found if any(text in found.text for text in given) else None
        return found and found._replace(text=models_words(found.text))

    def _final_answer(self, final: FinalReply) -> Found | None:
        """Last reply; it may be in the arguments of a tool that ended the run."""
        self._is_unclear = final.is_doubtful
        if final.call is None or final.call.reply:
            return Found(final.text, "model.reply") if final.text.strip() else None
        return READER.answer_text(decoded(final.text), "tool call")

    def _fresh(self, outputs: Any) -> Any:
        """Output of the run, without answers that its thread kept from earlier turns.

        A resumed run has no question: its answer may be from before the interruption.
        """
        children = self._root.children
        before = children[0].inputs if children and _keeps_turns(self._root) else None
        if not isinstance(before, Mapping) or not isinstance(outputs, Mapping):
            return outputs
        if READER.question(self._root.inputs) is None:
            return outputs
        replies = [step.reply for step in self._models]  # a value may be of any type
        return {
            key: value
            for key, value in outputs.items()
            if key not in ANSWER_KEYS or before.get(key) != value or value in replies
        }

    def _called_by(self, model: Step) -> bool:
        """True if tools ran after a model that called some."""
        ended = model.span.end_ns
        return any(s.kind is Kind.TOOL and s.span.start_ns >= ended for s in self._steps)

    def _last_model(self) -> Step | None:
        """Model with the last reply before the run ended."""
        ended = [step for step in self._models if not self._is_late(step)]
        return max(ended, key=lambda step: step.span.end_ns, default=None)

    def _is_late(self, step: Step) -> bool:
        skew = 0 if self._is_langchain else _SKEW_NS
        return step.span.end_ns > self._ended + skew

    # Context

    def _log(self) -> RunLog:
        """Log of the run, with question and answer, empty if there are none."""
        log = _log_of(self._steps)
        final = log.final_reply()
        answer = self._own("answer") or self._answer(log, final) or Found("", "")
        question = self._own("question") or self._question(final, answer.text) or Found("", "")
        partial = self._partial({*self._queries, question.text})
        if partial and not self._finds(log, question, answer):
            # Texts missing from the understood part of a prompt may be in the rest.
            log = _log_of(self._steps, partial)
        log.id, log.question, log.answer = _id(self._root.span), question, answer
        log.rules = sorted({rule for step in self._steps for rule in _rules_of(step)})
        # Something failed that a retry, a fallback or a model made up for.
        log.had_errors = any(
            step.span.is_error and not _raised(step.span, _STOPPED + _CONTROL_FLOW)
            for step in self._steps[1:]
        )
        log.has_fetched_texts = self._fetching == "done"
        log.is_conversation = (
            log.keeps_turns
            or self._method in llama_index.CHATS
            or any(llama_index.asked_of_agent(s.span, s.inputs) for s in self._steps)
            or any(step.span.attributes.get(name) for step in self._steps for name in SESSIONS)
        )
        if messages := READER.earlier(self._root.inputs):
            log.conversation_given(READER, messages)
        own = self._attribute("contexts")
        if isinstance(own, str):
            own = [own] if own.strip() else []
        log.passages = READER.listed(own)
        return log

    def _partial(self, questions: Collection[str]) -> set[int]:
        """Models whose prompts are only partly recorded.

        Applications that write their own spans often record only the question.
        """
        return {
            step.index
            for step in self._steps
            if step.kind is Kind.LLM
            and (
                step.is_partial
                or (
                    not step.span.scope.startswith(_INSTRUMENTATIONS)
                    and all(message.text.strip() in questions for message in step.messages)
                )
            )
        }

    @staticmethod
    def _finds(log: RunLog, question: Found, answer: Found) -> bool:
        tried = replace(log, question=question, answer=answer, _events=list(log._events))
        return bool(tried.found_context.passages)

    # Reasons

    def _has_searched(self, log: RunLog) -> bool:
        """True if the run searched for anything."""
        # A chain of LangChain's counts as RAG with no context, as its handler says.
        is_chain = self._is_langchain and self._root.children
        synthesizes = any(
            llama_index.method_of(step.span) in llama_index.SYNTHESIZE for step in self._steps
        ) or (self._method in llama_index.QUERIES and self._models)
        says_so = log.has_retrieved or log.passages is not None or log.question.files
        return bool(says_so or is_chain or synthesizes or log.found_context.passages)

    def _missing(self, log: RunLog) -> str:
        """First reason why there is no case; empty if there is one."""
        root, steps = self._root, self._steps
        if log.is_conversation:  # its context is found once its earlier turns are known
            log = replace(log, _events=list(log._events))
        has_searched = self._has_searched(log)  # which the log says until its context is found
        passages = log.found_context.passages
        asked, said = log.question.text, log.answer.text
        texts = (asked, said, *(passage.text for passage in passages))
        limits = frozenset().union(*(step.cut_at for step in steps))
        is_cut = any(step.is_cut for step in (root, *self._sources))
        hides_sources = any(not passage.text for passage in passages) or (
            not passages and any(step.is_hidden for step in self._sources)
        )
        # What plain code searched belongs to a call that shows it, as in the handlers.
        is_apart = self._is_loose and bool(self._found) and not passages
        is_rag = has_searched and not (self._is_loose and not self._models) and not is_apart
        # A model that called a tool was shown what that found, and neither is to be seen.
        hides_calls = not has_searched and any(
            step.is_hidden
            and (
                step.kind is Kind.TOOL
                or "tool" in str(step.span.attributes.get(FINISH_REASONS)).lower()
            )
            for step in steps
        )
        reasons = {
            "truncated": not self._own("answer") and self._is_broken_off(said),
            "texts_not_fetched": self._fetching == "failed" and hides_sources,
            "content_hidden": REDACTED in texts or hides_sources or hides_calls,
            "cancelled": self._method == llama_index.WORKFLOW and root.outputs is None,
            "not_rag": not is_rag,
            "attributes_cut": is_cut or any(len(text) in limits for text in texts),
            "ambiguous": self._is_unclear or (self._is_loose and self._is_ambiguous()),
        }
        reason = next((name for name, applies in reasons.items() if applies), log.lacks)
        if reason in {"no_question", "no_answer"} and any(
            step.is_hidden for step in (root, *self._models)
        ):
            return "content_hidden"
        is_streamed = llama_index.is_streamed(root.span, root.outputs)
        is_streamed = bool(self._method) and is_streamed and reason == "no_answer"
        return "answer_streamed" if is_streamed else reason

    def _is_broken_off(self, answer: str) -> bool:
        # A stream that is broken off ends before its model does. A model that was itself given up,
        # say for a faster one, ends later as well: then the answer is the other's reply.
        if self._method or self._is_loose:
            return False
        last, outputs = self._last_model(), self._root.outputs
        is_open = any(self._is_late(step) for step in self._models)
        # So do its last steps, whose output it is. In JavaScript ends are noted late.
        is_broken_off = self._is_langchain and any(
            step.span.end_ns > self._ended and step.outputs == outputs
            for step in self._root.children
        )
        return is_broken_off or (is_open and answer != (last.reply if last is not None else ""))

    def _is_ambiguous(self) -> bool:
        """True if several questions were answered, each from its own documents."""
        asked: set[str] = set()
        shown: set[str] = set()
        retrievals = 0
        for step in self._steps:
            retrievals += step.kind is Kind.RETRIEVER
            if retrievals and step.kind is Kind.LLM and step.asked:
                asked.add(step.asked)
                holds = any(self._holds_documents(message.text) for message in step.messages)
                if holds and not is_grade(step.reply):
                    shown.add(step.asked)
        return len(asked) > 1 and (not shown or (len(shown) > 1 and retrievals > 1))


def _objects(model: Step) -> list[Mapping[str, Any]]:
    """The objects that a model replied with, as a text or in the arguments of a tool."""
    reply = (model.reply or "").strip().removeprefix("```json").removesuffix("```")
    held = (decoded(text) for text in (*model.also, reply))
    return [each for each in held if isinstance(each, Mapping)]


# --- the run's events -----------------------------------------------------------------------------


# Whose spans hold the whole of a prompt.
_INSTRUMENTATIONS = ("openinference.instrumentation.", "opentelemetry.instrumentation.")


def _keeps_turns(root: Step) -> bool:
    """True if a graph's state may be from earlier turns."""
    metadata = decoded(root.span.attributes.get(METADATA))
    return isinstance(metadata, Mapping) and metadata.get("thread_id") is not None


def _log_of(steps: Sequence[Step], partial: Collection[int] = ()) -> RunLog:
    """Convert a run's steps to the events that a handler would have recorded.

    Args:
        steps: The run's own first.
        partial: The models whose prompts are skipped.
    """
    log = RunLog()
    log.keeps_turns = _keeps_turns(steps[0])
    failed = set(_failures(steps))
    prompted = llama_index.prompted(step.span for step in steps)
    answered: list[str] = []  # by engines inside it
    found: list[Passage] = []
    sources: dict[int, Any] = {}  # named by the innermost response of LlamaIndex around a step
    for step in steps:
        if step.found is not None:
            step.found = llama_index.as_prompted(step.found, prompted)
    for step, parent, is_end in walk(steps):
        if is_end and parent is None:
            _run_ended(log, steps)
        elif is_end and parent is not None:
            _ended(log, step, failed, answered)
            answered += _engine_answers(step)
            if llama_index.is_reranker(step.span):
                kept = llama_index.scored(found, step.outputs)
                log.reranked(step.index, kept, found)
                found = kept
            elif step.passages is not None:
                found = [*step.passages, *found]
        else:
            around = None if parent is None else sources[parent.index]
            sources[step.index] = llama_index.sources_in(step.outputs) or around
            log.began(step.index, None if parent is None else parent.index)
            prompt = () if step.index in partial else _prompt_of(step, parent)
            given = None
            if chunks := llama_index.chunks_of(step.span, step.inputs):
                passages = llama_index.owned(chunks, found, sources[step.index])
                given = without_answers(passages, answered)
            _began(log, step, prompt, failed, given)
    return log


def _prompt_of(step: Step, parent: Step | None) -> Sequence[Message]:
    """Prompt of a model; of a completion, the messages that the model around it was given."""
    is_completion = step.kind is Kind.LLM and len(step.messages) == 1
    if is_completion and parent is not None and parent.kind is Kind.LLM and parent.messages:
        return parent.messages
    return step.messages


def _failures(steps: Sequence[Step]) -> Iterator[str]:
    """Texts for tools that failed or were not called, which prompts do not mark."""
    for step in steps:
        if step.kind is Kind.TOOL and step.span.is_error:  # the model sees what it raised
            raised = (event.attributes.get("exception.message") for event in step.span.events)
            yield from (text for text in raised if isinstance(text, str))
        yield from (m.text for m in step.messages if llama_index.is_of_no_tool(m))
        said = [step.outputs] if step.kind is Kind.TOOL else READER.messages(step.outputs) or ()
        for each in said:
            message = READER.message(each)
            if message is not None and message.role == "system" and message.text.strip():
                yield message.text


def _began(
    log: RunLog,
    step: Step,
    prompt: Sequence[Message],
    failed: Collection[str],
    given: Sequence[Passage] | None,
) -> None:
    if step.kind is Kind.RETRIEVER:
        log.searched(step.index, step.inputs if isinstance(step.inputs, str) else "")
    elif step.kind is Kind.LLM:
        messages = [
            m._replace(role="system") if m.role == "tool" and m.text in failed else m
            for m in prompt
        ]
        log.model_called(step.index, messages)
        for text in READER.context_texts(step.variables):
            log.text_passed(step.index, text, "context")
    elif given is not None:
        log.answering(step.index, given)
    elif step.kind in {*RUNS, Kind.PROMPT} or step.index == 0:
        by_key = READER.by_key(step.inputs)
        contexts = READER.context(step.inputs)
        if contexts and not any(by_key.values()):
            by_key = {"context": contexts}
        log.step_given(step.index, by_key)
        for text in READER.context_texts(step.inputs):
            log.text_passed(step.index, text, "context")


def _rules_of(step: Step) -> list[str]:
    """The rules for one product that were applied to a step."""
    is_own = any(m.role == "system" and is_langgraphs(m.text) for m in step.messages)
    return [*step.rules, "langgraph.messages"] if is_own else step.rules


def _engine_answers(step: Step) -> list[str]:
    """Answers of LlamaIndex engines in a step."""
    is_engine = llama_index.method_of(step.span) in llama_index.ENGINES
    found = READER.answer(step.outputs) if is_engine and step.kind is not Kind.LLM else None
    return [found.text] if found is not None else []


def _tool_texts(step: Step) -> list[str]:
    """Result of a tool."""
    message = READER.message(step.outputs) if step.kind is Kind.TOOL else None
    return ["".join(message.texts)] if message is not None else []


def _ended(log: RunLog, step: Step, no_evidence: Collection[str], answered: Sequence[str]) -> None:
    key: Hashable = step.index
    outputs = step.outputs
    if step.span.is_error:
        return
    if step.kind is Kind.RETRIEVER:
        # What a span does not show, a tool around it may.
        if step.passages is not None:
            # LlamaIndex makes nodes of what engines had answered.
            log.retrieved(key, without_answers(step.passages, answered))
    elif step.kind is Kind.RERANKER:
        if step.passages is not None:
            log.reranked(key, step.passages, step.given)
    elif step.kind is Kind.LLM:
        tools = [
            passage.text for tool in _tools_in(step) for passage in READER.tool_result(tool.outputs)
        ]
        if tools and step.messages:
            # Its SDK called them itself, and the prompt was recorded before: what they said came
            # to a second one, which gave the reply.
            log.replied(key, "")
            key = f"{key}.2"
            log.began(key, step.index)
            log.model_called(key, [*step.messages, Message("tool", tuple(tools))])
        if step.reply is not None:
            log.replied(key, step.reply, step.also)
        log.provided(key, step.provided)
    elif step.kind is Kind.TOOL:
        message = READER.message(outputs)
        if message is None or message.role != "system":
            log.tool_returned(
                key, [p for p in READER.tool_result(outputs) if p.text not in no_evidence]
            )
    elif step.kind in RUNS:
        _returned(log, step)
        log.provided(
            key, [Passage(text) for text in llama_index.cited_texts(step.span, step.inputs)]
        )


def _tools_in(step: Step) -> Iterator[Step]:
    """Tools that ran inside a model's call and are not in its prompt."""
    held = {text for message in step.messages for text in message.texts}
    for each in step.children:
        if each.kind is Kind.TOOL and not each.span.is_error:
            texts = {passage.text for passage in READER.tool_result(each.outputs)}
            if texts and texts.isdisjoint(held):
                yield each


def _returned(log: RunLog, step: Step) -> None:
    key, outputs = step.index, step.outputs
    if isinstance(outputs, Mapping):
        log.step_returned(key, by_key=READER.by_key(outputs))
        for name, text in outputs.items():
            if isinstance(text, str):
                log.text_passed(key, text, name)
    elif isinstance(outputs, list):
        log.step_returned(key, READER.document_list(outputs))
    elif isinstance(outputs, str):
        log.text_passed(key, outputs)


def _run_ended(log: RunLog, steps: Sequence[Step]) -> None:
    outputs = steps[0].outputs
    named = READER.context(outputs)
    if named and all(passage == Passage(passage.text) for passage in named):
        # Texts next to the answer may be names of files, if the retrieved texts are known.
        sources = (s for s in steps[1:] if s.kind in {Kind.RETRIEVER, Kind.RERANKER})
        found = [p.text for step in sources for p in step.passages or () if p.text]
        kept = [each for each in named if any(each.text in text for text in found)]
        named = kept or None if found else named
    if named is not None:
        log.cited_sources(named)


# --- how a run ended ------------------------------------------------------------------------------

_INTERRUPTS = ("GraphInterrupt", "NodeInterrupt")
_CONTROL_FLOW = (*_INTERRUPTS, "GraphBubbleUp", "ParentCommand")
_STOPPED = ("CancelledError", "GeneratorExit")


def _raised(span: TraceSpan, kinds: Sequence[str]) -> bool:
    raised = (event.attributes.get("exception.type") for event in span.events)
    return any(isinstance(kind, str) and kind.rpartition(".")[2] in kinds for kind in raised)


# --- where a case came from -----------------------------------------------------------------------

_CONVENTIONS = ("openinference", "traceloop", "genai")


def _traced(
    steps: Sequence[Step],
    *,
    log: RunLog | None = None,
    reason: str = "",
    model: Step | None = None,
) -> TracedCase:
    root = steps[0]
    span = root.span
    session = next((held for name in SESSIONS if (held := span.attributes.get(name))), None)
    source = root.convention if root.convention in _CONVENTIONS else "ambient"
    release = span.resource.get("service.version")
    run = RunInfo(
        run_id=_id(span),
        target=SpanTarget(trace_id=span.trace_id, span_id=span.span_id, source=source),
        pipeline=pipeline_of(span.name),
        framework=FRAMEWORKS.get(span.scope, ""),
        session_id=str(session) if isinstance(session, str | int) else None,
        response_id=(model.span.text(RESPONSE_ID) or None) if model is not None else None,
        model=_named_model(model.span) if model is not None else None,
        # A time beyond 64 bits must not cost the run.
        ended_at=span.end_ns / 1e9 if abs(span.end_ns) < 1 << 64 else 0.0,
        release=release if isinstance(release, str) else "",
    )
    return TracedCase(run=run, log=log, reason=reason, steps=steps)


def _named_model(span: TraceSpan) -> str | None:
    """The name of a model, as it answered or as it was asked."""
    return next((name for each in MODELS if (name := span.text(each))), None)


_UUID = re.compile(r"[_\-.:/ ]?[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)


def pipeline_of(name: str) -> str:
    """Name of a run without parts that change: `Crew_<uuid>.kickoff` is `Crew.kickoff`.

    Names become attributes of metrics, where each new one creates a time series.
    """
    return _UUID.sub("", name) or name


def _id(span: TraceSpan) -> str:
    return f"{span.trace_id}-{span.span_id}"


def case_of(traced: TracedCase) -> RAGTestCase | None:
    """Case of a traced run, if it has one that can be evaluated.

    Raises:
        pydantic.ValidationError: A field is of the wrong type.
    """
    if traced.log is None:
        return None
    return traced.log.to_case().model_copy(update={"run": traced.run})
