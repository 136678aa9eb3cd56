"""What a traced LlamaIndex query, chat or workflow amounts to, by the rules of ragaliq's handler.

OpenInference writes LlamaIndex's own spans, one a method; their names tell what they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ragaliq.capture import models_words
from ragaliq.core.draft import Passage
from ragaliq.traces.chain import Found, walk
from ragaliq.traces.content import content_of
from ragaliq.traces.documents import number
from ragaliq.traces.llama_methods import (
    ENGINES,
    RERANK,
    RETRIEVE,
    SYNTHESIZE,
    WORKFLOW,
    WRITE,
    method_of,
)
from ragaliq.traces.llama_workflow import workflow_answer, workflow_question
from ragaliq.traces.names import PROMPT_VARIABLES
from ragaliq.traces.shapes import answer_of, question_of
from ragaliq.traces.step import Kind, Step

__all__ = ["found_in"]

_NODE = re.compile(r"<NodeWithScore\(node=\w+\(id_=(?P<id>.*)\), score=(?P<score>[^()]*)\)>")
_RESPONSE_KEYS = {"source_nodes", "sources", "metadata", "response_gen", "response_txt"}


def found_in(steps: Sequence[Step]) -> Found:
    """What the steps of one run say."""
    root = steps[0]
    if method_of(root) == WORKFLOW:
        question, answer = workflow_question(steps), workflow_answer(steps)
    else:
        question, answer = question_of(root.inputs), _answer(root)
    said = models_words(answer or "")
    return Found(question=question or "", answer=said, passages=_Reading(steps).context())


def _answer(root: Step) -> str | None:
    outputs = root.outputs
    if isinstance(outputs, Mapping) and "response" not in outputs:
        if _RESPONSE_KEYS & set(outputs):
            return None  # a stream, whose text its span does not have
        return root.span.text("output.value")  # a structured answer, as its JSON
    return answer_of(outputs)


class _Scope:
    """What one engine of a run has found; see the handler's class of this name."""

    def __init__(self, *, is_workflow: bool) -> None:
        self.is_workflow = is_workflow
        self.inner: list[list[Passage]] = []
        self.synthesized: list[list[Passage]] = []
        self.reranked: list[list[Passage]] = []
        self.retrieved: list[list[Passage]] = []

    def context(self, named: list[Passage]) -> list[Passage] | None:
        found = self.reranked[-1:] or self.retrieved
        if self.inner:
            is_beside = self.is_workflow and not self.synthesized
            return _flat(self.inner + (found if is_beside else []))
        if self.synthesized:
            return _flat(self.synthesized)
        if named or not found:
            return named or None
        return _flat(found)


class _Reading:
    """Follows a run's steps, and knows every node it met."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self._known: dict[str, Passage] = {}
        self._sources: list[Any] = [None]

    def context(self) -> list[Passage] | None:
        """What the run answered from; None if nothing was retrieved at all."""
        scopes: list[_Scope] = []
        owners: list[Step] = []
        result: list[Passage] | None = None
        for step, _, is_end in walk(self._steps):
            self._note_sources(step, is_end=is_end)
            part = method_of(step) if step.kind is not Kind.NONE else None
            is_engine = part in ENGINES or part == WORKFLOW or step is self._steps[0]
            if is_end and owners and owners[-1] is step:
                owners.pop()
                if is_engine:
                    scope = scopes.pop()
                    result = scope.context(self._named(step))
                    if scopes and result is not None and not step.span.is_error:
                        scopes[-1].inner.append(result)
                elif not step.span.is_error:
                    self._found(step, part or "", scopes[-1])
            elif not is_end and not self._is_inside_part(owners):
                if is_engine:
                    scopes.append(_Scope(is_workflow=part == WORKFLOW))
                    owners.append(step)
                elif part in RETRIEVE or part in RERANK or step.kind is Kind.RERANKER:
                    owners.append(step)
                elif part in SYNTHESIZE:
                    scopes[-1].synthesized.append(self._synthesized(step, scopes[-1]))
        return result

    def _note_sources(self, step: Step, *, is_end: bool) -> None:
        """Keep what the innermost response around a step says it was made from."""
        if is_end:
            self._sources.pop()
        else:
            outputs = step.outputs
            is_response = isinstance(outputs, Mapping) and "source_nodes" in outputs
            self._sources.append(outputs["source_nodes"] if is_response else self._sources[-1])

    @staticmethod
    def _is_inside_part(owners: Sequence[Step]) -> bool:
        # What goes on inside a retriever or a reranker is its own business.
        return bool(owners) and method_of(owners[-1]) in (RETRIEVE | RERANK)

    def _found(self, step: Step, part: str, scope: _Scope) -> None:
        if part in RETRIEVE:
            texts = {passage.id: passage for passage in step.passages or ()}
            self._known |= {key: held for key, held in texts.items() if key is not None}
            scope.retrieved.append(self._nodes(step.outputs) or step.passages or [])
        else:
            scope.reranked.append(self._nodes(step.outputs) or step.passages or [])

    def _named(self, step: Step) -> list[Passage]:
        """The nodes that a response says it was made from."""
        outputs = step.outputs
        return self._nodes(outputs.get("source_nodes")) if isinstance(outputs, Mapping) else []

    def _nodes(self, listed: Any) -> list[Passage]:
        """The passages of nodes that are shown by id and score only, where their text is known."""
        nodes = [(self._known.get(node.id or ""), node) for node in _shown(listed)]
        return [
            known._replace(score=node.score)
            for known, node in nodes
            if known is not None and known.text.strip()
        ]

    def _synthesized(self, step: Step, scope: _Scope) -> list[Passage]:
        """What an answer was written from: the texts a synthesizer was given, metadata included."""
        texts = _texts_given(step)
        listed = _shown(self._sources[-1])
        found = _flat(scope.reranked[-1:] or scope.retrieved)
        if texts is None:
            return _as_prompted(step, self._nodes(self._sources[-1]) or found)
        if len(listed) >= len(texts):  # in the order of the texts, followed by further sources
            owners: list[Passage | None] = list(listed[: len(texts)])
        else:
            owners = _owners(texts, found)
        return [
            Passage(text) if owner is None else owner._replace(text=text)
            for text, owner in zip(texts, owners, strict=True)
            if text.strip()
        ]


def _shown(listed: Any) -> list[Passage]:
    """Ids and scores that `<NodeWithScore(node=TextNode(id_=...), score=...)>` tells, textless."""
    nodes = listed if isinstance(listed, list) else []
    shown = [_NODE.fullmatch(node) for node in nodes if isinstance(node, str)]
    return [Passage("", match["id"], number(match["score"])) for match in shown if match]


def _owners(texts: Sequence[str], found: Sequence[Passage]) -> list[Passage | None]:
    """For each text, the retrieved document that it was made from."""
    if len(texts) == len(found) and all(p.text in t for p, t in zip(found, texts, strict=True)):
        return list(found)
    left = list(found)
    owners: list[Passage | None] = []
    for text in texts:
        owner = next((each for each in left if each.text and each.text in text), None)
        if owner is not None:
            left.remove(owner)
        owners.append(owner)
    return owners


def _texts_given(step: Step) -> list[str] | None:
    for child in step.children:
        if method_of(child) in WRITE and isinstance(child.inputs, Mapping):
            texts = child.inputs.get("text_chunks")
            if isinstance(texts, list):
                return [text for text in texts if isinstance(text, str)]
    return None


def _as_prompted(step: Step, passages: Sequence[Passage]) -> list[Passage]:
    """The passages as a model was shown them one by one, with their metadata."""
    shown = _prompted(step)
    texts = [passage.text for passage in passages]
    return [
        next(
            (
                passage._replace(text=text)
                for text in shown
                if text.endswith(passage.text)
                and not any(other != passage.text and other in text for other in texts)
            ),
            passage,
        )
        for passage in passages
    ]


def _prompted(step: Step) -> list[str]:
    """What was put into prompts as context below a step."""
    found: list[str] = []
    todo = [step]
    while todo:
        each = todo.pop()
        todo += each.children
        held = content_of(each.span.attributes.get(PROMPT_VARIABLES), is_json=True).value
        variables = held if each.kind is Kind.LLM and isinstance(held, Mapping) else {}
        found += [
            value
            for name, value in variables.items()
            if name.startswith("context") and isinstance(value, str)
        ]
    return found


def _flat(findings: Iterable[list[Passage]]) -> list[Passage]:
    return [piece for pieces in findings for piece in pieces]
