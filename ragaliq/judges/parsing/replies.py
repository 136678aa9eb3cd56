"""Verdicts and other replies, from judges that were not or could not be held to a schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from ragaliq.core.printable import encodable
from ragaliq.errors import JudgeError, JudgeRefusalError, JudgeResponseError
from ragaliq.judges.base import ClaimVerdict
from ragaliq.judges.language.refusals import plain, refuses
from ragaliq.judges.parsing.json_reader import (
    JsonObject,
    JsonReader,
    JsonValue,
    Reading,
    walk,
)
from ragaliq.judges.parsing.json_rows import is_attempt, json_groups
from ragaliq.judges.parsing.rows import Group, decided, settle, settle_values
from ragaliq.judges.parsing.texts import (
    announced_group,
    bare_group,
    labelled_group,
    line_group,
    numbered_groups,
)
from ragaliq.judges.wire import (
    ClaimsReply,
    GradedReply,
    ScoreReply,
    VerdictsReply,
    claim_id,
    reply_fields,
)

R = TypeVar("R", bound=BaseModel)

_LONGEST = 500_000
"""Characters of a reply that are read; no judge is asked for so much."""
_MOST_WRAPPERS = 3
_MARGIN = 40  # characters a list may be indented
_LINE_END = re.compile(r"[^\S\n]*+(?:\n|\Z)")


def parse_verdicts(reply: str, expected: int) -> list[ClaimVerdict]:
    """Read the verdicts out of a judge's reply, in whatever form it gave them.

    Read are RAGAS's JSON (`[{"statement", "reason", "verdict": 0 or 1}]`, wrapped, fenced, cut off
    or otherwise damaged), one object a line, "Final verdict for each statement in order: Yes. No.",
    numbered lists, "Verdict: yes", and bare words, in English. Of several lists in words the last
    complete one counts: models draft before they decide.

    1, true and yes mean SUPPORTED. 0, false and no mean NOT_ENOUGH_INFO, not CONTRADICTED: RAGAS
    asks whether a statement "can be directly inferred" from the context, and 0 says no more than
    that it cannot. Words that say more, such as "contradicted" or "refuted", are kept.

    A verdict that is missing, unreadable, given twice differently or only begun is omitted; the
    others keep the position of their statement. Rows with an id or number go by it.

    Args:
        reply: What the judge said.
        expected: How many statements it was asked about. Verdicts beyond are returned too.

    Returns:
        At least one verdict, by ascending index, no index twice. `statement` and `reason` are
        empty where the reply gives none.

    Raises:
        JudgeRefusalError: The judge declined, and gave no verdict.
        JudgeResponseError: The reply holds no usable verdict, or answers in JSON that differ.
    """
    text = _visible(reply)
    readings = _find_json(text)
    said = _prose(text, [item for item in readings if not item.closed or is_attempt(item.value)])
    alone = len(readings) == 1 and not _prose(text, readings).strip()
    groups = json_groups(text, readings, expected=expected, alone=alone)
    if verdicts := settle_values(groups, expected) or _from_text(said, expected):
        return verdicts
    if _declines_to_judge(said):
        raise JudgeRefusalError("the judge declined to give verdicts")
    raise JudgeResponseError(f"the judge's reply holds no usable verdict ({len(reply)} characters)")


def _from_text(text: str, expected: int) -> list[ClaimVerdict]:
    for groups in _text_groups(text, expected):
        if verdicts := settle([group for group in groups if group], expected):
            return verdicts
    return []


def _text_groups(text: str, expected: int) -> Iterator[list[Group]]:
    """What could be the answer, the most explicit form first."""
    yield [announced_group(text)]
    yield [bare_group(text, expected)]
    numbered, labelled = numbered_groups(text), labelled_group(text)
    # With no more than one verdict in the list, the statements are numbered and not the verdicts.
    if not len(labelled) == expected > 1 >= max(map(decided, numbered), default=0):
        yield numbered
    yield [labelled]
    if not _UNWILLING.match(plain(text)):  # "No, I will not help with that"
        yield [line_group(text, expected)]


def parse_json_reply(reply: str, model: type[R]) -> R:
    """Read a reply that should have been JSON of a given form.

    Code fences, prose, thoughts and comments around it, trailing commas and the like are passed
    over, and so are a wrapping object and a missing one: `{"result": {"claims": [...]}}` and
    `[...]` both make a model whose one field is `claims`. JSON that is cut off or damaged is not
    used: what is missing cannot be known.

    Args:
        reply: What the judge said.
        model: The form it was asked for.

    Raises:
        JudgeRefusalError: The judge declined instead.
        JudgeResponseError: Nothing in the reply is of that form, or several values that differ are.
    """
    text = _visible(reply)
    readings = _find_json(text)
    faults = None
    answers: list[R] = []
    for forms in _candidates(text, readings, model):
        for value in forms:
            try:
                answers.append(model.model_validate(value))
                break
            except ValidationError as error:
                faults = faults or error.error_count()
    if answers and all(answer == answers[0] for answer in answers):
        return answers[0]
    # Raised outside the handler: pydantic's error quotes the reply and must not be chained.
    attempts = [item for item in readings if not item.closed or _is_attempt(item.value, model)]
    if _declines_to_judge(_prose(text, attempts)):
        raise JudgeRefusalError("the judge declined to answer")
    what = "holds no complete JSON" if faults is None else f"has {faults} faults"
    if answers:
        what = f"holds {len(answers)} answers that differ"
    raise JudgeResponseError(
        f"the judge's reply is not of the form asked for: it {what} ({len(reply)} characters)"
    )


def _is_attempt(value: JsonValue, model: type[BaseModel]) -> bool:
    """Whether a value was meant as the reply, not as an error: what it says is then no refusal."""
    return not isinstance(value, JsonObject) or not model.model_fields.keys().isdisjoint(value)


def _candidates(
    text: str, readings: list[Reading], model: type[BaseModel]
) -> Iterator[Iterable[JsonValue]]:
    """For each value that could be meant, the forms it may have."""
    whole = [item for item in readings if item.closed and not item.damaged and _is_clear(item)]
    only = next(iter(model.model_fields)) if len(model.model_fields) == 1 else None
    for item in whole:
        if not isinstance(item.value, list):
            yield _unwrapped(item.value, only)
        elif only and _fills_lines(text, item):
            yield [JsonObject([(only, item.value)])]
    if only and whole and len(whole) == len(readings):  # one object a line
        yield [JsonObject([(only, [item.value for item in whole])])]


def _is_clear(item: Reading) -> bool:
    """Whether no key was given twice with different values."""
    return not any(isinstance(part, JsonObject) and part.disputed for part in walk(item.value))


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


# --- Replies in another form than was asked for -------------------------------------------------


def _only_text(item: Any) -> Any:
    """The text of `{"claim": "..."}` and the like."""
    if not isinstance(item, dict):
        return item
    texts = [value for value in item.values() if isinstance(value, str)]
    return texts[0] if len(texts) == 1 else item


class _LooseScore(BaseModel):
    # Another scale, such as 8 of 10, must not pass for a 1.
    score: float = Field(ge=0.0, le=1.0, allow_inf_nan=False)
    reasoning: str = ""


class _LooseClaims(BaseModel):
    claims: Sequence[Annotated[str, BeforeValidator(_only_text)]]


def read_reply(text: str, reply: type[R], expected: int | None = None) -> R:
    """Read a reply, in its own form or in another that says the same.

    Args:
        text: What the model said.
        reply: The form it was asked for.
        expected: How many verdicts it was asked for, where that is known.

    Raises:
        JudgeRefusalError: The model declined.
        JudgeResponseError: The reply says nothing that can be used.
    """
    if issubclass(reply, ScoreReply):
        return reply.model_validate(parse_json_reply(text, _LooseScore).model_dump())
    if issubclass(reply, ClaimsReply):
        return reply.model_validate(parse_json_reply(text, _LooseClaims).model_dump())
    failure: JudgeError
    try:
        return parse_json_reply(text, reply)
    except JudgeError as error:
        failure = error
    if issubclass(reply, VerdictsReply):
        rows = [
            {"claim_id": claim_id(verdict.index or 0), **reply_fields(verdict)}
            for verdict in parse_verdicts(text, expected or 0)
        ]
        return reply.model_validate({"verdicts": rows})
    if issubclass(reply, GradedReply):
        rows = [
            {"statement": verdict.statement, **reply_fields(verdict)}
            for verdict in parse_verdicts(text, 0)
            if verdict.statement.strip()
        ]
        if rows:
            return reply.model_validate({"statements": rows})
    raise failure


# --- JSON and what stands around it ------------------------------------------------------------

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
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_FENCE = re.compile(r"^[^\S\n]{0,24}+(?:```|~~~)[\w-]{0,20}[^\S\n]*+$", re.MULTILINE)
_STARTS_JSON = re.compile(r"\s*+(?:```\w{0,10}\s*+)?[\[{\"]")


def _visible(reply: str) -> str:
    """A reply without what the model thought aloud first; unwrapped where it is a JSON string.

    Lone surrogates are replaced: no encoding can carry them.

    Raises:
        JudgeResponseError: The reply is too long to be one.
    """
    if len(reply) > _LONGEST:
        raise JudgeResponseError(f"the judge's reply is too long ({len(reply)} characters)")
    text = encodable(_spoken(reply.lstrip("\ufeff")))
    if text.lstrip().startswith('"'):
        with suppress(ValueError):
            return encodable(json.loads(text))
    return text


def _spoken(text: str) -> str:
    if (opening := _THINKING.match(text)) is not None:
        end = _THOUGHT.search(text, opening.end())
        return text[end.end() :] if end else ""
    if not _STARTS_JSON.match(text) and (end := _THOUGHT_LINE.search(text)) is not None:
        # Chat templates often write the opening tag themselves, so that only the end is seen.
        return text[end.end() :]
    return text


def _find_json(text: str) -> list[Reading]:
    """The lists and objects in a text, in order; those inside others are not listed."""
    readings, attempts, at = [], _STRICT_ATTEMPTS, 0
    has_surrogates = _SURROGATE.search(text) is not None
    while (opening := _OPENS.search(text, at)) is not None:
        start, reading = opening.start(), None
        if attempts:
            try:
                value, end = _DECODER.raw_decode(text, start)
                if has_surrogates:  # the decoder lets lone ones pass, which no encoding can carry
                    json.dumps(value, ensure_ascii=False).encode()
                reading = Reading(value, start, end)
            except (ValueError, RecursionError):
                attempts -= 1
        reading = reading or JsonReader(text, start).read()
        readings.append(reading)
        at = max(reading.end, opening.end())
    return readings


def _prose(text: str, readings: list[Reading]) -> str:
    """A text without some of its JSON, and without the lines that fence code."""
    parts, at = [], 0
    for reading in readings:
        parts.append(text[at : reading.start])
        at = reading.end
    return _FENCE.sub("", "\n".join([*parts, text[at:]]))


# --- Refusals ------------------------------------------------------------------------------------
# Looked for only without a verdict: "No - the answer says 'I cannot tell'" is one.

_LONGEST_REFUSAL = 4_000  # characters; a refusal does not come later
_MOST_SENTENCES = 25
_PAGE = re.compile(r"\s*+<(?:!doctype|html|head|body|\?xml)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"[^.!?\n。！？]+")

# On text made plain by `refusals.plain`: lower case, "can not", "i am".
_JUDGES = re.compile(
    r"\bi (?:really |simply )?(?:can|could|will|shall) not\b|\bi apologi[sz]e\b|"
    r"\b(?:i|we) (?:am|are) (?:\w{1,20} )?(?:unable|not able|not allowed|not permitted)\b|"
    r"\b(?:insufficient|not enough|inadequate) (?:information|context|evidence|data)\b|"
    r"\b(?:can not|could not|unable to|impossible to) (?:be )?(?:determine|judge|assess|evaluate|"
    r"verif|rate|decide|comply|help|assist)|\bno verdicts?\b|\b(?:refuse|decline) to\b|"
    r"\bagainst (?:my|our|the) (?:\w{1,20} )?(?:policy|policies|guidelines|rules|principles)\b|"
    r"\bnot (?:contain|provide|have|include|offer|give) (?:enough|sufficient)\b|"
    r"\bas an ai\b|\bcontent policy\b|"
    r"\b(?:kann|können) (?:\w{1,20} ){0,8}?(?:nicht|keine) (?:\w{1,20} ){0,4}?(?:beurteil|bewert|"
    r"entscheid|einschätz|bestimm|überprüf|helf|beantwort)|\bmöchte (?:\w{1,20} ){0,3}?nicht\b|"
    r"\bje ne (?:peux|suis|souhaite|veux)\b|\bno (?:puedo|podemos|es posible)\b|"
    r"\bnon (?:posso|sono in grado|è possibile)\b|\bnão (?:posso|consigo|é possível)\b|"
    r"\b(?:ik kan|kan ik) (?:\w{1,20} ){0,6}?(?:niet|geen)\b|\bnie (?:mogę|jestem w stanie)\b|"
    r"\b\w{1,20}(?:amam|emem|amıyorum|emiyorum)\b|\bне (?:могу|можем|буду|имею права)\b|"
    r"(?:无法|無法|不能|不会)(?:对|對|为|為|就)?.{0,12}?(?:判断|判斷|评估|評估|评判|確定|确定|回答|提供|协助|協助|帮助|幫助|完成)|"
    r"(?:できません|できかねます|いたしかねます)|(?:할|드릴|판단할|평가할|도와드릴) 수 없|"
    r"لا (?:أستطيع|يمكنني|أقدر)|नहीं (?:कर|दे|बता) सकत"
)
_UNWILLING = re.compile(
    r"\w{1,8}\W{1,3}(?:(?:i am )?(?:sorry|afraid)\W{1,3}(?:but )?)?"
    r"(?:i|we) (?:can not|will not|refuse|decline|am not able|am unable|am not allowed)\b"
    r".{0,40}?\b(?:help|assist|comply|do (?:that|this|so)|fulfil|judge|evaluate|continue|discuss|"
    r"participate|provide|respond)"
)


def _declines_to_judge(text: str) -> bool:
    """Whether a reply without verdicts declines; pages of markup, as proxies send, do not."""
    if _PAGE.match(text):
        return False
    sentences = _SENTENCE.findall(text[:_LONGEST_REFUSAL])[:_MOST_SENTENCES]
    return any(_JUDGES.search(said) or refuses(said) for said in map(plain, sentences))
