"""Train the embedded judge and print how well it does on data it was not trained on.

    python -m ragaliq.judges.local.training DATA_DIR

reads `DATA_DIR/<set>.jsonl.gz` (context, claim, label), prints AUROC and balanced accuracy of each
set with its family left out of word frequencies, weights and threshold, next to plain idf-weighted
recall, and writes the parameters used by `LocalJudge` (`--dry-run` does not). The same data give
the same files, byte for byte.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragaliq.judges.local.features import Features
from ragaliq.judges.local.fitting import (
    Sample,
    auroc,
    balanced_accuracy,
    best_threshold,
    fit_logistic,
)
from ragaliq.judges.local.frequencies import WordFrequencies
from ragaliq.judges.local.parameters import FOLDER, MODEL_FILE, WORDS_FILE, SupportModel
from ragaliq.judges.local.training_data import (
    FAMILIES,
    Data,
    Labelled,
    Vocabulary,
    count_words,
    read_data,
)
from ragaliq.judges.local.verification import examine

__all__ = ["Figures", "main", "measure_families", "read_data", "train"]

# Summaries with a word changed: wording hardly tells them apart, so they have no say in where the
# threshold is put.
_NO_VOTE = ("summedits",)
_SIGNS = Features(
    cover=1,
    run=1,
    missing_number=-1,
    missing_name=-1,
    negation=-1,
    absolutes=-1,
    contradiction=-1,
    length=1,
)
_DIGITS = 4  # decimals of the weights in the file


@dataclass(frozen=True, slots=True)
class Figures:
    """How well one set is told apart by what was trained without its family.

    Attributes:
        claims: Their number.
        recall_auroc: Of idf-weighted recall in the best window of three sentences, alone.
        recall_accuracy: Its balanced accuracy, with a threshold from the other families.
        model_auroc: Of the support score.
        model_accuracy: Balanced accuracy of the verdict SUPPORTED.
        contradicted: Claims with the verdict CONTRADICTED.
        contradicted_right: Those of them that are labelled unsupported.
    """

    claims: int
    recall_auroc: float
    recall_accuracy: float
    model_auroc: float
    model_accuracy: float
    contradicted: int
    contradicted_right: int


Trained = tuple[SupportModel, float]


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
    """The mean of what suits each set best: one for all pooled hangs on which set is steepest."""
    votes = [
        best_threshold(values, [row.label for row in data[name]])
        for name, values in scores.items()
        if name not in _NO_VOTE
    ]
    return sum(votes) / len(votes)


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


def measure_families(data: Data) -> dict[str, Figures]:
    """Leave each family out in turn, train on the others, and test on its sets."""
    figures = {}
    for names in FAMILIES.values():
        others = [name for name in data if name not in names]
        frequencies = count_words(data, others).frequencies()
        model, threshold = train(data, others, frequencies)
        for name in names:
            figures[name] = _test(data[name], frequencies, model, threshold)
    return figures


def _test(
    rows: Sequence[Labelled], frequencies: WordFrequencies, model: SupportModel, threshold: float
) -> Figures:
    examined = [examine(row.claim, row.context, frequencies) for row in rows]
    labels = [row.label for row in rows]
    recalls = [match.window_cover for match, _, _ in examined]
    scores = [model.support(features) for _, _, features in examined]
    signed = [row.label for row, (_, sign, _) in zip(rows, examined, strict=True) if sign]
    accepted = [
        score >= 0.5 and sign is None for score, (_, sign, _) in zip(scores, examined, strict=True)
    ]
    return Figures(
        claims=len(rows),
        recall_auroc=auroc(recalls, labels),
        recall_accuracy=balanced_accuracy([value > threshold for value in recalls], labels),
        model_auroc=auroc(scores, labels),
        model_accuracy=balanced_accuracy(accepted, labels),
        contradicted=len(signed),
        contradicted_right=signed.count(0),
    )


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


def _table(figures: Mapping[str, Figures]) -> str:
    lines = ["set                claims  idf recall     LocalJudge     contradicted (right)"]
    for name, row in figures.items():
        lines.append(
            f"{name:<18} {row.claims:>6}  {row.recall_auroc:.3f} / {100 * row.recall_accuracy:.1f}"
            f"   {row.model_auroc:.3f} / {100 * row.model_accuracy:.1f}"
            f"   {row.contradicted:>4} {row.contradicted_right:>4}"
        )
    six = [row for name, row in figures.items() if name not in FAMILIES["fever"]]
    recall = sum(row.recall_accuracy for row in six) / len(six)
    model = sum(row.model_accuracy for row in six) / len(six)
    lines.append(f"mean without fever: balanced accuracy {100 * recall:.1f}, {100 * model:.1f}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the recipe from the command line."""
    parser = argparse.ArgumentParser(prog="python -m ragaliq.judges.local.training")
    parser.add_argument("data", type=Path, help="folder with <set>.jsonl.gz")
    parser.add_argument("--dry-run", action="store_true", help="measure only, write nothing")
    options = parser.parse_args(arguments)
    data = read_data(options.data)
    sys.stdout.write(_table(measure_families(data)) + "\n")
    vocabulary = count_words(data, tuple(data))
    model, _ = train(data, tuple(data), vocabulary.frequencies())
    sys.stdout.write(f"intercept {model.intercept}  {model.weights}\n")
    if not options.dry_run:
        write_parameters(Path(__file__).parent / FOLDER, vocabulary, model)
    return 0


if __name__ == "__main__":
    sys.exit(main())
