"""Verdicts from the reply of a judge that was not held to a schema."""

from __future__ import annotations

from collections.abc import Iterator

from ragaliq.errors import JudgeRefusalError, JudgeResponseError
from ragaliq.judges.base import StatementVerdict
from ragaliq.judges.parsing.declining import declines_to_judge, is_unwilling
from ragaliq.judges.parsing.json_rows import is_attempt, json_groups
from ragaliq.judges.parsing.json_search import find_json, prose, visible
from ragaliq.judges.parsing.labels import labelled_group
from ragaliq.judges.parsing.rows import Group, decided, settle
from ragaliq.judges.parsing.sequences import announced_group, bare_group
from ragaliq.judges.parsing.text_rows import line_group, numbered_groups

__all__ = ["parse_verdicts"]


def parse_verdicts(reply: str, expected: int) -> list[StatementVerdict]:
    """Read the verdicts out of a judge's reply, in whatever form it gave them.

    Read are RAGAS's JSON (`[{"statement", "reason", "verdict": 0 or 1}]`, wrapped, fenced, cut off
    or otherwise damaged), one object a line, "Final verdict for each statement in order: Yes. No.",
    numbered lists, "Verdict: yes", and bare words in some twenty languages. Of several answers in
    one reply the last complete one counts.

    1, true and yes mean SUPPORTED. 0, false and no mean NOT_ENOUGH_INFO, not CONTRADICTED: RAGAS
    asks whether a statement "can be directly inferred" from the context, and 0 says no more than
    that it cannot. Words that say more, such as "contradicted" or "refuted", are kept.

    A verdict that is missing, unreadable, given twice differently or only begun is left out; the
    others keep the position of their statement. Rows with an id or number go by it.

    Args:
        reply: What the judge said.
        expected: How many statements it was asked about. Verdicts beyond are returned too.

    Returns:
        At least one verdict, by ascending index, no index twice. `statement` and `reason` are
        empty where the reply gives none.

    Raises:
        JudgeRefusalError: The judge declined, and gave no verdict.
        JudgeResponseError: The reply holds no usable verdict.
    """
    text = visible(reply)
    readings = find_json(text)
    said = prose(text, [item for item in readings if not item.closed or is_attempt(item.value)])
    alone = len(readings) == 1 and not prose(text, readings).strip()
    verdicts = settle(json_groups(text, readings, alone=alone), expected)
    if not verdicts:
        verdicts = _from_text(said, expected)
    if verdicts:
        return verdicts
    if declines_to_judge(said):
        raise JudgeRefusalError("the judge declined to give verdicts")
    raise JudgeResponseError(
        f"the judge's reply holds no usable verdict ({len(reply)} characters, "
        f"{expected} verdicts expected)"
    )


def _from_text(text: str, expected: int) -> list[StatementVerdict]:
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
    if not is_unwilling(text):
        yield [line_group(text, expected)]
