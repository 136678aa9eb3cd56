"""Train the embedded judge and print how well it does on data it was not trained on.

    python -m ragaliq.judges.local.training DATA_DIR

reads `DATA_DIR/<set>.jsonl.gz` (context, claim, label), prints AUROC and balanced accuracy of each
set with its family left out of word frequencies, weights and threshold, next to plain idf-weighted
recall, and writes the parameters used by `LocalJudge` with these figures (`--dry-run` does not),
and the tables of the model card (`--card`). The same data give the same files, byte for byte.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from ragaliq.judges.local.features import Features
from ragaliq.judges.local.fitting import Sample, best_threshold, fit_logistic
from ragaliq.judges.local.frequencies import WordFrequencies
from ragaliq.judges.local.measuring import Trained, measure_families, reproduce
from ragaliq.judges.local.model_card import record, tables, write_tables
from ragaliq.judges.local.parameters import (
    FIGURES_FILE,
    FOLDER,
    MODEL_FILE,
    WORDS_FILE,
    SupportModel,
    load_frequencies,
    load_model,
)
from ragaliq.judges.local.training_data import FAMILIES, Data, Vocabulary, count_words, read_data
from ragaliq.judges.local.verification import examine

__all__ = ["main", "train", "write_parameters"]

# Summaries with a word changed: wording hardly tells them apart, so they have no say in where the
# threshold is put.
_NO_VOTE = ("summedits",)
# The sign a weight may have; 0 where either makes sense.
_SIGNS = Features(
    cover=1,
    run=1,
    missing_number=-1,
    missing_name=-1,
    negation=-1,
    absolutes=-1,
    contradiction=-1,
    length=0,
)
_DIGITS = 4  # decimals of the weights in the file


def train(data: Data, sets: Sequence[str], frequencies: WordFrequencies) -> Trained:
    """Fit the model, and the threshold of plain recall, on some of the sets."""
    samples: dict[str, list[Sample]] = {}
    recalls: dict[str, list[float]] = {}
    for name in sets:
        weights = _weights(data, name, sets)
        examined = [examine(row.claim, row.context, frequencies) for row in data[name]]
        recalls[name] = [match.window_cover for match, _, _ in examined]
        samples[name] = [
            Sample(tuple(features), row.label, weight)
            for row, weight, (_, _, features) in zip(data[name], weights, examined, strict=True)
        ]
    intercept, slopes = fit_logistic(
        [row for rows in samples.values() for row in rows], signs=tuple(_SIGNS)
    )
    scores = {
        name: [intercept + sum(map(float.__mul__, slopes, row.values)) for row in rows]
        for name, rows in samples.items()
    }
    # Moving the intercept makes 0.5 the threshold.
    shifted = round(intercept - _threshold(data, scores), _DIGITS)
    model = SupportModel(shifted, Features(*(round(slope, _DIGITS) for slope in slopes)))
    return model, _threshold(data, recalls)


def _threshold(data: Data, scores: Mapping[str, Sequence[float]]) -> float:
    """The median of what suits each set best.

    One for all pooled hangs on which set is steepest, and their mean on the set that differs most.
    """
    votes = [
        best_threshold(values, [row.label for row in data[name]])
        for name, values in scores.items()
        if name not in _NO_VOTE
    ]
    return median(votes)


def _weights(data: Data, name: str, sets: Sequence[str]) -> Iterator[float]:
    """Families count alike, so do the sets of a family, and both labels of a set."""
    present = [
        members
        for names in FAMILIES.values()
        if (members := [member for member in names if member in sets])
    ]
    siblings = next(members for members in present if name in members)
    share = 1.0 / len(present) / len(siblings)
    positive = sum(row.label for row in data[name])
    for row in data[name]:
        yield share / 2 / (positive if row.label else len(data[name]) - positive)


def write_parameters(folder: Path, vocabulary: Vocabulary, model: SupportModel) -> None:
    """Write what `LocalJudge` loads."""
    by_count: dict[int, list[str]] = {}
    for word, count in vocabulary.counts.items():
        by_count.setdefault(count, []).append(word)
    stored = {
        "documents": vocabulary.documents,
        "words": {str(count): " ".join(by_count[count]) for count in sorted(by_count)},
        "names": " ".join(vocabulary.names),
    }
    folder.mkdir(exist_ok=True)
    text = json.dumps(stored, ensure_ascii=False, separators=(",", ":"))
    # Without a time stamp, so that training again gives the same file.
    (folder / WORDS_FILE).write_bytes(gzip.compress(text.encode("utf-8"), mtime=0))
    weights = {"intercept": model.intercept, "weights": model.weights._asdict()}
    (folder / MODEL_FILE).write_text(json.dumps(weights, indent=2) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the recipe from the command line."""
    parser = argparse.ArgumentParser(prog="python -m ragaliq.judges.local.training")
    parser.add_argument("data", type=Path, help="folder with <set>.jsonl.gz")
    parser.add_argument("--dry-run", action="store_true", help="measure only, write nothing")
    parser.add_argument("--card", type=Path, help="Markdown file whose tables are written too")
    options = parser.parse_args(arguments)
    data = read_data(options.data)
    figures = measure_families(data, train)
    sys.stdout.write(tables(figures))
    vocabulary = count_words(data, tuple(data))
    model, _ = train(data, tuple(data), vocabulary.frequencies())
    sys.stdout.write(f"intercept {model.intercept}  {model.weights}\n")
    if not options.dry_run:
        folder = Path(__file__).parent / FOLDER
        write_parameters(folder, vocabulary, model)
        load_frequencies.cache_clear()
        load_model.cache_clear()
        shipped = {name: reproduce(rows) for name, rows in data.items()}
        text = json.dumps(record(figures, shipped, folder), indent=1) + "\n"
        (folder / FIGURES_FILE).write_text(text, encoding="utf-8")
        if options.card:
            write_tables(options.card, tables(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
