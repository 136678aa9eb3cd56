"""A finished run as the rules see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragaliq.core.draft import CaseDraft
from ragaliq.core.test_case import ContextChunk, RAGTestCase

__all__ = ["FinishedRun"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """What a rule may look at: a run with its answer, before it is decided whether to judge it.

    Attributes:
        case: Question, context and answer, as the adapter or the application handed them in.
        run_id: The framework's id of the run.
        pipeline: The application's name for the chain.
        session_id: The conversation, when the application names it.
    """

    case: RAGTestCase | CaseDraft
    run_id: str
    pipeline: str
    session_id: str | None

    @property
    def query(self) -> str:
        """The user's question."""
        return self.case.query

    @property
    def response(self) -> str:
        """The application's answer."""
        return self.case.response

    @property
    def tags(self) -> Sequence[str]:
        """The run's labels."""
        return self.case.tags

    @property
    def contexts(self) -> list[str]:
        """The retrieved texts, in rank order."""
        if isinstance(self.case, CaseDraft):
            return [passage.text for passage in self.case.context]
        return self.case.context_texts

    @property
    def scores(self) -> list[float]:
        """The retriever's scores, of the passages that have one."""
        if isinstance(self.case, CaseDraft):
            scores = [passage.score for passage in self.case.context]
        else:
            chunks = [each for each in self.case.context if isinstance(each, ContextChunk)]
            scores = [chunk.score for chunk in chunks]
        return [score for score in scores if score is not None]

    @property
    def had_errors(self) -> bool:
        """Whether something in the run failed that a retry, a fallback or a model made up for."""
        return isinstance(self.case, CaseDraft) and self.case.had_errors
