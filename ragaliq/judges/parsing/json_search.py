"""Tells the JSON in a reply from what stands around it."""

from __future__ import annotations

import json
import re

from ragaliq.judges.parsing.json_reader import Reading, read_value
from ragaliq.judges.parsing.json_tokens import plain_text
from ragaliq.judges.parsing.json_types import JsonObject

__all__ = ["find_json", "prose", "visible"]

_STRICT_ATTEMPTS = 8  # failed ones; each may look at all the text that is left
_DECODER = json.JSONDecoder(object_pairs_hook=JsonObject, strict=False)

# A bracket in prose, such as "[see note" or "{sic}", opens no JSON.
_OPENS = re.compile(
    r"\[(?=\s*+(?:[\[{\"'“\]]|//|/\*|\#|[\w.+-]{1,20}+(?:[ _-]\w{1,20}+){0,3}\s*+[,，\]]))"
    r"|\{(?=\s*+(?:[\"'“}]|//|/\*|\#|[\w$-]{1,64}+\s*+[:：=]))"
)
_THINKING = re.compile(r"\s*+<(think|thinking|reasoning|thought)>", re.IGNORECASE)
_THOUGHT = re.compile(r"</(?:think|thinking|reasoning|thought)>", re.IGNORECASE)
# Not inside a JSON string, which cannot hold a line break.
_THOUGHT_LINE = re.compile(rf"{_THOUGHT.pattern}[^\S\n]*+(?:\n|\Z)", re.IGNORECASE)
_LONE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|"
    r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\.",
    re.DOTALL,
)
_FENCE = re.compile(r"^[^\S\n]{0,24}+(?:```|~~~)[\w-]{0,20}[^\S\n]*+$", re.MULTILINE)
_STARTS_JSON = re.compile(r"\s*+(?:```\w{0,10}\s*+)?[\[{\"]")


def visible(reply: str) -> str:
    """A reply without what the model thought aloud first; unwrapped where it is a JSON string.

    Lone surrogates, also those JSON spells as escapes, are replaced: no encoding can carry them.
    """
    text = _mended(_spoken(reply.lstrip("\ufeff")))
    if text.lstrip().startswith('"'):
        try:
            inner = json.loads(text)
        except (ValueError, RecursionError):
            return text
        return _mended(inner) if isinstance(inner, str) else text
    return text


def _spoken(text: str) -> str:
    if (opening := _THINKING.match(text)) is not None:
        end = _THOUGHT.search(text, opening.end())
        return text[end.end() :] if end else ""
    if not _STARTS_JSON.match(text) and (end := _THOUGHT_LINE.search(text)) is not None:
        # Chat templates often write the opening tag themselves, so that only the end is seen.
        return text[end.end() :]
    return text


def _mended(text: str) -> str:
    text = plain_text(text)
    return _ESCAPE.sub(_unless_lone, text) if _LONE_ESCAPE.search(text) else text


def _unless_lone(escape: re.Match[str]) -> str:
    return "\\ufffd" if _LONE_ESCAPE.fullmatch(escape.group()) else escape.group()


def find_json(text: str) -> list[Reading]:
    """The lists and objects in a text, in order; those inside others are not listed."""
    readings, attempts, at = [], _STRICT_ATTEMPTS, 0
    while (opening := _OPENS.search(text, at)) is not None:
        reading = None
        if attempts:
            reading = _strict(text, opening.start())
            attempts -= reading is None
        reading = reading or read_value(text, opening.start())
        readings.append(reading)
        at = max(reading.end, opening.end())
    return readings


def prose(text: str, readings: list[Reading]) -> str:
    """A text without some of its JSON, and without the lines that fence code."""
    parts, at = [], 0
    for reading in readings:
        parts.append(text[at : reading.start])
        at = reading.end
    return _FENCE.sub("", "\n".join([*parts, text[at:]]))


def _strict(text: str, start: int) -> Reading | None:
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return Reading(value, start, end)
