"""Runs in a trace: their first spans, and the spans below them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ragaliq.capture.texts import Message
from ragaliq.traces import llama_index
from ragaliq.traces.conventions import RUNS, Kind, Step, step_of
from ragaliq.traces.mapping import SpanRule
from ragaliq.traces.span import SpanEvent, TraceSpan

_SOURCES = {Kind.RETRIEVER, Kind.RERANKER, Kind.TOOL}
_LOOSE = {*_SOURCES, Kind.LLM, Kind.PROMPT}

# What the classes of LangChain's own evaluators end in; their answers are grades.
_GRADING = "EvalChain"
# Beginning of the name of LangChain's `chain.map()`, whose items are runs.
_EACH = "RunnableEach"


def is_plumbing(step: Step) -> bool:
    """True if a span of a framework's is not a run itself; spans below it may be."""
    if step.span.name.startswith(_EACH) and isinstance(step.inputs, list):
        return True
    method = llama_index.method_of(step.span)
    runs = {*llama_index.ENGINES, *llama_index.SYNTHESIZE, llama_index.WORKFLOW}
    is_run = method in runs or llama_index.is_function(step.span)
    return bool(method) and step.kind is not Kind.LLM and not is_run


def _is_whole(step: Step, run: Sequence[Step]) -> bool:
    """True if a run needs no other search."""
    method = llama_index.method_of(step.span)
    is_engine = method in llama_index.ENGINES or method == llama_index.WORKFLOW
    return is_engine or any(each.kind in _SOURCES for each in run)


def _first_prompt(run: Sequence[Step]) -> Sequence[Message]:
    return next((step.messages for step in run if step.messages), ())


def _is_evaluation(step: Step) -> bool:
    """True if a span, with all below it, is an evaluation."""
    is_grading = step.kind is Kind.CHAIN and step.span.name.endswith(_GRADING)
    method = llama_index.method_of(step.span)
    return is_grading or step.kind is Kind.EVALUATOR or method in llama_index.EVALUATE


def walk(steps: Sequence[Step]) -> Iterator[tuple[Step, Step | None, bool]]:
    """Visit every step with its parent, at its begin and at its end (True)."""
    around: list[Step] = []
    for step in (*steps, None):
        while around and (step is None or step.index > around[-1].last):
            ended = around.pop()
            yield ended, around[-1] if around else None, True
        if step is not None:
            yield step, around[-1] if around else None, False
            around.append(step)


class Forest(NamedTuple):
    """Runs of a trace.

    Attributes:
        runs: The steps of each run, the first one first. Retrievers, models and tools outside a
            chain are one run in each request, below its span, or below the first of them if that is
            missing; the first step then has the kind `NONE`. Chains of the request without a search
            belong to that run; if there is one such chain and no other model, it is the run, and
            includes the searches.
        knotted: Spans in a cycle of parents.
    """

    runs: list[list[Step]]
    knotted: list[TraceSpan]


@dataclass(slots=True, eq=False)
class _Place:
    """Place of loose steps: below a span that is not a step, or below a missing one.

    Attributes:
        step: The span.
        around: The enclosing place.
        loose: Steps outside chains.
        kinds: Their kinds.
        chains: First steps of chains without a search.
    """

    step: Step | None = None
    around: _Place | None = None
    loose: list[Step] = field(default_factory=list)
    kinds: set[Kind] = field(default_factory=set)
    chains: list[Step] = field(default_factory=list)


def _trees(
    spans: Iterable[TraceSpan], mapping: Sequence[SpanRule]
) -> tuple[list[Step], list[TraceSpan]]:
    """Steps without a parent, each with those inside it; and spans in a cycle."""
    kept: dict[str, TraceSpan] = {}
    logged: dict[str, list[SpanEvent]] = {}
    for span in spans:
        if span.is_log:
            logged.setdefault(span.span_id, []).extend(span.events)
            continue
        # One that was exported twice counts once: the one that ended later, or says more.
        had = kept.get(span.span_id)
        if had is None or (span.end_ns, len(span.attributes)) > (had.end_ns, len(had.attributes)):
            kept[span.span_id] = span
    for key in logged.keys() & kept.keys():
        kept[key] = kept[key]._replace(events=(*kept[key].events, *logged[key]))
    steps = {key: step_of(span, mapping) for key, span in kept.items()}
    tops: list[Step] = []
    for number, step in enumerate(sorted(steps.values(), key=lambda each: each.span.start_ns)):
        step.index = number  # until the step has a place in a run
        parent = steps.get(step.span.parent_id or "")
        (tops if parent is None else parent.children).append(step)
    knotted, below = set(steps), list(tops)
    while below:
        step = below.pop()
        knotted.discard(step.span.span_id)
        below += step.children
    return tops, [kept[key] for key in kept if key in knotted]


def forest_of(spans: Iterable[TraceSpan], mapping: Sequence[SpanRule] = ()) -> Forest:
    """Find the runs of a trace. Its spans may come in any order, twice, or not at all."""
    tops, knotted = _trees(spans, mapping)
    runs: list[list[Step]] = []
    missing: dict[str, _Place] = {}
    places: list[_Place] = []
    todo: list[tuple[Step, _Place]] = []
    for top in reversed(tops):
        key = top.span.parent_id or top.span.span_id
        if key not in missing:
            missing[key] = _Place()
            places.append(missing[key])
        todo.append((top, missing[key]))
    while todo:
        step, place = todo.pop()
        if _is_evaluation(step) or step.kind is Kind.EMBEDDING:
            continue
        if step.kind in RUNS and not is_plumbing(step):
            number = step.index
            run, strays = _in_order(step)
            todo += [(stray, place) for stray in reversed(strays)]
            if llama_index.is_own_work(step.span, _first_prompt(run)):
                continue
            if _is_whole(step, run):
                runs.append(run)
            else:
                step.index = number  # until it has a place in a run, again
                place.chains.append(step)
        elif step.kind in _LOOSE:
            place.loose.append(step)
            place.kinds.add(step.kind)
        else:
            if step.kind is Kind.NONE or is_plumbing(step):
                place = _Place(step, place)
                places.append(place)
            todo += [(child, place) for child in reversed(step.children)]
    return Forest([*runs, *_gathered(places)], knotted)


def _gathered(places: Sequence[_Place]) -> list[list[Step]]:
    """Group loose steps at the lowest place with both a source and a model."""
    groups: list[list[Step]] = []
    for place in reversed(places):  # the inner ones first
        around, kinds = place.around, place.kinds
        is_whole = kinds & _SOURCES and (Kind.LLM in kinds or place.chains)
        if around is not None and not is_whole:
            # The fewer steps are the ones moved: there may be many places, one inside the other.
            around.loose = _together(around.loose, place.loose)
            around.chains = _together(around.chains, place.chains)
            around.kinds |= kinds
            continue
        inside, chains = place.loose, place.chains
        if is_whole:
            found = min(step.span.start_ns for step in inside if step.kind in _SOURCES)
            joined = [chain for chain in chains if chain.span.end_ns >= found]
            chains = [chain for chain in chains if chain.span.end_ns < found]
            if len(joined) == 1 and Kind.LLM not in kinds:
                joined[0].children = sorted([*inside, *joined[0].children], key=_number)
                chains, inside = chains + joined, []
            else:
                inside = inside + joined
        groups += [_in_order(chain)[0] for chain in sorted(chains, key=_number, reverse=True)]
        if inside and (kinds & (_SOURCES | {Kind.LLM})):
            inside = sorted(inside, key=_number)
            if place.step is not None:
                top = replace(place.step, children=inside)
            else:  # missing: the first there, for as long as they took
                span = inside[0].span._replace(end_ns=max(step.span.end_ns for step in inside))
                top = Step(span=span, kind=Kind.NONE, children=inside)
            groups.append(_in_order(top)[0])
    return groups[::-1]


def _number(step: Step) -> int:
    return step.index


def _together(first: list[Step], second: list[Step]) -> list[Step]:
    more, fewer = sorted((first, second), key=len, reverse=True)
    more += fewer
    return more


def _in_order(top: Step) -> tuple[list[Step], list[Step]]:
    """Steps of a run in depth-first order; and steps below it that are not part of it."""
    steps: list[Step] = []
    strays: list[Step] = []
    todo: list[tuple[Step, bool]] = [(top, False)]
    while todo:
        step, is_end = todo.pop()
        if is_end:
            step.last = len(steps) - 1
            continue
        step.index = len(steps)
        steps.append(step)
        parts: list[Step] = []
        for child in step.children:
            is_part = not _is_evaluation(child) and not _is_stray(child, top)
            (parts if is_part else strays).append(child)
        step.children = parts
        todo.append((step, True))
        todo += [(child, False) for child in reversed(parts)]
    return steps, strays


def _is_stray(step: Step, top: Step) -> bool:
    """True if a step is below a run but not part of it, without being an evaluation.

    Instrumentations leak their context, OpenLLMetry's after a batch: later requests are then
    recorded below a finished one.
    """
    if step.is_first and top.is_first:
        return True
    span, run = step.span, top.span
    is_over = 0 < run.end_ns < span.start_ns and top.outputs is not None
    # Elsewhere clocks may differ, and LlamaIndex's answers are written after its span has ended.
    return is_over and span.resource == run.resource and run.scope != llama_index.SCOPE
