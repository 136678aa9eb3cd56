"""Putting another answer, or a note, where a chain's output has its answer.

Nothing is changed in place: the output may be an object of the application's own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_ragaliq.reading import FEEDBACK, READER
from ragaliq.capture import ANSWER_KEYS

KEY = "ragaliq"


def answer_of(output: Any) -> str | None:
    """The answer's text in what a chain returned, or None."""
    found = READER.answer(output)
    return None if found is None else found.text


def _text_of(value: Any) -> str | None:
    found = READER.answer_text(value)
    return None if found is None else found.text


def replaced(output: Any, answer: Any) -> Any:
    """The output with another answer; the answer itself where nothing can hold it."""
    if isinstance(output, BaseMessage):
        return output.model_copy(update={"content": answer}) if isinstance(answer, str) else answer
    if isinstance(output, Mapping):
        key = _answer_key(output)
        return answer if key is None else {**output, key: replaced(output[key], answer)}
    if messages := READER.messages(output):
        return [*messages[:-1], replaced(messages[-1], answer)]
    return answer


def annotated(output: Any, note: str, summary: Mapping[str, Any]) -> Any:
    """The output with a note: next to the answer where there is room, else at the end of its text.

    Args:
        output: What a chain returned.
        note: For an output that is nothing but text.
        summary: For messages (`response_metadata["ragaliq"]`) and dictionaries (`["ragaliq"]`).
    """
    if isinstance(output, str):
        return f"{output}\n\n{note}"
    if isinstance(output, BaseMessage):
        metadata = {**output.response_metadata, KEY: dict(summary)}
        return output.model_copy(update={"response_metadata": metadata})
    if isinstance(output, Mapping):
        if _answer_key(output) == "messages":
            return {**output, "messages": annotated(output["messages"], note, summary)}
        return {**output, KEY: dict(summary)}
    if messages := READER.messages(output):
        return [*messages[:-1], annotated(messages[-1], note, summary)]
    return output


def throughout(piece: Any, answer: str, change: Callable[[Any], Any]) -> Any:
    """A piece of a graph's stream with every place that holds the answer changed; the shape stays.

    Args:
        piece: A state, an update by node, or a tuple or dictionary of LangGraph's around one.
        answer: The answer that was judged.
        change: Makes what is to stand there of the text, message or object that is the answer.
    """
    if not isinstance(piece, Mapping | tuple | list) and _text_of(piece) == answer:
        return change(piece)
    if isinstance(piece, Mapping):
        if (structured := piece.get("structured_response")) is not None:
            changed = change(structured) if _text_of(structured) == answer else structured
            piece = {**piece, "structured_response": changed}
        return {key: throughout(value, answer, change) for key, value in piece.items()}
    if isinstance(piece, list):
        return [throughout(item, answer, change) for item in piece]
    if isinstance(piece, tuple):
        items = [throughout(item, answer, change) for item in piece]
        return type(piece)(*items) if hasattr(piece, "_fields") else tuple(items)
    if dataclasses.is_dataclass(piece) and not isinstance(piece, type):
        values = {field.name: getattr(piece, field.name) for field in dataclasses.fields(piece)}
        changes = {
            name: changed
            for name, value in values.items()
            if (changed := throughout(value, answer, change)) is not value
        }
        return dataclasses.replace(piece, **changes) if changes else piece
    return piece


def with_feedback(value: Any, answer: str, feedback: str) -> Any:
    """The input of a chain for another attempt.

    A conversation goes on with the answer and the feedback; a dictionary has it under `feedback`,
    for the prompt to use; a text has it appended.
    """
    if isinstance(value, str):
        return f"{value}\n\n{feedback}"
    more = [AIMessage(answer), feedback_message(feedback)]
    if isinstance(value, BaseMessage):
        return [value, *more]
    messages = READER.messages(value)
    if isinstance(value, Mapping):
        return (
            {**value, "messages": [*messages, *more]}
            if messages
            else {**value, "feedback": feedback}
        )
    return [*messages, *more] if messages else value


def feedback_message(feedback: str) -> HumanMessage:
    """Feedback to the model, marked: it is not the user who speaks."""
    return HumanMessage(feedback, additional_kwargs={**FEEDBACK})


def _answer_key(output: Mapping[str, Any]) -> str | None:
    if output.get("structured_response") is not None:
        return "structured_response"
    for key in ANSWER_KEYS:
        if key in output and answer_of({key: output[key]}):
            return key
    messages = READER.messages(output)
    is_conversation = isinstance(messages, Sequence) and bool(messages)
    return "messages" if is_conversation else None
