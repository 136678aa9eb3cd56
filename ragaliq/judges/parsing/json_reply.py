"""Replies of a given form, from servers that ignore the schema they were sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from ragaliq.errors import JudgeRefusalError, JudgeResponseError
from ragaliq.judges.parsing.declining import declines_to_judge
from ragaliq.judges.parsing.json_reader import Reading
from ragaliq.judges.parsing.json_search import find_json, prose, visible
from ragaliq.judges.parsing.json_types import JsonObject, JsonValue

__all__ = ["parse_json_reply"]

R = TypeVar("R", bound=BaseModel)

_MOST_WRAPPERS = 3
_MARGIN = 40  # characters a list may be indented
_LINE_END = re.compile(r"[^\S\n]*+(?:\n|\Z)")


def parse_json_reply(reply: str, model: type[R]) -> R:
    """Read a reply that should have been JSON of a given form.

    Code fences, prose, thoughts and comments around it, trailing commas and the like are passed
    over, and so are a wrapping object and a missing one: `{"result": {"claims": [...]}}` and
    `[...]` both make a model whose one field is `claims`. Of several values the last that fits
    counts. JSON that is cut off or damaged is not used: what is missing cannot be known.

    Args:
        reply: What the judge said.
        model: The form it was asked for.

    Raises:
        JudgeRefusalError: The judge declined instead.
        JudgeResponseError: Nothing in the reply is of that form.
    """
    text = visible(reply)
    readings = find_json(text)
    faults = None
    for value in _candidates(text, readings, model):
        try:
            return model.model_validate(value)
        except ValidationError as error:
            faults = faults or error.error_count()
    # Raised outside the handler: pydantic's error quotes the reply and must not be chained.
    attempts = [item for item in readings if not item.closed or _is_attempt(item.value, model)]
    if declines_to_judge(prose(text, attempts)):
        raise JudgeRefusalError("the judge declined to answer")
    what = "holds no complete JSON" if faults is None else f"has {faults} faults"
    raise JudgeResponseError(
        f"the judge's reply is not of the form asked for: it {what} ({len(reply)} characters)"
    )


def _is_attempt(value: JsonValue, model: type[BaseModel]) -> bool:
    """Whether a value was meant as the reply, not as an error: what it says is then no refusal."""
    return not isinstance(value, JsonObject) or not model.model_fields.keys().isdisjoint(value)


def _candidates(text: str, readings: list[Reading], model: type[BaseModel]) -> Iterator[JsonValue]:
    """What could be meant, best first."""
    whole = [item for item in readings if item.closed and not item.damaged]
    only = next(iter(model.model_fields)) if len(model.model_fields) == 1 else None
    for item in reversed(whole):
        if not isinstance(item.value, list):
            yield from _unwrapped(item.value, only)
        elif only and _fills_lines(text, item):
            yield JsonObject([(only, item.value)])
    if only and whole and len(whole) == len(readings):  # one object a line
        yield JsonObject([(only, [item.value for item in whole])])


def _unwrapped(value: JsonValue, only: str | None) -> Iterator[JsonValue]:
    for _ in range(_MOST_WRAPPERS):
        yield JsonObject([(only, value)]) if only and isinstance(value, list) else value
        if not isinstance(value, JsonObject) or len(value) != 1:
            return
        (value,) = value.values()


def _fills_lines(text: str, item: Reading) -> bool:
    """Whether a list stands on lines of its own; in prose, "[context]" is no list of claims."""
    before = text[max(0, item.start - _MARGIN) : item.start]
    starts = item.start <= _MARGIN or "\n" in before
    return (
        starts and not before.rpartition("\n")[2].strip() and bool(_LINE_END.match(text, item.end))
    )
