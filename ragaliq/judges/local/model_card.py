"""The figures of the model card, as text and as data.

The tables stand between two comment lines of the card, so that the recipe can write them and a test
can tell when they are not what was measured.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from ragaliq.errors import ConfigurationError
from ragaliq.judges.local.measuring import Figures, Score, means
from ragaliq.judges.local.parameters import MODEL_FILE, WORDS_FILE

__all__ = ["fingerprint", "record", "tables", "write_tables"]

_BEGIN = "<!-- written by `make train-local-judge` -->\n"
_END = "<!-- end -->\n"


def fingerprint(folder: Path) -> str:
    """A checksum of the parameters the figures belong to."""
    digest = hashlib.sha256()
    for name in (MODEL_FILE, WORDS_FILE):
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()


def record(
    figures: Mapping[str, Figures], shipped: Mapping[str, tuple[float, float]], folder: Path
) -> dict[str, object]:
    """The figures as they are stored beside the parameters.

    Args:
        figures: By set, each with its family left out.
        shipped: AUROC and balanced accuracy by set, of the parameters in `folder`.
        folder: Where the parameters are.
    """
    return {
        "parameters": fingerprint(folder),
        "shipped": shipped,
        "left_out": _short({name: asdict(row) for name, row in figures.items()}),
        "tables": tables(figures),
    }


def _short(value: object) -> object:
    """The same with four decimals: more would only say how many resamples were drawn."""
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {name: _short(item) for name, item in value.items()}
    return [_short(item) for item in value] if isinstance(value, (list, tuple)) else value


def tables(figures: Mapping[str, Figures]) -> str:
    """Both tables of the card, in Markdown."""
    lines = [
        "| set | claims | supported | idf recall | LocalJudge |",
        "|---|---|---|---|---|",
    ]
    for name, row in figures.items():
        lines.append(
            f"| {name} | {row.claims:,} | {row.supported:.0%} | {_cell(row.recall)} | "
            f"{_cell(row.model)} |"
        )
    recall_area, recall_accuracy, area, accuracy = means(figures)
    lines.append(
        f"| **mean without fever** | | | {_pair(recall_area, recall_accuracy)} | "
        f"{_pair(area, accuracy)} |"
    )
    lines += ["", "| set | CONTRADICTED | labelled unsupported |", "|---|---|---|"]
    for name, row in figures.items():
        lines.append(f"| {name} | {row.contradicted:,} | {row.contradicted_right:,} |")
    return "\n".join(lines) + "\n"


def _cell(score: Score) -> str:
    low, high = (f"{100 * end:.1f}" for end in score.accuracy_interval)
    return f"{_pair(score.auroc, score.accuracy)} ({low} to {high})"


def _pair(area: float, accuracy: float) -> str:
    return f"{area:.3f} / {100 * accuracy:.1f}".removeprefix("0")


def write_tables(card: Path, text: str) -> None:
    """Replace the tables of a card.

    Raises:
        ConfigurationError: The file has no place for them.
    """
    before, begin, rest = card.read_text(encoding="utf-8").partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise ConfigurationError(
            f"{card.name} has no place for the tables: it needs the lines {_BEGIN.strip()} "
            f"and {_END.strip()}"
        )
    card.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
