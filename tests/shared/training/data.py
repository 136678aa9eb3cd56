"""The labelled claims the embedded judge is trained and measured on, and the words in them."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragaliq.errors import DatasetError
from ragaliq.judges.local.claim import WordFrequencies
from ragaliq.judges.local.context import ContextIndex
from ragaliq.judges.local.words import FUNCTION_WORDS, read_words

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "fever": ("fever_dev", "fever_symmetric"),
    "dialogue": ("begin_wow_test", "begin_dev", "faithdial_audit", "q2_wow"),
    "wice": ("wice_claim_dev",),
    "summedits": ("summedits",),
}
SETS = tuple(name for names in FAMILIES.values() for name in names)
_LEAST_COUNT = 2  # documents a word must stand in to be stored


@dataclass(frozen=True, slots=True)
class Labelled:
    """One labelled claim with its context, read once."""

    claim: str
    context: ContextIndex
    label: int


Data = Mapping[str, Sequence[Labelled]]
"""Labelled claims by set."""


def read_data(folder: Path, *, sets: Sequence[str] = SETS) -> dict[str, list[Labelled]]:
    """Read labelled claims.

    Raises:
        DatasetError: A file is missing or not of the expected form.
    """
    known: dict[tuple[str, ...], ContextIndex] = {}
    data: dict[str, list[Labelled]] = {}
    for name in sets:
        path = folder / f"{name}.jsonl.gz"
        try:
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                rows = [json.loads(line) for line in lines]
            data[name] = []
            for row in rows:
                chunks = tuple(row["context"])
                if chunks not in known:
                    known[chunks] = ContextIndex(chunks)
                data[name].append(Labelled(row["claim"], known[chunks], int(row["label"])))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DatasetError(f"cannot read {path.name}: {type(error).__name__}") from error
    return data


def count_words(data: Data, sets: Collection[str]) -> WordFrequencies:
    """Count the words of all claims and chunks of some sets; labels play no part."""
    texts = dict.fromkeys(
        text for name in sets for row in data[name] for text in (row.claim, *row.context.chunks)
    )
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(set(read_words(text).stems) - FUNCTION_WORDS)
    kept = {word: n for word, n in sorted(counts.items()) if n >= _LEAST_COUNT}
    return WordFrequencies(len(texts), kept)
