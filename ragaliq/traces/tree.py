"""The runs in a trace: which spans are a run's first, and what is below them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ragaliq.traces.conventions import LLAMA_INDEX_SCOPE, Kind, Step, step_of
from ragaliq.traces.span import TraceSpan

__all__ = ["ENGINES", "WORKFLOW", "Forest", "forest_of", "is_plumbing", "method_of", "walk"]

_LOOSE = {Kind.RETRIEVER, Kind.RERANKER, Kind.LLM, Kind.TOOL, Kind.PROMPT}
_SOURCES = {Kind.RETRIEVER, Kind.RERANKER, Kind.TOOL}


# LlamaIndex's spans are one a method, named after it; these are of whole runs.
ENGINES = frozenset({"query", "aquery", "chat", "achat", "stream_chat", "astream_chat"})
WORKFLOW = "run"
_EVALUATE = frozenset({"evaluate", "aevaluate", "evaluate_response", "aevaluate_response"})
# What the classes of LangChain's own evaluators end in; their answers are grades.
_GRADING = "EvalChain"


def method_of(step: Step) -> str | None:
    """The method of LlamaIndex's that a span is of; None for models, and for anybody else's."""
    is_part = step.span.scope == LLAMA_INDEX_SCOPE and step.kind is not Kind.LLM
    return step.span.name.rpartition(".")[2] if is_part else None


def is_plumbing(step: Step) -> bool:
    """Whether a span of LlamaIndex begins no run of its own, though those below it may."""
    method = method_of(step)
    return method is not None and method not in ENGINES and method != WORKFLOW


def is_skipped(step: Step) -> bool:
    """Whether a span with all below it is somebody's evaluation."""
    if step.kind is Kind.EVALUATOR or method_of(step) in _EVALUATE:
        return True
    return step.kind is Kind.CHAIN and step.span.name.endswith(_GRADING)


def walk(steps: Sequence[Step]) -> Iterator[tuple[Step, Step | None, bool]]:
    """Every step with the one around it, once as it begins and once as it ends (True)."""
    around: list[Step] = []
    for step in steps:
        while around and step.index > around[-1].last:
            ended = around.pop()
            yield ended, around[-1] if around else None, True
        yield step, around[-1] if around else None, False
        around.append(step)
    while around:
        ended = around.pop()
        yield ended, around[-1] if around else None, True


@dataclass(frozen=True, slots=True)
class Forest:
    """What a trace holds.

    Attributes:
        runs: The steps of each run, its first before all others.
        loose: Retrievers, models and tools that are in no chain: those of one request together,
            below its span, or below the first of them where that span is missing.
        knotted: Spans that are each other's parents.
    """

    runs: list[list[Step]]
    loose: list[list[Step]]
    knotted: list[TraceSpan]


@dataclass(slots=True, eq=False)
class _Place:
    """Somewhere loose steps are: below one span that is no step itself."""

    step: Step | None
    around: _Place | None
    loose: deque[Step] = field(default_factory=deque)
    kinds: set[Kind] = field(default_factory=set)

    def take(self, step: Step) -> None:
        """Add a step that is here."""
        self.loose.append(step)
        self.kinds.add(step.kind)

    def take_all(self, inner: _Place) -> None:
        """Take over what is at a place inside this one; the fewer steps are the ones moved."""
        if len(inner.loose) > len(self.loose):
            inner.loose.extendleft(reversed(self.loose))
            self.loose = inner.loose
        else:
            self.loose += inner.loose
        self.kinds |= inner.kinds


def forest_of(spans: Iterable[TraceSpan]) -> Forest:
    """Find the runs of a trace. Its spans may come in any order, twice, or not at all."""
    steps = {span.span_id: step_of(span) for span in _each_once(spans)}
    tops: list[Step] = []
    for step in steps.values():
        parent = steps.get(step.span.parent_id or "")
        if parent is None:
            tops.append(step)
        else:
            parent.children.append(step)
    for step in steps.values():
        step.children.sort(key=_by_start)
    tops.sort(key=_by_start)
    seen: set[str] = set()
    runs, loose = _split(tops, seen)
    knotted = [step.span for key, step in steps.items() if key not in seen]
    return Forest(runs, loose, knotted)


def _each_once(spans: Iterable[TraceSpan]) -> Iterable[TraceSpan]:
    """A span that was exported twice counts once: the one that ended later, or says more."""
    kept: dict[str, TraceSpan] = {}
    for span in spans:
        had = kept.get(span.span_id)
        if had is None or _weight(span) > _weight(had):
            kept[span.span_id] = span
    return kept.values()


def _weight(span: TraceSpan) -> tuple[int, int]:
    return span.end_ns, len(span.attributes)


def _by_start(step: Step) -> int:
    return step.span.start_ns


def _split(tops: Sequence[Step], seen: set[str]) -> tuple[list[list[Step]], list[list[Step]]]:
    """The runs below these spans and the loose steps; notes which spans were reached."""
    runs: list[list[Step]] = []
    missing: dict[str, _Place] = {}
    places: list[_Place] = []
    todo: list[tuple[Step, _Place]] = []
    for top in reversed(tops):
        key = top.span.parent_id or top.span.span_id
        if key not in missing:
            missing[key] = _Place(None, None)
            places.append(missing[key])
        todo.append((top, missing[key]))
    while todo:
        step, place = todo.pop()
        if is_skipped(step):
            _reach(step, seen)
        elif step.kind in {Kind.CHAIN, Kind.AGENT} and not is_plumbing(step):
            run, strays = _in_order(step)
            runs.append(run)
            seen |= {each.span.span_id for each in run}
            todo += [(stray, place) for stray in reversed(strays)]
        elif step.kind in _LOOSE:
            _reach(step, seen)
            place.take(step)
        else:
            seen.add(step.span.span_id)
            if step.kind is Kind.NONE:
                place = _Place(step, place)
                places.append(place)
            todo += [(child, place) for child in reversed(step.children)]
    return runs, _gathered(places)


def _gathered(places: Sequence[_Place]) -> list[list[Step]]:
    """Loose steps, each group at the lowest place that has both a source and a model."""
    groups: list[list[Step]] = []
    for place in reversed(places):  # the inner ones first
        kinds = place.kinds
        if place.around is not None and not (kinds & _SOURCES and Kind.LLM in kinds):
            place.around.take_all(place)
        elif kinds & (_SOURCES | {Kind.LLM}):
            inside = sorted(place.loose, key=_by_start)
            span = _span_around(place, inside)
            groups.append(_in_order(Step(span=span, kind=Kind.NONE, children=inside))[0])
    return groups[::-1]


def _span_around(place: _Place, inside: Sequence[Step]) -> TraceSpan:
    """The span of a place; where that is missing, the first there, for as long as they took."""
    if place.step is not None:
        return place.step.span
    return replace(inside[0].span, end_ns=max(step.span.end_ns for step in inside))


def _in_order(top: Step) -> tuple[list[Step], list[Step]]:
    """A step with what is part of it, each in the place that its `index` says; and what is not."""
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
            (strays if is_skipped(child) or _is_stray(child, top) else parts).append(child)
        step.children = parts
        todo.append((step, True))
        todo += [(child, False) for child in reversed(parts)]
    return steps, strays


def _is_stray(step: Step, top: Step) -> bool:
    """Whether a step is below a run and no part of it, though it is no evaluation.

    Instrumentations leave their context behind, OpenLLMetry's after a batch: the requests that
    come next are then written below one that is over.
    """
    if step.is_first and top.is_first:
        return True
    span, run = step.span, top.span
    is_over = 0 < run.end_ns < span.start_ns and top.outputs is not None
    # Elsewhere clocks may differ, and LlamaIndex's answers are written after its span has ended.
    return is_over and span.resource == run.resource and run.scope != LLAMA_INDEX_SCOPE


def _reach(top: Step, seen: set[str]) -> None:
    todo = [top]
    while todo:
        step = todo.pop()
        seen.add(step.span.span_id)
        todo += step.children
