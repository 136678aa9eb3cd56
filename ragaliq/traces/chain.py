"""What a traced chain or agent amounts to, by the rules of ragaliq's LangChain handler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ragaliq.core.draft import Passage
from ragaliq.traces.chat import message_of
from ragaliq.traces.content import content_of
from ragaliq.traces.documents import (
    documents_of,
    output_passages,
    prompt_passages,
    tool_passages,
    turn_passages,
)
from ragaliq.traces.names import LANGCHAIN_SCOPES, METADATA
from ragaliq.traces.shapes import answer_of, question_of
from ragaliq.traces.sources import Sources
from ragaliq.traces.step import Kind, Step

__all__ = ["ChainRun", "Found", "walk"]


class Found(NamedTuple):
    """What a run's steps say.

    Attributes:
        question: What the user asked; empty if that is not to be found.
        answer: What the application answered.
        passages: What it answered from; None if nothing was retrieved at all.
        is_cut: Whether the answer is only the beginning of one.
    """

    question: str
    answer: str
    passages: list[Passage] | None
    is_cut: bool = False


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


class ChainRun:
    """Follows the steps of one run in the order of their beginnings and ends.

    Args:
        steps: The run's own first, then all below it.

    Attributes:
        has_retrieved: Whether a retriever was asked, with whatever success.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self._root = steps[0]
        self._sources = Sources(steps)
        self._models: list[Step] = []
        self.has_retrieved = False
        self._prompt_passages: list[Passage] = []
        self._prompt_question: str | None = None
        self._retrievers = 0
        for step, parent, is_end in walk(steps):
            if parent is None:
                continue
            if is_end:
                self._ended(step, parent)
            else:
                self._began(step)

    def found(self) -> Found:
        """What the run amounts to."""
        outputs = self._root.outputs
        answer = answer_of(outputs) or self._reply()
        passages = self._passages()
        is_rag = bool(passages) or self.has_retrieved
        return Found(
            question=question_of(self._root.inputs) or self._other_question() or "",
            answer=answer or "",
            passages=passages if is_rag else None,
            is_cut=self._is_cut(answer),
        )

    def sources(self) -> list[Passage]:
        """What was fetched and not replaced."""
        return self._sources.passages()

    def last_model(self) -> Step | None:
        """The model whose reply came last, before the run was over."""
        end = self._root.span.end_ns
        ended = [step for step in self._models if step.span.end_ns <= end]
        return max(ended, key=lambda step: step.span.end_ns, default=None)

    def _began(self, step: Step) -> None:
        if step.kind is Kind.RETRIEVER:
            self._retrievers += 1
            self.has_retrieved = True
        elif step.kind is Kind.PROMPT:
            self._prompt_passages = prompt_passages(step.inputs) or self._prompt_passages
            self._prompt_question = self._prompt_question or question_of(step.inputs)
        elif step.kind is Kind.LLM and not self._retrievers:
            self._models.append(step)  # below a retriever, models write queries
        elif step.kind in {Kind.CHAIN, Kind.AGENT}:
            self._sources.given(step)

    def _ended(self, step: Step, parent: Step) -> None:
        sources = self._sources
        if step.kind is Kind.RETRIEVER:
            self._retrievers -= 1
            # What a span does not show, a tool around it may.
            if not step.span.is_error and step.passages is not None:
                sources.retrieved(step)
        elif step.kind is Kind.RERANKER and not step.span.is_error and step.passages is not None:
            sources.reranked(step)
        elif step.kind is Kind.TOOL:
            message = message_of(step.outputs)
            if step.span.is_error or (message is not None and message.is_failed):
                sources.failed(step)
            else:
                sources.told(step, tool_passages(step.outputs))
        elif step.kind in {Kind.CHAIN, Kind.AGENT}:
            if step.span.is_error:
                sources.failed(step)
            else:
                sources.returned(step, parent)

    def _reply(self) -> str | None:
        """The last model's reply, unless the chain returned something else than an answer."""
        outputs = self._root.outputs
        if documents_of(outputs):
            return None
        last = self.last_model()
        reply = last.reply if last is not None else None
        if isinstance(outputs, Mapping):
            question = question_of(self._root.inputs)
            values = list(outputs.values())
            echoes = any(isinstance(v, str) and v.strip() == question for v in values)
            is_state = echoes or output_passages(outputs) is not None
            if is_state and reply not in map(answer_of, values):
                return None
        return reply

    def _is_cut(self, answer: str | None) -> bool:
        # A stream that is broken off ends before its model does. A model that was itself given up,
        # say for a faster one, ends later as well: then the answer is the other's reply.
        last = self.last_model()
        end, outputs = self._root.span.end_ns, self._root.outputs
        is_open = any(step.span.end_ns > end for step in self._models)
        # So do its last steps, whose output it is. In JavaScript ends are noted late.
        is_broken_off = self._root.span.scope in LANGCHAIN_SCOPES and any(
            step.span.end_ns > end and step.outputs == outputs for step in self._root.children
        )
        return is_broken_off or (is_open and answer != (last.reply if last is not None else None))

    def _other_question(self) -> str | None:
        outputs = self._root.outputs
        echo = question_of(outputs) if isinstance(outputs, Mapping) else None
        return echo or self._prompt_question

    def _passages(self) -> list[Passage]:
        """The passages the answer was made from, by the most telling source there is."""
        returned = output_passages(self._root.outputs)
        # The state of a conversation also holds the documents of earlier turns.
        if returned is not None and (self._sources or not _is_resumable(self._root)):
            return returned
        if self._sources:
            return self._sources.passages()
        return turn_passages(self._root.outputs) or self._prompt_passages


def _is_resumable(root: Step) -> bool:
    metadata: Any = content_of(root.span.attributes.get(METADATA), is_json=True).value
    return isinstance(metadata, Mapping) and metadata.get("thread_id") is not None
