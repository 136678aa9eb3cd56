"""Capture: question, context and answer from the events of an application's run.

The public door for adapters. An adapter reads the framework's objects with its own `Reader`,
records events in a `RunLog`, keeps its runs in a `RunRegistry` and submits the log instead of a
case:

    log = RunLog(run_id)
    log.began(root, None)
    log.began(step, root); log.retrieved(step, passages)
    log.model_called(call, messages); log.replied(call, "Refunds take five days.")
    log.question, log.answer = reader.question(inputs), reader.answer(outputs)
    handle.submit(log)

The context of an answer is what the model that wrote it was shown; see `ragaliq.capture.evidence`.
"""

from ragaliq.capture.add_context import add_context, find_current_runs
from ragaliq.capture.choosing import Chosen, RunFilter
from ragaliq.capture.conversation import Conversations
from ragaliq.capture.explained import Explanation, Explanations
from ragaliq.capture.extract import Extract, Keys, Overrides, name_part
from ragaliq.capture.framing import FramingHandler
from ragaliq.capture.plain_code import (
    LONE_CALL,
    Search,
    note_search,
    question_shown,
    searches_shown,
)
from ragaliq.capture.plain_values import named_id, plain
from ragaliq.capture.provided import passages_inside, provided_passages
from ragaliq.capture.recorded import RecordedRun
from ragaliq.capture.registry import RunRegistry
from ragaliq.capture.run import RunLog
from ragaliq.capture.texts import (
    ANSWER_KEYS,
    CONTEXT_KEYS,
    QUESTION_KEYS,
    ROLES,
    Found,
    Message,
    Reader,
    asked_in,
    document_blocks,
    models_words,
    question_in,
    score_in,
    text_blocks,
    texts_in,
    without_answers,
)
from ragaliq.core.checks import takes_only
from ragaliq.core.interrupts import is_from_signal
from ragaliq.core.log_once import LogOnce

__all__ = [
    "ANSWER_KEYS",
    "CONTEXT_KEYS",
    "LONE_CALL",
    "QUESTION_KEYS",
    "ROLES",
    "Chosen",
    "Conversations",
    "Explanation",
    "Explanations",
    "Extract",
    "Found",
    "FramingHandler",
    "Keys",
    "LogOnce",
    "Message",
    "Overrides",
    "Reader",
    "RecordedRun",
    "RunFilter",
    "RunLog",
    "RunRegistry",
    "Search",
    "add_context",
    "asked_in",
    "document_blocks",
    "find_current_runs",
    "is_from_signal",
    "models_words",
    "name_part",
    "named_id",
    "note_search",
    "passages_inside",
    "plain",
    "provided_passages",
    "question_in",
    "question_shown",
    "score_in",
    "searches_shown",
    "takes_only",
    "text_blocks",
    "texts_in",
    "without_answers",
]
