"""What a run that ended well amounts to: a case to evaluate, or the reason why there is none."""

from __future__ import annotations

from typing import Any, Literal

from langchain_ragaliq.documents import documents_of, output_passages, turn_passages
from langchain_ragaliq.extract import answer_of, question_of, reply_of
from langchain_ragaliq.overrides import Facts
from langchain_ragaliq.root_run import RootRun
from ragaliq import CaseDraft, Passage

__all__ = ["Reason", "conclude"]

_NOTHING = Facts()

Reason = Literal["truncated", "interrupted", "extract_failed", "no_question", "no_answer"]


def conclude(root: RootRun, outputs: Any, inputs: Any, *, is_stream: bool) -> CaseDraft | Reason:
    """Make a case of a run.

    Args:
        root: The run; what it holds is read, not changed.
        outputs: What the chain returned.
        inputs: What it took, of a stream, where that is known only at the end.
        is_stream: Whether the answer was handed out piece by piece.
    """
    if root.is_interrupted:
        return "interrupted"
    answer = answer_of(outputs) or _reply(root, outputs)
    if outputs is None or _is_cut(root, answer, is_stream=is_stream):
        return "truncated"
    said = _said(root, outputs, inputs)
    if said is None:
        return "extract_failed"
    question = said.question or root.question or _question(root, outputs, inputs)
    if not question:
        return "no_question"
    answer = said.answer or answer
    if not answer:
        return "no_answer"
    passages = said.passages
    if passages is None:
        # A tool that gave the answer itself, such as another agent, is no evidence for it.
        is_told = answer.strip()
        passages = [
            passage
            for passage in _passages(root, outputs)
            if passage.text.strip() != is_told or is_told not in root.tool_texts
        ]
    return CaseDraft(
        id=root.name,
        query=question,
        passages=passages,
        response=answer,
        tags=root.tags,
        had_errors=root.had_errors,
    )


def _said(root: RootRun, outputs: Any, inputs: Any) -> Facts | None:
    """What the application itself says of the run; None if its function for that failed.

    Its function goes before the events it sent, and those before the keys it named.
    """
    overrides, said = root.overrides, root.said or _NOTHING
    if overrides is None:
        return said
    try:
        facts = overrides.facts(root.inputs if inputs is None else inputs, outputs)
    except Exception as error:  # noqa: BLE001 - the application's own code may do anything
        overrides.complain(error)
        return None
    facts.question = facts.question or said.question or overrides.question(inputs)
    facts.answer = facts.answer or said.answer or overrides.answer(outputs)
    for passages in (said.passages, overrides.passages(outputs), overrides.passages(inputs)):
        if facts.passages is None:
            facts.passages = passages
    return facts


def _question(root: RootRun, outputs: Any, inputs: Any) -> str | None:
    return question_of(inputs) or _echo(outputs) or root.prompt_question


def _is_cut(root: RootRun, answer: str | None, *, is_stream: bool) -> bool:
    # A stream that is broken off ends like any other, but before its steps and its model do. A
    # model that was itself given up, say for a faster one, is open as well: then the answer is the
    # other's reply.
    return (is_stream and bool(root.open_steps)) or (
        bool(root.open_models) and answer != reply_of(root.replied_last)
    )


def _reply(root: RootRun, outputs: Any) -> str | None:
    """The last model's reply, unless the chain returned something else than an answer.

    A chain may return documents only, or a state in which nothing has been answered yet: then the
    last reply was a rewritten question or a grade.
    """
    if documents_of(outputs):
        return None
    reply = reply_of(root.replied_last)
    if isinstance(outputs, dict):
        values = list(outputs.values())
        echoes = any(isinstance(v, str) and v.strip() == root.question for v in values)
        is_state = echoes or output_passages(outputs) is not None
        if is_state and reply not in map(answer_of, values):
            return None
    return reply


def _echo(outputs: Any) -> str | None:
    return question_of(outputs) if isinstance(outputs, dict) else None


def _passages(root: RootRun, outputs: Any) -> list[Passage]:
    """The passages the answer was made from, by the most telling source there is."""
    if root.keyed_passages is not None:
        return root.keyed_passages
    returned = output_passages(outputs)
    # The state of a conversation also holds the documents of earlier turns.
    if returned is not None and (root.sources or not root.is_resumable):
        return returned
    if root.sources:
        return list(root.sources)
    return turn_passages(outputs) or root.prompt_passages
