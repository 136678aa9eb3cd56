"""Draft of a mapping for spans without a known convention, for a person to review."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ragaliq.traces.conventions import KINDS_OF_PRODUCTS, Kind
from ragaliq.traces.mapping import SpanRule
from ragaliq.traces.span import TraceSpan

_KINDS = {
    Kind.CHAIN: "chain",
    Kind.AGENT: "agent",
    Kind.RETRIEVER: "retriever",
    Kind.RERANKER: "reranker",
    Kind.TOOL: "tool",
    Kind.LLM: "model",
}
# Words in a span's name, where no attribute says what it is.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "retriever": ("retriev", "search", "lookup", "vector"),
    "reranker": ("rerank",),
    "model": ("llm", "generat", "completion", "chat", "model"),
    "tool": ("tool", "function"),
    "agent": ("agent",),
    "chain": ("ask", "answer", "query", "chain", "pipeline", "workflow", "rag", "flow"),
}
_GIVEN = ("messages", "question", "query_text", "query", "prompt", "input", "arguments", "args")
_SAID = ("answer", "response", "completion", "output", "reply", "return", "result", "text")
_FOUND = ("retrieved_contexts", "documents", "contexts", "chunks", "hits", "matches", "results")
_OF_TRANSPORT = ("http", "db", "net", "rpc", "messaging", "server", "client", "url", "telemetry")
_NUMBER = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+")


def draft_mapping(spans: Iterable[TraceSpan]) -> list[SpanRule]:
    """Draft rules for spans, by attributes that name a kind, else by their names.

    Args:
        spans: Those that follow no convention, of several traces.
    """
    listed = list(spans)
    saying = _kind_attribute(listed)
    groups: dict[tuple[str, str], list[TraceSpan]] = {}
    for span in listed:
        said = str(span.attributes.get(saying, "")).lower() if saying else ""
        key = (saying, said) if said else ("", _NUMBER.sub("*", span.name))
        groups.setdefault(key, []).append(span)
    rules = (_rule(attribute, value, found) for (attribute, value), found in groups.items())
    return [rule for rule in rules if rule is not None]


def toml_of(rules: Sequence[SpanRule]) -> str:
    """A mapping file with these rules."""
    blocks = []
    for rule in rules:
        held = rule.model_dump(exclude_defaults=True)
        lines = [
            f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in held.items()
        ]
        blocks.append("\n".join(["[[span]]", *lines]))
    return "\n\n".join(blocks) + "\n"


def _kind_attribute(spans: Sequence[TraceSpan]) -> str:
    """Attribute whose values name the most kinds of steps; empty for none."""
    told: dict[str, set[Kind]] = {}
    for span in spans:
        for name, value in span.attributes.items():
            kind = KINDS_OF_PRODUCTS.get(str(value).lower()) if isinstance(value, str) else None
            if kind in _KINDS and len(str(value).split()) == 1:
                told.setdefault(name, set()).add(kind)
    return max(told, key=lambda name: (len(told[name]), -len(name)), default="")


def _rule(attribute: str, value: str, spans: Sequence[TraceSpan]) -> SpanRule | None:
    told = KINDS_OF_PRODUCTS.get(value) if attribute else None
    names = sorted({name for span in spans for name in span.attributes if _is_content(name)})
    kind = _KINDS.get(told, "") if told is not None else ""
    if told is None:
        kind = _named_kind(spans)
    texts = [name for name in names if any(_has_text(span.attributes.get(name)) for span in spans)]
    if not kind or (not texts and not attribute):
        return None
    question, answer = _by_word(texts, _GIVEN), _by_word(texts, _SAID)
    documents = _by_word(texts, _FOUND) or answer if kind in {"retriever", "reranker"} else ""
    found = {"question": question, "answer": answer, "documents": documents, "kind": kind}
    if documents:
        found["answer"] = ""
    where = (
        {"attribute": attribute, "equals": next(_values(attribute, spans))}
        if attribute
        else {"name": value}
    )
    return SpanRule.model_validate(where | found)


def _values(attribute: str, spans: Sequence[TraceSpan]) -> Iterator[str]:
    return (str(span.attributes[attribute]) for span in spans if attribute in span.attributes)


def _named_kind(spans: Sequence[TraceSpan]) -> str:
    name = spans[0].name.lower()
    found = (kind for kind, words in _NAMES.items() if any(word in name for word in words))
    is_first = any(span.parent_id is None for span in spans)
    return next(found, "chain" if is_first else "")


def _is_content(name: str) -> bool:
    return re.split(r"[.:_]", name.lower())[0] not in _OF_TRANSPORT


def _has_text(value: object) -> bool:
    if isinstance(value, list):
        return any(map(_has_text, value))
    return isinstance(value, str) and (" " in value.strip() or value.lstrip()[:1] in {"{", "["})


def _by_word(names: Sequence[str], words: Sequence[str]) -> str:
    """First attribute that ends in one of the words, in their order; the shortest of several."""
    for word in words:
        ending = [name for name in names if re.search(rf"(?:^|[.:_]){word}$", name.lower())]
        if ending:
            return min(ending, key=len)
    return ""
