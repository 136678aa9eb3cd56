"""Parser of replies in JSON: the one value of a given form, or the problem."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from ragaliq.core.printable import encodable
from ragaliq.core.thoughts import without_thoughts
from ragaliq.errors import JudgeRefusalError, JudgeResponseError
from ragaliq.judges.language.refusals import is_refusal, normalize
from ragaliq.judges.vendors import error_in

R = TypeVar("R", bound=BaseModel)

_LONGEST = 500_000
"""Characters of a reply that are read; no judge is asked for so much."""


def parse_json_reply(reply: str, model: type[R]) -> R:
    """Read a reply that should have been JSON of a given form.

    Thoughts in tags of any name, a code fence and lines of prose around the JSON are ignored.
    Objects around the value are too, if it is under `arguments`, `parameters`, `output`, `result`
    or the form's name, as in `{"result": {"claims": [...]}}`, and none has an `error`. The JSON
    itself must be valid.

    Args:
        reply: The judge's reply.
        model: The form it was asked for.

    Raises:
        JudgeRefusalError: The judge declined instead.
        JudgeResponseError: Nothing in the reply is of that form, several values that differ are, or
            one is in another place.
    """
    found, fault = find_reply(reply, model)
    if found is None:
        raise JudgeResponseError(
            f"the judge's reply is not of the form asked for: {fault} ({len(reply)} characters)"
        )
    return found


def find_reply(reply: str, model: type[R]) -> tuple[R | None, str]:
    """Return the value of a given form in a reply, or None and the problem.

    The problem names fields and types, and quotes nothing.

    Raises:
        JudgeRefusalError: The judge declined instead.
    """
    if not reply.strip():
        return None, "it is empty"
    if len(reply) > _LONGEST:
        return None, "it is too long"
    found = find_json(reply)
    if found.fault:
        return None, found.fault
    answers: list[R] = []
    fault = misplaced = ""
    for value in found.values:
        for candidate, problem in _candidates(value, model):
            try:
                answers.append(model.model_validate(candidate))
            except ValidationError as error:
                fault = fault or _first_fault(error)
            else:
                misplaced = misplaced or problem
    if any(answer != answers[0] for answer in answers):
        return None, f"it holds {len(answers)} answers that differ"
    if answers:
        return (None, misplaced) if misplaced else (answers[0], "")
    if not fault and declines_to_judge(found.prose):
        raise JudgeRefusalError("the judge declined to answer")
    wanted = ", ".join(f'"{name}"' for name in model.model_fields)
    return None, fault or (
        f"its JSON has no object with {wanted}" if found.values else "it holds no JSON object"
    )


# Calls of tools use the first two, models that reason first the others. Under any other name an
# object of the form may be an error's request, an example, a schema's field or a draft.
_WRAPPERS = {"arguments", "parameters", "output", "result"}


def _candidates(value: object, model: type[BaseModel]) -> Iterator[tuple[dict[str, Any], str]]:
    """The outermost objects that have all fields of the form; with the problem of their place."""
    wanted = {name for name, field in model.model_fields.items() if field.is_required()}
    wrappers = _WRAPPERS | {model.__name__}
    pending = [(value, "")]
    while pending:
        value, problem = pending.pop()
        if isinstance(value, list):
            pending.extend((item, problem) for item in reversed(value))
        if not isinstance(value, dict):
            continue
        if "error" not in model.model_fields and error_in(value) is not None:
            problem = "it reports an error"
        if wanted <= value.keys():
            yield value, problem
            continue
        inside = problem or "its JSON is inside another object"
        for key, item in reversed(value.items()):
            pending.append((item, problem if key in wrappers else inside))


def _first_fault(error: ValidationError) -> str:
    # Places are field names and positions, and messages name kinds: neither is the reply's text.
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"


# --- JSON and what stands around it ------------------------------------------------------------

# Directly after the value before it, or at the beginning of a line; also behind tags such as
# <tool_call>. A bracket that could open no JSON, as in "[note]", is prose.
_BRACKET = r"(?=\{\s*[\"}]|\[\s*(?:[\[{\"\]\-\d]|true\b|false\b|null\b|NaN\b|Infinity\b))"
_NEXT = re.compile(rf"\s*+(?:<[^<>\n]{{1,64}}>\s*+)*+{_BRACKET}")
_LINE = re.compile(rf"^[^\S\n]*+(?:<[^<>\n]{{1,64}}>[^\S\n]*+)*+{_BRACKET}", re.MULTILINE)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_FENCE = re.compile(r"^[^\S\n]*+(?:```|~~~)[\w-]*+[^\S\n]*+$", re.MULTILINE)


class FoundJson(NamedTuple):
    """JSON of a reply, the rest of the reply, and the problem."""

    values: Sequence[object]
    prose: str
    fault: str = ""
    cut_off: str = ""
    """The text from a value on that has no end."""


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def find_json(reply: str) -> FoundJson:
    """Find the lists and objects that a reply consists of, without its thoughts.

    Reading ends at the first that is not JSON: what follows may be the rest of it.
    """
    reply = reply.removeprefix("\ufeff")
    text = without_thoughts(reply)
    if text != reply and _is_json(reply):  # it only quotes such a tag
        text = reply
    text = encodable(text)
    values: list[object] = []
    around: list[str] = []
    at, has_surrogates = 0, _SURROGATE.search(text) is not None
    fault = cut_off = ""
    while (opening := _NEXT.match(text, at) or _LINE.search(text, at)) is not None:
        around.append(text[at : opening.end()])
        try:
            value, at = _DECODER.raw_decode(text, opening.end())
            if has_surrogates:  # the decoder lets half a pair pass
                json.dumps(value, ensure_ascii=False).encode()
        except _GivenTwiceError:
            fault = "it gives a key twice with different values"
        except RecursionError:
            fault = "its JSON is nested too deeply"
        except json.JSONDecodeError as error:
            is_cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
            fault = f"its JSON is {'cut off' if is_cut else 'damaged'} at character {error.pos}"
            cut_off = text[opening.end() :] if is_cut else ""
        except ValueError:  # a huge number, or half a surrogate pair
            fault = "its JSON is damaged"
        if fault:
            break
        values.append(value)
    else:
        around.append(text[at:])
    said = _outside_thoughts(values, "\0".join(part.replace("\0", " ") for part in around) + fault)
    if values and not said:
        fault = fault or "its JSON is part of its thoughts"
    return FoundJson(said, _FENCE.sub("", "\n".join(around)).strip(), fault, cut_off)


# A start tag at the beginning of a line, or after another tag, must have its end; inside a sentence
# it is a word.
_NAME = r"[a-z][\w:-]{0,40}+"
_TAG = re.compile(
    rf"""(?:(?P<first>^[^\S\n]*+|(?<=>))(?=<))? [<\[](?P<opens>{_NAME})(?:\s[^<>\n]{{0,200}})?[>\]]
    | [<\[]/(?P<closes>{_NAME})[>\]]
    | \0""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_MARKUP = re.compile(rf"<[^<>\n]{{1,64}}>|\[/?{_NAME}\]|```\w*+|~~~", re.IGNORECASE)


def _outside_thoughts(values: Sequence[object], text: str) -> list[object]:
    """The values that a reply consists of, by the tags in its text, with a NUL for each value.

    A tagged block at the end of the reply is the reply itself, and so are others with its tag. Any
    other block holds thoughts. So does the text before an end tag without its start, and the text
    after a start tag without its end.
    """
    end = len(_MARKUP.sub(lambda found: " " * len(found[0]), text).rstrip())
    said, left = list[object](), [*values]
    of_reply, standing, in_thoughts = set[str](), Counter[str](), 0
    for tag in reversed([*_TAG.finditer(text)]):  # so that a block's end is met first
        if closes := (tag["closes"] or "").lower():
            if tag.start() >= end:
                of_reply.add(closes)
            standing[closes] += 1
            in_thoughts += closes not in of_reply
        elif opens := (tag["opens"] or "").lower():
            if standing[opens]:
                standing[opens] -= 1
                in_thoughts -= opens not in of_reply
            elif tag["first"] is not None:
                said.clear()
        else:
            value = left.pop()
            if not in_thoughts:
                said.append(value)
    return said[::-1]


class _GivenTwiceError(ValueError):
    """A key has two different values in one object."""


def _object_of(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs) and any(found[key] != value for key, value in pairs):
        raise _GivenTwiceError
    return found


# Line breaks inside strings are the commonest slip of small models, and leave no doubt.
_DECODER = json.JSONDecoder(object_pairs_hook=_object_of, strict=False)


# --- Refusals ------------------------------------------------------------------------------------
# Looked for only where there is no answer: "No - the text says 'I cannot tell'" is a verdict.

_LONGEST_REFUSAL = 4_000  # characters; a refusal does not come later
_MOST_SENTENCES = 25
_PAGE = re.compile(r"\s*+<(?:!doctype|html|head|body|\?xml)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"[^.!?\n。！？]+")

# For text from `refusals.normalize`: lower case, "can not", "i am".
_DECLINES = re.compile(
    r"\bi (?:really |simply )?(?:can|could|will|shall) not\b|\bi apologi[sz]e\b|"
    r"\b(?:i|we) (?:am|are) (?:\w{1,20} )?(?:unable|not able|not allowed|not permitted)\b|"
    r"\b(?:insufficient|not enough|inadequate) (?:information|context|evidence|data)\b|"
    r"\b(?:can not|could not|unable to|impossible to) (?:be )?(?:determine|judge|assess|evaluate|"
    r"verif|rate|decide|comply|help|assist)|\bno verdicts?\b|\b(?:refuse|decline) to\b|"
    r"\bagainst (?:my|our|the) (?:\w{1,20} )?(?:policy|policies|guidelines|rules|principles)\b|"
    r"\bnot (?:contain|provide|have|include|offer|give) (?:enough|sufficient)\b|"
    r"\bas an ai\b|\bcontent policy\b"
)


def declines_to_judge(text: str) -> bool:
    """Check whether a reply without verdicts declines; pages of markup from proxies do not."""
    if _PAGE.match(text):
        return False
    sentences = _SENTENCE.findall(text[:_LONGEST_REFUSAL])[:_MOST_SENTENCES]
    return any(_DECLINES.search(said) for said in map(normalize, sentences)) or is_refusal(text)
