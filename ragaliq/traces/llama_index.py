"""What a traced LlamaIndex query, chat or workflow amounts to, by the rules of ragaliq's handler.

OpenInference writes LlamaIndex's own spans, one a method; their names tell what they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ragaliq.core.draft import Passage
from ragaliq.traces.chain import Found, walk
from ragaliq.traces.documents import number
from ragaliq.traces.names import LLAMA_INDEX_SCOPE
from ragaliq.traces.shapes import answer_of, question_of
from ragaliq.traces.step import Kind, Step

__all__ = ["found_in", "is_plumbing", "is_skipped", "is_workflow"]

_ENGINES = {"query", "aquery", "chat", "achat", "stream_chat", "astream_chat"}
_WORKFLOW = "run"
_RETRIEVE = {"retrieve", "aretrieve"}
_RERANK = {"_postprocess_nodes", "postprocess_nodes"}
_SYNTHESIZE = {"synthesize", "asynthesize"}
_WRITE = {"get_response", "aget_response"}
_EVALUATE = {"evaluate", "aevaluate", "evaluate_response", "aevaluate_response"}
_NODE = re.compile(r"<NodeWithScore\(node=\w+\(id_=(?P<id>.*)\), score=(?P<score>[^()]*)\)>")
_RESPONSE_KEYS = {"source_nodes", "sources", "metadata", "response_gen", "response_txt"}


def is_plumbing(step: Step) -> bool:
    """Whether a span of LlamaIndex begins no run of its own, though those below it may."""
    method = _method(step)
    return method is not None and method not in _ENGINES and method != _WORKFLOW


def is_skipped(step: Step) -> bool:
    """Whether a span with all below it is somebody's evaluation."""
    return step.kind is Kind.EVALUATOR or _method(step) in _EVALUATE or _is_grading(step)


def is_workflow(step: Step) -> bool:
    """Whether a span is that of a workflow, such as an agent."""
    return _method(step) == _WORKFLOW


def found_in(steps: Sequence[Step]) -> Found:
    """What the steps of one run say."""
    root = steps[0]
    return Found(
        question=question_of(root.inputs) or "",
        answer=_answer(root) or "",
        passages=_Reading(steps).context(),
    )


def _method(step: Step) -> str | None:
    """The method a span is of; None for models, and for spans of anybody else."""
    if step.span.scope != LLAMA_INDEX_SCOPE:
        return None
    return None if step.kind is Kind.LLM else step.span.name.rpartition(".")[2]


def _is_grading(step: Step) -> bool:
    # What the classes of LangChain's own evaluators end in; their answers are grades.
    return step.kind is Kind.CHAIN and step.span.name.endswith("EvalChain")


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

    def context(self) -> list[Passage] | None:
        """What the run answered from; None if nothing was retrieved at all."""
        scopes: list[_Scope] = []
        owners: list[Step] = []
        result: list[Passage] | None = None
        for step, _, is_end in walk(self._steps):
            part = _method(step) if step.kind is not Kind.NONE else None
            is_engine = part in _ENGINES or part == _WORKFLOW or step is self._steps[0]
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
                    scopes.append(_Scope(is_workflow=part == _WORKFLOW))
                    owners.append(step)
                elif part in _RETRIEVE or part in _RERANK or step.kind is Kind.RERANKER:
                    owners.append(step)
                elif part in _SYNTHESIZE:
                    scopes[-1].synthesized.append(self._synthesized(step, scopes[-1]))
        return result

    @staticmethod
    def _is_inside_part(owners: Sequence[Step]) -> bool:
        # What goes on inside a retriever or a reranker is its own business.
        return bool(owners) and _method(owners[-1]) in (_RETRIEVE | _RERANK)

    def _found(self, step: Step, part: str, scope: _Scope) -> None:
        if part in _RETRIEVE:
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
        """The passages that `<NodeWithScore(node=TextNode(id_=...), score=...)>` stands for."""
        passages = []
        for node in listed if isinstance(listed, list) else ():
            shown = _NODE.fullmatch(node) if isinstance(node, str) else None
            known = self._known.get(shown["id"]) if shown else None
            if shown and known is not None and known.text.strip():
                passages.append(Passage(known.text, known.id, number(shown["score"])))
        return passages

    def _synthesized(self, step: Step, scope: _Scope) -> list[Passage]:
        """What an answer was written from: the texts a synthesizer was given, metadata included."""
        texts = _texts_given(step)
        found = _flat(scope.reranked[-1:] or scope.retrieved)
        if texts is None:
            return self._nodes(_sources_around(step, self._steps)) or found
        in_place = len(texts) == len(found)
        passages: list[Passage] = []
        left = list(found)
        for place, text in enumerate(texts):
            own = found[place] if in_place and found[place].text in text else None
            own = own or next((each for each in left if each.text and each.text in text), None)
            if own in left:
                left.remove(own)
            if text.strip():
                passages.append(own._replace(text=text) if own is not None else Passage(text))
        return passages


def _texts_given(step: Step) -> list[str] | None:
    for child in step.children:
        if _method(child) in _WRITE and isinstance(child.inputs, Mapping):
            texts = child.inputs.get("text_chunks")
            if isinstance(texts, list):
                return [text for text in texts if isinstance(text, str)]
    return None


def _sources_around(step: Step, steps: Sequence[Step]) -> Any:
    around: Iterable[Step] = (s for s in steps if s.index <= step.index <= s.last)
    for outer in reversed(list(around)):
        if isinstance(outer.outputs, Mapping) and "source_nodes" in outer.outputs:
            return outer.outputs["source_nodes"]
    return None


def _flat(findings: Iterable[list[Passage]]) -> list[Passage]:
    return [piece for pieces in findings for piece in pieces]
