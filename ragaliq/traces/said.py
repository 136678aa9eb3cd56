"""What the application itself says of a run, in attributes of its first span."""

from __future__ import annotations

from ragaliq.core.draft import Passage
from ragaliq.traces.chain import Found
from ragaliq.traces.content import content_of
from ragaliq.traces.documents import listed_passages
from ragaliq.traces.names import AttributeNames
from ragaliq.traces.shapes import answer_of, question_of
from ragaliq.traces.span import TraceSpan

__all__ = ["said_by"]


def said_by(span: TraceSpan, attribute_names: AttributeNames, found: Found) -> Found:
    """What was found, with what the application said in place of it."""
    question = _held(span, attribute_names.question)
    answer = _held(span, attribute_names.answer)
    if question is not None:
        found = found._replace(question=question_of(question) or found.question)
    if answer is not None:
        found = found._replace(answer=answer_of(answer) or found.answer, is_cut=False)
    passages = _passages(_held(span, attribute_names.contexts))
    return found if passages is None else found._replace(passages=passages)


def _held(span: TraceSpan, name: str) -> object:
    value = span.attributes.get(name) if name else None
    is_json = isinstance(value, str) and value[:1] in {"{", "["}
    return content_of(value, is_json=is_json).value


def _passages(value: object) -> list[Passage] | None:
    if isinstance(value, str):
        return [Passage(value)] if value.strip() else []
    return listed_passages(list(value) if isinstance(value, tuple) else value)
