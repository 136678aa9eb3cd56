"""Capture: from the events of an application's run to question, context and answer.

The public door for those who translate a framework's events. A translator reads the framework's
objects with a `Reader` of its own, tells a `RunLog` what happens, keeps its runs in a `RunRegistry`
and hands a `ragaliq.CaseDraft` with the log as its `finder` to a monitor:

    log = RunLog(root)
    log.began(step, root); log.retrieved(step, passages)
    log.asked(call, messages); log.replied(call, "Refunds take five days.")
    CaseDraft(id="run-1", query=question, response=answer, finder=log)

The context of an answer is what the model that wrote it was shown; see `ragaliq.capture.shown`.
"""

from ragaliq.capture.conversation import Conversations
from ragaliq.capture.explained import Explanation, Explanations
from ragaliq.capture.registry import FollowedRun, RunRegistry
from ragaliq.capture.run import RunLog
from ragaliq.capture.shown import Call, Candidate, shown
from ragaliq.capture.texts import (
    ANSWER_KEYS,
    CONTEXT_KEYS,
    QUESTION_KEYS,
    Found,
    Message,
    Reader,
    document_blocks,
    models_words,
    score_in,
    text_blocks,
)
from ragaliq.core.checks import takes_only
from ragaliq.core.complaints import Complaints
from ragaliq.core.draft import ContextFinder, FoundContext
from ragaliq.core.test_case import CaseSources

__all__ = [
    "ANSWER_KEYS",
    "CONTEXT_KEYS",
    "QUESTION_KEYS",
    "Call",
    "Candidate",
    "CaseSources",
    "Complaints",
    "ContextFinder",
    "Conversations",
    "Explanation",
    "Explanations",
    "FollowedRun",
    "Found",
    "FoundContext",
    "Message",
    "Reader",
    "RunLog",
    "RunRegistry",
    "document_blocks",
    "models_words",
    "score_in",
    "shown",
    "takes_only",
    "text_blocks",
]
