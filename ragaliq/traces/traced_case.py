"""What one run that a trace shows amounts to: a case, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ragaliq.core.draft import CaseDraft
from ragaliq.core.run import SpanTarget

__all__ = ["TracedCase"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCase:
    """One run of a RAG application, as its trace shows it.

    Attributes:
        id: The same whenever the same trace is read: trace id, hyphen, span id.
        target: The run's own span, which results speak about.
        draft: Question, context and answer; None where there is a `reason`.
        reason: Why there is no case: one of the reasons under which runs are counted as
            `incomplete_run`, or why a trace in particular does not tell. Empty where there is one.
        pipeline: The run's name.
        framework: The framework that ran it, where it is one that ragaliq attaches to.
        session_id: The conversation, when the application names it.
        response_id: The model's id of the response, when known.
        ended_at: Unix time in seconds when the run ended.
    """

    id: str
    target: SpanTarget
    draft: CaseDraft | None = None
    reason: str = ""
    pipeline: str = ""
    framework: Literal["", "langchain", "llama_index"] = ""
    session_id: str | None = None
    response_id: str | None = None
    ended_at: float = 0.0
