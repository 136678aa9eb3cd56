"""Compares the judge's verdicts with what a careful reader says: the demo hides no mistakes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group
from rich.text import Text

from handbook.answers import claims_of
from handbook.questions import Question
from ragaliq import Evaluation

__all__ = ["disagreements", "reader_view"]


def disagreements(
    questions: Sequence[Question], live: Mapping[str, Evaluation]
) -> tuple[list[str], int]:
    """Where the judge and the reader differ about a whole answer.

    Returns:
        The ids of those answers, and how many answers could be compared.
    """
    different, compared = [], 0
    for item in questions:
        verdicts = [claim.verdict for claim in claims_of(live[item.id].results)]
        if item.grounded is None or not verdicts:
            continue
        compared += 1
        if all(verdict == "SUPPORTED" for verdict in verdicts) != item.grounded:
            different.append(item.id)
    return different, compared


def reader_view(questions: Sequence[Question], live: Mapping[str, Evaluation]) -> Group:
    """The comparison in a sentence, with the answers that the judge gets wrong by name."""
    different, compared = disagreements(questions, live)
    line = f"The judge and a careful reader agree on {compared - len(different)} of {compared}"
    lines = [Text(f"{line} answers that can be checked.")]
    if different:
        lines.append(Text(f"The judge gets wrong: {', '.join(different)}.", style="bold"))
    lines.append(Text("The answers were chosen to show their kinds: this measures no accuracy."))
    return Group(*lines)
