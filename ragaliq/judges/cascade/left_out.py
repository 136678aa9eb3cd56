"""The embedded judge's verdicts on labelled claims it was not trained on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ragaliq.errors import DatasetError
from ragaliq.judges.base import ClaimVerdict
from ragaliq.judges.local.training.data import FAMILIES, Labelled, count_words, read_data
from ragaliq.judges.local.training.fitting import train
from ragaliq.judges.local.verdict import examine

__all__ = ["Screened", "screened_sets"]


@dataclass(frozen=True, slots=True)
class Screened:
    """A labelled claim and what the screen said.

    Attributes:
        verdict: The screen's, not calibrated.
        is_supported: What people say.
        cluster: The context; claims about one context are never torn apart.
    """

    verdict: ClaimVerdict
    is_supported: bool
    cluster: int


def screened_sets(folder: Path) -> Iterator[tuple[str, list[Screened]]]:
    """Each set with the verdicts of a screen trained without the set's family.

    Args:
        folder: Holds `<set>.jsonl.gz`, or some of them.

    Raises:
        DatasetError: There are not two families, or a file cannot be read.
    """
    present = [
        name
        for names in FAMILIES.values()
        for name in names
        if (folder / f"{name}.jsonl.gz").exists()
    ]
    data = read_data(folder, sets=present)
    for names in FAMILIES.values():
        tested = [name for name in names if name in data]
        others = [name for name in data if name not in names]
        if not others:
            raise DatasetError(f"{folder} holds no two families of sets; see the model card")
        if not tested:
            continue
        frequencies = count_words(data, others).frequencies()
        model, _ = train(data, others, frequencies)
        for name in tested:
            rows = []
            for row in data[name]:
                _, sign, features = examine(row.claim, row.context, frequencies)
                verdict = _verdict(round(model.support(features), 4), contradicted=sign is not None)
                rows.append(_screened(row, verdict))
            yield name, rows


def _screened(row: Labelled, verdict: ClaimVerdict) -> Screened:
    return Screened(verdict, bool(row.label), id(row.context))


def _verdict(support: float, *, contradicted: bool) -> ClaimVerdict:
    """As the embedded judge puts it."""
    if contradicted:
        return ClaimVerdict(verdict="CONTRADICTED", confidence=round(max(1.0 - support, 0.5), 4))
    if support >= 0.5:
        return ClaimVerdict(verdict="SUPPORTED", confidence=support)
    return ClaimVerdict(verdict="NOT_ENOUGH_INFO", confidence=round(1.0 - support, 4))
