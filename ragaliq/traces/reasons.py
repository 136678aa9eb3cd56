"""Why a run in a trace gives no case, in words."""

from __future__ import annotations

__all__ = ["REASONS"]

REASONS = {
    "not_rag": "nothing was retrieved, or no model answered",
    "no_question": "the spans show no question",
    "no_answer": "the spans show no answer",
    "answer_streamed": "the answer was streamed, and the spans do not hold it",
    "content_hidden": "question, context or answer was kept out of the spans",
    "attributes_cut": "attributes are cut or were dropped; raise the SDK's attribute limits",
    "truncated": "the answer was broken off",
    "errored": "the run failed",
    "cancelled": "the run was cancelled",
    "interrupted": "the run waits for a person",
    "ambiguous": "several questions in one request, and nothing tells them apart",
    "malformed": "the spans contradict each other",
    "internal_error": "ragaliq could not read it; please report",
}
"""Every reason with what it means, the common ones first."""
