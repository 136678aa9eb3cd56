"""Traces of many spans take time in proportion, whatever their spans are to each other."""

import pytest
from hand_written import ANSWER, QUESTION, chain, io, model, only, retriever, span

from ragaliq.traces import cases_of_trace
from ragaliq.traces.conventions import LLAMA_INDEX_SCOPE

MANY = 1_000


def found(number):
    return {"retrieval.documents.0.document.content": f"Text {number}."}


def retrievers_that_embed(many=MANY):
    root = chain()
    steps = [span("RETRIEVER", parent=root, attributes=found(n)) for n in range(many)]
    return [root, *steps, *(span("EMBEDDING", parent=step) for step in steps)]


def a_reranker_each(many=MANY):
    root, steps = chain(at=(0, 3 * many)), []
    for number in range(many):
        (held,) = found(number).values()
        ranked = {
            f"reranker.{side}_documents.0.document.content": held for side in ("input", "output")
        }
        at = (2 * number, 2 * number + 1)
        steps.append(span("RETRIEVER", parent=root, at=at, attributes=found(number)))
        steps.append(span("RERANKER", parent=root, at=(at[1], at[1]), attributes=ranked))
    return [root, *steps]


def said(number):
    return f"Paragraph {number} says that item {number * 7919} costs {number} crowns."


def documents_in_one_prompt(many=MANY):
    root, texts = chain(), [said(number) for number in range(many)]
    held = {f"retrieval.documents.{n}.document.content": text for n, text in enumerate(texts)}
    search = span("RETRIEVER", parent=root, at=(10, 20), attributes=held)
    return [root, search, model(root, asked="\n".join([*texts, QUESTION]))]


def tools_in_one_prompt(many=MANY):
    root, texts = chain(at=(0, 9 * many)), [said(number) for number in range(many)]
    tools = [
        span("TOOL", parent=root, at=(number, number + 1), attributes=io("q", text))
        for number, text in enumerate(texts)
    ]
    asked = "\n".join([*texts, QUESTION])
    return [root, *tools, model(root, asked=asked, at=(many + 1, many + 2))]


@pytest.mark.parametrize(
    "steps",
    [retrievers_that_embed, a_reranker_each, documents_in_one_prompt, tools_in_one_prompt],
)
def test_searches(steps):
    assert len(only(steps()).log.found.passages) == MANY


def syntheses(many=MANY):
    root = span("CHAIN", name="E.query", scope=LLAMA_INDEX_SCOPE, attributes=io(QUESTION, ANSWER))
    made = {"name": "S.synthesize", "scope": LLAMA_INDEX_SCOPE, "parent": root}
    return [root, *(span("CHAIN", **made) for _ in range(many))]


def test_syntheses():
    assert list(only(syntheses()).log.found.passages) == []


def requests_inside_each_other(many=MANY):
    outer, steps = None, []
    for _ in range(many):
        outer = span(parent=outer)
        steps += [outer, model(outer)]
    return [*steps, retriever(outer)]


def test_requests_inside_each_other():
    steps = requests_inside_each_other()
    assert {case.target.span_id: case.reason for case in cases_of_trace(steps)} == {
        steps[-1].parent_id: "",
        steps[1].span_id: "not_rag",
    }
