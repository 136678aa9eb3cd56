"""Telling spans of an application's language model work from all others, at start and at end.

Several instrumentations say what a span is only when it ends: OpenInference's for LangChain and
LlamaIndex, and OpenLLMetry's, set every attribute last. At the start their names have to do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum

from opentelemetry.sdk.trace import ReadableSpan

from ragaliq.live.job import Framework
from ragaliq.traces import conventions as names
from ragaliq.traces.conventions import OPERATIONS, Kind

__all__ = ["MARKS", "Part", "Recognition", "framework_of", "part_of", "scope_of"]

MARKS = frozenset({names.KIND, names.OPERATION, names.TRACELOOP_KIND, names.TRACELOOP_INPUT})
"""Attributes that only spans of language model work have."""

_SCOPES = (
    "openinference.",
    "opentelemetry.instrumentation.genai.",
    "opentelemetry.instrumentation.langchain",
    "opentelemetry.instrumentation.llamaindex",
    "traceloop.",
)
_CHAINS = {Kind.CHAIN.value, Kind.AGENT.value, "UNKNOWN"}
_STEPS = {kind.value for kind in (Kind.RETRIEVER, Kind.RERANKER, Kind.LLM, Kind.TOOL, Kind.PROMPT)}
_TRACELOOP_CHAINS = {"workflow", "task", "agent"}
_MOST_NAMES = 1000


class Part(Enum):
    """What a span may be where no span of a run is above it."""

    RUN = "a run's first"
    STEP = "a step that the application takes itself, without a chain"
    UNKNOWN = "one of these; its end will tell"
    EVALUATION = "somebody's evaluation, whose models are not the application's"
    NONE = "nothing that concerns a run"


class Recognition:
    """Knows spans by their instrumentation, their first attributes and their names.

    Args:
        roots: Names of spans that are a run's first, whatever else is known of them.
    """

    def __init__(self, roots: Collection[str]) -> None:
        self.roots = frozenset(roots)
        self._scopes: dict[str, bool] = {}
        # Spans that said only at their end what they are, known from the second one on.
        self._learned: set[tuple[str, str]] = set()

    def at_start(self, span: ReadableSpan) -> Part:
        """What a span that has just started may be."""
        if span.name in self.roots:
            return Part.RUN
        scope = scope_of(span)
        if scope == names.OWN_SCOPE:
            return Part.EVALUATION
        attributes = span.attributes
        if attributes and not MARKS.isdisjoint(attributes):
            return part_of(attributes)
        is_known = self._is_known(scope) or (scope, span.name) in self._learned
        return Part.UNKNOWN if is_known else Part.NONE

    def learn(self, span: ReadableSpan) -> None:
        """Look at a span that has ended and was not recognised."""
        attributes = span.attributes
        if not attributes or MARKS.isdisjoint(attributes):
            return
        if part_of(attributes) in {Part.RUN, Part.STEP} and len(self._learned) < _MOST_NAMES:
            self._learned.add((scope_of(span), span.name))

    def _is_known(self, scope: str) -> bool:
        known = self._scopes.get(scope)
        if known is None:
            known = scope.startswith(_SCOPES)
            if len(self._scopes) < _MOST_NAMES:
                self._scopes[scope] = known
        return known


def scope_of(span: ReadableSpan) -> str:
    """The name of the instrumentation that made a span."""
    scope = span.instrumentation_scope
    return "" if scope is None else scope.name


def framework_of(scope: str) -> Framework:
    """The framework an instrumentation is for, where it is one that ragaliq attaches to."""
    if scope in names.LANGCHAIN_SCOPES:
        return "langchain"
    return "llama_index" if scope == names.LLAMA_INDEX_SCOPE else ""


def part_of(attributes: Mapping[str, object]) -> Part:
    """What attributes that have one of the marks make of a span."""
    kind = attributes.get(names.KIND)
    if kind is not None:
        named = str(kind).upper()
    else:
        known = OPERATIONS.get(str(attributes.get(names.OPERATION, "")))
        if known is None:
            traceloop = attributes.get(names.TRACELOOP_KIND)
            if traceloop in _TRACELOOP_CHAINS:
                return Part.RUN
            return Part.STEP if traceloop == "tool" else Part.NONE
        named = known.value
    if named in _CHAINS:
        return Part.RUN
    if named == Kind.EVALUATOR.value:
        return Part.EVALUATION
    return Part.STEP if named in _STEPS else Part.NONE
