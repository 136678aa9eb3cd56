"""From the spans of a trace to the cases of the runs it shows."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Literal

from ragaliq.core.draft import CaseDraft
from ragaliq.core.run import SpanTarget
from ragaliq.traces import llama_index, names
from ragaliq.traces.chain import ChainRun, Found
from ragaliq.traces.endings import failure_of, had_errors
from ragaliq.traces.llama_methods import WORKFLOW, is_streamed, method_of
from ragaliq.traces.loose import found_loose, is_ambiguous
from ragaliq.traces.names import AttributeNames
from ragaliq.traces.said import said_by
from ragaliq.traces.span import TraceSpan
from ragaliq.traces.step import Kind, Step
from ragaliq.traces.traced_case import TracedCase
from ragaliq.traces.tree import forest_of

__all__ = ["cases_of_trace"]

logger = logging.getLogger(__name__)

_NO_NAMES = AttributeNames()


def cases_of_trace(
    spans: Iterable[TraceSpan], *, attribute_names: AttributeNames = _NO_NAMES
) -> list[TracedCase]:
    """The runs of one trace, in the order they ended.

    Reads spans by OpenInference's and OpenTelemetry's conventions for generative AI, and
    OpenLLMetry's. What is no RAG run at all, say a lone call of a model, comes out with the reason
    `not_rag`. Never raises, whatever the spans hold.

    Args:
        spans: All spans of the trace, in any order.
        attribute_names: Where the application itself keeps what the conventions do not say.
    """
    listed = list(spans)
    try:
        forest = forest_of(listed)
    except Exception as error:  # noqa: BLE001 - spans are anybody's
        logger.debug("a trace could not be read: %s", type(error).__name__)
        reason = "malformed" if isinstance(error, RecursionError) else "internal_error"
        return [_traced(Step(span=listed[0], kind=Kind.NONE), reason=reason)]
    found = [_case(steps, attribute_names, is_loose=False) for steps in forest.runs]
    found += [_case(steps, attribute_names, is_loose=True) for steps in forest.loose]
    if forest.knotted:
        found.append(_traced(Step(span=forest.knotted[0], kind=Kind.NONE), reason="malformed"))
    return sorted(found, key=lambda case: case.ended_at)


def _case(steps: Sequence[Step], attribute_names: AttributeNames, *, is_loose: bool) -> TracedCase:
    try:
        return _read(steps, attribute_names, is_loose=is_loose)
    except RecursionError:  # values nested a thousand deep
        return _traced(steps[0], reason="malformed")
    except Exception as error:  # noqa: BLE001 - spans are anybody's
        logger.debug("a trace could not be read: %s", type(error).__name__)
        return _traced(steps[0], reason="internal_error")


def _read(steps: Sequence[Step], attribute_names: AttributeNames, *, is_loose: bool) -> TracedCase:
    root = steps[0]
    if reason := failure_of(steps):
        return _traced(root, reason=reason)
    run = ChainRun(steps)
    found = said_by(root.span, attribute_names, _found(steps, run, is_loose=is_loose))
    reason = _missing(steps, found, run, is_loose=is_loose)
    last = run.last_model()
    draft = CaseDraft(
        id=_id(root.span),
        query=found.question,
        passages=found.passages or (),
        response=found.answer,
        had_errors=had_errors(steps),
    )
    return _traced(root, draft=None if reason else draft, reason=reason, model=last)


def _found(steps: Sequence[Step], run: ChainRun, *, is_loose: bool) -> Found:
    root = steps[0]
    if root.span.scope == names.LLAMA_INDEX_SCOPE:
        return llama_index.found_in(steps)
    if is_loose or (root.inputs is None and root.outputs is None):
        return found_loose(steps, run)
    found = run.found()
    if _framework(root.span) == "langchain" and found.passages is None and root.children:
        return found._replace(passages=[])  # as the handler does
    return found


def _missing(steps: Sequence[Step], found: Found, run: ChainRun, *, is_loose: bool) -> str:
    """The first reason why there is no case; empty if there is one."""
    root = steps[0]
    sources = _of(steps, Kind.RETRIEVER, Kind.RERANKER)
    texts = (found.question, found.answer, *(p.text for p in found.passages or ()))
    limits = frozenset().union(*(step.cut_at for step in steps))
    is_cut = any(step.is_cut for step in (root, *sources)) or any(len(t) in limits for t in texts)
    hides_sources = not found.passages and any(step.is_hidden for step in sources)
    reasons = {
        "truncated": found.is_cut,
        "content_hidden": names.REDACTED in texts or hides_sources,
        "cancelled": method_of(root) == WORKFLOW and root.outputs is None,
        "not_rag": found.passages is None or (is_loose and run.last_model() is None),
        "attributes_cut": is_cut,
        "ambiguous": is_loose and is_ambiguous(steps),
        "no_question": not found.question.strip(),
        "no_answer": not found.answer.strip(),
    }
    reason = next((name for name, applies in reasons.items() if applies), "")
    if reason in {"no_question", "no_answer"} and root.is_hidden:
        return "content_hidden"
    if reason == "no_answer" and is_streamed(root):
        return "answer_streamed"
    return reason


def _of(steps: Sequence[Step], *kinds: Kind) -> list[Step]:
    return [step for step in steps if step.kind in kinds]


def _traced(
    root: Step, *, draft: CaseDraft | None = None, reason: str = "", model: Step | None = None
) -> TracedCase:
    span = root.span
    session = span.attributes.get(names.SESSION) or span.attributes.get(names.GENAI_CONVERSATION)
    response_id = model.span.text(names.GENAI_RESPONSE_ID) if model is not None else ""
    return TracedCase(
        id=_id(span),
        target=SpanTarget(trace_id=span.trace_id, span_id=span.span_id, source=_source(root)),
        draft=draft,
        reason=reason,
        pipeline=span.name,
        framework=_framework(span),
        session_id=str(session) if isinstance(session, str | int) else None,
        response_id=response_id or None,
        ended_at=_seconds(span.end_ns),
    )


def _seconds(nanoseconds: int) -> float:
    try:
        return nanoseconds / 1e9
    except OverflowError:  # no time, and not worth the run
        return 0.0


def _id(span: TraceSpan) -> str:
    return f"{span.trace_id}-{span.span_id}"


def _source(root: Step) -> str:
    for name, source in (
        (names.KIND, "openinference"),
        (names.TRACELOOP_KIND, "traceloop"),
        (names.OPERATION, "genai"),
    ):
        if name in root.span.attributes:
            return source
    return "ambient"


def _framework(span: TraceSpan) -> Literal["", "langchain", "llama_index"]:
    if span.scope in names.LANGCHAIN_SCOPES:
        return "langchain"
    return "llama_index" if span.scope == names.LLAMA_INDEX_SCOPE else ""
