"""Parser of verdicts in the forms that the reference documents name.

[{"statement": "...", "reason": "...", "verdict": 1}, ...]        RAGAS
{"statements": [{"statement": "...", "is_supported": true}]}      rag_evals
Final verdict for each statement in order: Yes. No.               promptfoo, older RAGAS
1. The sky is blue. ... Verdict: Yes                              the same, before its last line
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

import pydantic_core

from ragaliq.core.results import JudgeUsage, Verdict
from ragaliq.errors import JudgeRefusalError, JudgeResponseError
from ragaliq.judges.base import ClaimVerdict, VerdictsResult
from ragaliq.judges.parsing.json_replies import declines_to_judge, find_json
from ragaliq.judges.vendors import error_in

# The reply's cost is accounted for once, by the judge that asked.
_COUNTED_ELSEWHERE = JudgeUsage()
_LONGEST = 500_000

VerdictRow = tuple[int, Verdict | None, dict[str, object]]
"""Position of the statement, its verdict (None where it settles nothing), and the row's fields."""


def parse_verdicts(reply: str, expected: int) -> list[ClaimVerdict]:
    """Read the verdicts out of a judge's reply, in the forms of the reference documents.

    Read are RAGAS's JSON (`[{"statement", "reason", "verdict": 0 or 1}]`, wrapped, fenced or cut
    off; also one object a line), "Final verdict for each statement in order: Yes. No.", numbered
    lists, and "Verdict: yes", in English. The last "Final verdict ..." with verdicts counts.

    1, true and yes mean SUPPORTED. 0, false and no mean NOT_ENOUGH_INFO, not CONTRADICTED: RAGAS
    asks whether a statement "can be directly inferred" from the context, and 0 says no more than
    that it cannot. "Contradicted" and "refuted" mean CONTRADICTED.

    A verdict that is missing, unreadable or given twice differently is omitted; the others keep
    the position of their statement: rows in JSON go by their place, lists by their numbers.

    Args:
        reply: The judge's reply.
        expected: Number of statements it was asked about. Verdicts beyond are returned too.

    Returns:
        At least one verdict, by ascending index, no index twice. `statement` and `reason` are
        empty where the reply gives none.

    Raises:
        JudgeRefusalError: The judge declined, and gave no verdict.
        JudgeResponseError: The reply holds no usable verdict, or answers in JSON that differ.
    """
    if len(reply) > _LONGEST:
        raise JudgeResponseError(f"the judge's reply is too long ({len(reply)} characters)")
    found = find_json(_NAN.sub("NaN", reply))
    values = [*found.values, *_whole_rows(found.cut_off)]
    values = [each for each in values if isinstance(each, list) or error_in(each) is None]
    if verdicts := _settled(_rows_in_json(values, expected)):
        return verdicts
    for rows in (
        _announced(found.prose),
        _numbered(found.prose),
        _labelled(found.prose, expected),
        _alone(found.prose, expected),
    ):
        if verdicts := _settled(rows):
            return verdicts
    if declines_to_judge(found.prose):
        raise JudgeRefusalError("the judge declined to give verdicts")
    raise JudgeResponseError(f"the judge's reply holds no usable verdict ({len(reply)} characters)")


def _settled(rows: Sequence[VerdictRow]) -> list[ClaimVerdict]:
    verdicts = [
        ClaimVerdict(
            index=position,
            verdict=verdict,
            statement=_text(fields, "statement"),
            reason=_text(fields, "reason"),
            supporting_chunk_ids=_chunk_ids(fields.get("supporting_chunk_ids")),
            usage=_COUNTED_ELSEWHERE,
        )
        for position, verdict, fields in rows
        if verdict is not None and position >= 0
    ]
    found = VerdictsResult(verdicts=verdicts).by_claim(max((row[0] for row in rows), default=0) + 1)
    return [found[position] for position in sorted(found)]


def _text(fields: dict[str, object], name: str) -> str:
    text = fields.get(name)
    return text if isinstance(text, str) else ""


def _chunk_ids(found: object) -> list[int]:
    ids = found if isinstance(found, list) else []
    return [each for each in ids if type(each) is int and each >= 0]


# --- JSON -----------------------------------------------------------------------------------------

# Python writes it so; json reads the other spellings.
_NAN = re.compile(r"(?<=[:\[,\s])nan(?=\s*[,}\]])")
_VERDICT_FIELDS = ("verdict", "is_supported")


def _rows_in_json(values: Sequence[object], expected: int) -> list[VerdictRow]:
    """The rows of the one list that holds verdicts; objects one a line are a list.

    Raises:
        JudgeResponseError: There are several, and they differ. A judge that quotes what it judges
            may repeat an answer that somebody forged.
    """
    is_list = len(values) > 1 and all(isinstance(value, dict) for value in values)
    if is_list and any(map(_is_row, values)) and not 0 < expected < len(values):
        lists: list[Sequence[object]] = [values]
    else:
        lists = [each for value in values for each in _lists(value)]
    answers = [[_row(position, item) for position, item in enumerate(each)] for each in lists]
    if any(answer != answers[0] for answer in answers):
        raise JudgeResponseError(f"the judge's reply holds {len(answers)} answers that differ")
    return answers[0] if answers else []


def _is_row(value: object) -> bool:
    return isinstance(value, dict) and any(name in value for name in _VERDICT_FIELDS)


def _lists(value: object) -> Iterator[Sequence[object]]:
    pending = [value]
    while pending:
        value = pending.pop()
        if isinstance(value, list) and any(map(_is_row, value)):
            yield value
        elif _is_row(value):
            yield [value]
        elif isinstance(value, (list, dict)):
            pending.extend(reversed(value.values() if isinstance(value, dict) else value))


def _row(position: int, item: object) -> VerdictRow:
    fields = item if isinstance(item, dict) else {}
    given = next((fields[name] for name in _VERDICT_FIELDS if name in fields), None)
    if isinstance(given, str):
        return position, _verdict_of(given), fields
    if isinstance(given, (bool, int, float)) and given in (0, 1):
        return position, "SUPPORTED" if given else "NOT_ENOUGH_INFO", fields
    return position, None, fields


def _whole_rows(cut_off: str) -> list[object]:
    """The rows of a list that has no end, without the last one, which may not be whole."""
    try:
        value = pydantic_core.from_json(cut_off, allow_partial=True)
    except ValueError:
        return []
    return [list(rows[:-1]) for rows in _lists(value)]


# --- Text -----------------------------------------------------------------------------------------

_WORD = (
    r"(?:(?P<no>not?[ _](?:enough[ _]info(?:rmation)?|supported)|unsupported|no|false|0(?:\.0)?)"
    r"|(?P<contradicted>contradicted|refuted)|(?P<yes>supported|yes|true|1(?:\.0)?))"
)
_MARKS = r"[\s*_`\"'“”(\[]{0,8}+"
_WHOLE = re.compile(rf"{_MARKS}{_WORD}[\s*_`\"'“”)\].!]*+\Z", re.IGNORECASE)
# "No" may begin a sentence that says something else, such as "No contradiction was found".
_FIRST = re.compile(
    rf"{_MARKS}{_WORD}(?=[*_`\"'”)\]]*+(?:[.,](?!\d)|[;:!\n]|\s[-–—]|\Z))", re.IGNORECASE
)


def _verdict_of(text: str, form: re.Pattern[str] = _WHOLE) -> Verdict | None:
    match = form.match(text)
    if match is None:
        return None
    if match["yes"]:
        return "SUPPORTED"
    return "CONTRADICTED" if match["contradicted"] else "NOT_ENOUGH_INFO"


_ANNOUNCED = re.compile(
    r"\bfinal verdicts? for each(?: of the)? statements?(?: in order)?[*_]{0,3}[:：]?",
    re.IGNORECASE,
)
# A number that names the statement, and the words up to what can follow them.
_ITEM = re.compile(
    r"(?<![\s.,;:*_#()\[\]\"'“”•–-])[\s.,;:*_#()\[\]\"'“”•–-]*+(?:(?:statement\s?)?(?P<number>\d{1,4})[.):]{1,2}\s{0,3}(?=[^\W\d]))?"
    r"(?P<said>[^\s.,;()*]++(?:[^\S\n]{1,3}(?![(\[]?\d{1,4}[.):])[^\s.,;()*]++)*+)",
    re.IGNORECASE,
)
_LONGEST_ITEM = 3  # words; more than that is a sentence, and the verdicts are over


def _announced(text: str) -> list[VerdictRow]:
    """Verdicts after the last "Final verdict for each statement in order:" that has some."""
    end = len(text)
    for marker in reversed(list(_ANNOUNCED.finditer(text))):
        rows = _sequence(text[marker.end() : end])
        if any(verdict for _, verdict, _ in rows):
            return rows
        end = marker.start()
    return []


def _sequence(text: str, *, to_end: bool = False) -> list[VerdictRow]:
    """Verdicts at the beginning of a text; with `to_end` only if nothing else follows."""
    items: list[tuple[int | None, Verdict | None]] = []
    for match in _ITEM.finditer(text):
        if len(match["said"].split()) > _LONGEST_ITEM:
            if to_end:
                return []
            break
        number = match["number"]
        items.append((int(number) if number else None, _verdict_of(match["said"])))
    # Where some have a number, what has none only explains.
    numbered = [(number, verdict) for number, verdict in items if number is not None]
    return _by_number(numbered or [(at, verdict) for at, (_, verdict) in enumerate(items)])


def _by_number(items: Sequence[tuple[int, Verdict | None]]) -> list[VerdictRow]:
    """Rows by their numbers, which count from 1 unless a 0 is among them."""
    first = 0 if any(number == 0 for number, _ in items) else 1
    return [(number - first, verdict, {}) for number, verdict in items]


_LABEL = re.compile(rf"\bverdict\b[*_]{{0,3}}\s?[:=](?P<said>{_MARKS}[^\n]*)", re.IGNORECASE)
_NUMBER = re.compile(
    r"^[^\S\n]*+[-*_>#|]{0,4}[^\S\n]?(?:statement\s)?[(\[*]{0,3}(?P<number>\d{1,4})[.):\]]{1,2}[*_]{0,3}",
    re.IGNORECASE | re.MULTILINE,
)


def _numbered(text: str) -> list[VerdictRow]:
    """A numbered list: each item's labelled verdict, else the word that it begins with."""
    markers = list(_NUMBER.finditer(text))
    items: list[tuple[int, Verdict | None]] = []
    for marker, following in zip_longest(markers, markers[1:]):
        body = text[marker.end() : following.start() if following else len(text)].strip()
        labels = _LABEL.findall(body)
        verdict = _verdict_of(labels[-1] if labels else body, _FIRST)
        # "Yes, the sky is blue. - No": the statement begins with a word for a verdict.
        last = _verdict_of(body.partition("\n")[0].rpartition(" - ")[2])
        items.append((int(marker["number"]), verdict if last in (None, verdict) else None))
    return _by_number(items)


def _labelled(text: str, expected: int) -> list[VerdictRow]:
    """Verdicts after "Verdict:", if there are as many as statements."""
    labels = _LABEL.findall(text)
    if len(labels) != expected:
        return []
    return [(position, _verdict_of(said, _FIRST), {}) for position, said in enumerate(labels)]


def _alone(text: str, expected: int) -> list[VerdictRow]:
    """Verdicts of a text that consists of one for each statement and nothing else."""
    rows = _sequence(text, to_end=True)
    is_complete = len(rows) == expected and all(verdict for _, verdict, _ in rows)
    return rows if is_complete else []
