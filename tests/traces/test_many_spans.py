"""Traces of very many spans take time in proportion, whatever their spans are to each other.

Of each, a search through everything that was found so far would take minutes.
"""

from __future__ import annotations

import pytest
from hand_written import ANSWER, QUESTION, chain, io, model, only, retriever, span

from ragaliq.traces import cases_of_trace
from ragaliq.traces.names import LLAMA_INDEX_SCOPE

MANY = 10_000


def found(number):
    return {"retrieval.documents.0.document.content": f"Text {number}."}


def retrievers_that_embed():
    root = chain()
    steps = [span("RETRIEVER", parent=root, attributes=found(n)) for n in range(MANY)]
    return [root, *steps, *(span("EMBEDDING", parent=step) for step in steps)]


def a_reranker_each():
    root, steps = chain(at=(0, 3 * MANY)), []
    for number in range(MANY):
        (held,) = found(number).values()
        ranked = {
            f"reranker.{side}_documents.0.document.content": held for side in ("input", "output")
        }
        at = (2 * number, 2 * number + 1)
        steps.append(span("RETRIEVER", parent=root, at=at, attributes=found(number)))
        steps.append(span("RERANKER", parent=root, at=(at[1], at[1]), attributes=ranked))
    return [root, *steps]


@pytest.mark.parametrize("steps", [retrievers_that_embed, a_reranker_each])
def test_searches(steps):
    assert len(only(steps()).draft.passages) == MANY


def test_syntheses():
    root = span("CHAIN", name="E.query", scope=LLAMA_INDEX_SCOPE, attributes=io(QUESTION, ANSWER))
    steps = [
        span("CHAIN", name="S.synthesize", scope=LLAMA_INDEX_SCOPE, parent=root)
        for _ in range(MANY)
    ]
    assert only([root, *steps]).draft.passages == ()


def test_spans_inside_each_other_each_with_a_model():
    outer, steps = None, []
    for _ in range(MANY):
        outer = span(parent=outer)
        steps += [outer, model(outer)]
    found = cases_of_trace([*steps, retriever(outer)])
    assert {case.target.span_id: case.reason for case in found} == {
        outer.span_id: "",
        steps[1].span_id: "not_rag",
    }
