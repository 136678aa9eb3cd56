"""Question and answer of a traced LlamaIndex workflow, such as an agent.

Its span shows the event it began with only by name, and the one it ended with only in part. What
the user asked and what the answer was is on the spans inside it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ragaliq.traces.llama_methods import ENGINES, RETRIEVE, method_of
from ragaliq.traces.shapes import answer_of, question_of
from ragaliq.traces.step import Kind, Step

__all__ = ["workflow_answer", "workflow_question"]

_RESULT = "StopEvent(result="
_SHOWN = 40
"""So many characters of an answer tell that it is the one shown in part."""


def workflow_question(steps: Sequence[Step]) -> str | None:
    """What the user asked: what the first model was asked, or the first engine or retriever."""
    for step in _outermost(steps):
        if step.kind is Kind.LLM and step.asked:
            return step.asked
    for step in _outermost(steps):
        if step.kind is not Kind.LLM and (asked := question_of(step.inputs)):
            return asked
    return None


def workflow_answer(steps: Sequence[Step]) -> str | None:
    """What the workflow returned; None if that is not to be told."""
    shown = steps[0].outputs
    if not isinstance(shown, str):
        return answer_of(shown)
    if not shown.startswith(_RESULT):
        return None
    try:
        result = ast.literal_eval(shown.removeprefix(_RESULT).removesuffix(")"))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        result = None
    if isinstance(result, str):
        return result
    said = [(step.span.end_ns, answer) for step in steps[1:] for answer in _said(step)]
    fitting = [each for each in said if repr(each[1])[1:-1][:_SHOWN] in shown]
    return max(fitting, default=(0, None), key=lambda each: each[0])[1]


def _outermost(steps: Sequence[Step]) -> Iterator[Step]:
    """Models, engines and retrievers that are in no engine or retriever themselves."""
    beyond = 0
    for step in steps[1:]:
        is_inner = method_of(step) in ENGINES | RETRIEVE
        if step.index > beyond and (is_inner or step.kind is Kind.LLM):
            beyond = step.last if is_inner else beyond
            yield step


def _said(step: Step) -> list[str]:
    if step.kind is Kind.LLM:
        return [step.reply] if step.reply else []
    answer = answer_of(step.outputs) if method_of(step) in ENGINES else None
    return [answer] if answer else []
