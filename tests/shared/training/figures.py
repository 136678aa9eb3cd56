"""Quality of the embedded judge on families it was not trained on; their tables.

The page's tables stand between two comment lines, so that the recipe can write them and a test can
tell when they are not what was measured.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from ragaliq.errors import ConfigurationError
from ragaliq.judges.base import digest_of
from ragaliq.judges.language.answers import find_claims
from ragaliq.judges.local.context import Match
from ragaliq.judges.local.signs import Sign
from ragaliq.judges.local.verdict import (
    LEAST_UNLABELLED,
    MODEL_FILE,
    WORDS_FILE,
    Parameters,
    examine,
    threshold_of,
)
from ragaliq.lab.agreement import auroc, balanced_accuracy
from ragaliq.lab.resampling import percentile_interval
from training.data import FAMILIES, Data, Labelled, count_words
from training.fitting import train

SIX = tuple(name for family, names in FAMILIES.items() if family != "fever" for name in names)
"""The sets whose mean is reported."""

SHARES = (0.5, 0.7, 0.9, 0.97)
"""Shares of true claims among the unlabelled ones that an application's threshold is found from."""

_RESAMPLES = 300
_DRAWS = 50  # of unlabelled claims, for each share
_ENOUGH = 30  # answers of several claims


class Judged(NamedTuple):
    """A claim or an answer with its score, and the context it is about."""

    score: float
    is_accepted: bool
    label: int
    context: int
    is_signed: bool = False


@dataclass(frozen=True, slots=True)
class Score:
    """AUROC and balanced accuracy, 0 to 1, each with a 95 % interval.

    The interval is the percentile bootstrap over contexts, since claims about the same context are
    not independent.
    """

    auroc: float
    auroc_interval: tuple[float, float]
    accuracy: float
    accuracy_interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Figures:
    """Separation of supported and unsupported claims in one set.

    Attributes:
        claims: Their number.
        supported: Share of them labelled supported.
        recall: Of idf-weighted recall in the best window of three sentences, alone.
        model: Of the support score and the verdict SUPPORTED.
        levels: Balanced accuracy with the threshold of unlabelled claims, for each of `SHARES`.
        contradicted: Claims with the verdict CONTRADICTED.
        contradicted_right: Those of them that are labelled unsupported.
        answers: How many of the labelled texts are answers of several claims.
        whole: Of the lowest support of an answer's claims, and of all being SUPPORTED; None where
            there are few such answers.
    """

    claims: int
    supported: float
    recall: Score
    model: Score
    levels: Sequence[float]
    contradicted: int
    contradicted_right: int
    answers: int
    whole: Score | None


def measure_families(data: Data) -> dict[str, Figures]:
    """Leave each family out in turn, train on the others, and test on its sets."""
    figures = {}
    for names in FAMILIES.values():
        others = [name for name in data if name not in names]
        parameters, threshold = train(data, others, count_words(data, others))
        for name in names:
            figures[name] = measure(data[name], parameters, recall_threshold=threshold)
    return figures


def measure(
    rows: Sequence[Labelled], parameters: Parameters, *, recall_threshold: float
) -> Figures:
    """Judge the claims of one set."""
    recalls: list[Judged] = []
    scores: list[Judged] = []
    answers: list[Judged] = []
    signed: list[int] = []
    for row in rows:
        parts = [row.claim[start:end] for start, end in find_claims(row.claim)]
        if len(parts) > 1:
            answers.append(_judged(row, parts, parameters)[0])
        judged, match, sign = _judged(row, [row.claim], parameters)
        scores.append(judged)
        recall = match.window_cover
        recalls.append(judged._replace(score=recall, is_accepted=recall > recall_threshold))
        if sign:
            signed.append(row.label)
    return Figures(
        claims=len(rows),
        supported=sum(row.label for row in rows) / len(rows),
        recall=_score(recalls),
        model=_score(scores),
        levels=[_with_level(scores, share) for share in SHARES],
        contradicted=len(signed),
        contradicted_right=signed.count(0),
        answers=len(answers),
        whole=_score(answers) if len(answers) >= _ENOUGH else None,
    )


def reproduce(rows: Sequence[Labelled], parameters: Parameters) -> tuple[float, float]:
    """AUROC and balanced accuracy on one set of parameters that were trained on it.

    Not the accuracy to expect; it tells whether the figures belong to the parameters.
    """
    judged = [_judged(row, [row.claim], parameters)[0] for row in rows]
    return round(_area(judged), 4), round(_accuracy(judged), 4)


def _judged(
    row: Labelled, claims: Sequence[str], parameters: Parameters
) -> tuple[Judged, Match, Sign | None]:
    """Lowest support of some claims, whether all are SUPPORTED, and the match of the last."""
    support, is_accepted = 1.0, True
    for claim in claims:
        match, sign, features = examine(claim, row.context, parameters.frequencies)
        support = min(support, parameters.support(features))
        is_accepted = is_accepted and support >= 0.5 and sign is None
    judged = Judged(support, is_accepted, row.label, id(row.context), sign is not None)
    return judged, match, sign


def _with_level(rows: Sequence[Judged], share: float) -> float:
    """Balanced accuracy on all rows, mean of thresholds of drawn unlabelled claims.

    Args:
        rows: The claims.
        share: Share of true claims among the drawn ones.
    """
    drawing = random.Random(0)
    kinds = [[row for row in rows if row.label == label] for label in (0, 1)]
    reached = []
    for _ in range(_DRAWS):
        drawn = [drawing.choice(kinds[drawing.random() < share]) for _ in range(LEAST_UNLABELLED)]
        # As the confidence of a contradiction tells it, which is at least a half.
        threshold = threshold_of(
            min(row.score, 0.5) if row.is_signed else row.score for row in drawn
        )
        moved = [
            row._replace(is_accepted=row.score >= threshold and not row.is_signed) for row in rows
        ]
        reached.append(_accuracy(moved))
    return fmean(reached)


def _score(judged: Sequence[Judged]) -> Score:
    def interval(figure: Callable[[Sequence[Judged]], float]) -> tuple[float, float]:
        def defined(rows: Sequence[Judged]) -> float | None:
            return figure(rows) if {0, 1} == {row.label for row in rows} else None

        contexts = [row.context for row in judged]
        return percentile_interval(judged, defined, clusters=contexts, resamples=_RESAMPLES)

    return Score(_area(judged), interval(_area), _accuracy(judged), interval(_accuracy))


def _area(rows: Sequence[Judged]) -> float:
    return auroc([row.score for row in rows], [row.label for row in rows])


def _accuracy(rows: Sequence[Judged]) -> float:
    accepted, labels = [row.is_accepted for row in rows], [bool(row.label) for row in rows]
    return balanced_accuracy(labels, accepted)


# The page.

_BEGIN = "<!-- written by `make train-local-judge` -->\n"
_END = "<!-- end -->\n"


def record(
    figures: Mapping[str, Figures], shipped: Mapping[str, tuple[float, float]], folder: Path
) -> dict[str, object]:
    """Figures in the form stored with the parameters in `folder`.

    `figures` are by set, each with its family excluded; `shipped` those of the parameters.
    """
    return {
        "parameters": digest_of(
            *((folder / name).read_bytes() for name in (MODEL_FILE, WORDS_FILE))
        ),
        "shipped": shipped,
        "left_out": _short({name: asdict(row) for name, row in figures.items()}),
        "tables": tables(figures),
    }


def _short(value: object) -> object:
    """Round to four decimals: further ones depend on the number of resamples."""
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {name: _short(item) for name, item in value.items()}
    return [_short(item) for item in value] if isinstance(value, (list, tuple)) else value


def tables(figures: Mapping[str, Figures]) -> str:
    """The tables of the page, in Markdown."""
    lines = [
        "| set | claims | supported | idf recall | LocalJudge |",
        "|---|---|---|---|---|",
    ]
    for name, row in figures.items():
        lines.append(
            f"| {name} | {row.claims:,} | {row.supported:.0%} | {_cell(row.recall)} | "
            f"{_cell(row.model)} |"
        )
    means = (
        _pair(fmean(score.auroc for score in scores), fmean(score.accuracy for score in scores))
        for scores in (
            [figures[name].recall for name in SIX],
            [figures[name].model for name in SIX],
        )
    )
    lines.append(f"| **mean without fever** | | | {' | '.join(means)} |")
    shares = [f"{share:.0%} true" for share in SHARES]
    lines += ["", f"| set | fixed threshold | {' | '.join(shares)} |", "|---|---|" + "---|" * 4]
    for name, row in figures.items():
        lines.append(_level_row(name, [row.model.accuracy, *row.levels]))
    columns = zip(
        *([figures[name].model.accuracy, *figures[name].levels] for name in SIX), strict=True
    )
    lines.append(_level_row("**mean without fever**", [fmean(column) for column in columns]))
    lines += ["", "| set | CONTRADICTED | labelled unsupported |", "|---|---|---|"]
    for name, row in figures.items():
        lines.append(f"| {name} | {row.contradicted:,} | {row.contradicted_right:,} |")
    lines += ["", "| set | answers of several claims | LocalJudge |", "|---|---|---|"]
    for name, row in figures.items():
        if row.whole is not None:
            lines.append(f"| {name} | {row.answers:,} | {_cell(row.whole)} |")
    return "\n".join(lines) + "\n"


def _level_row(name: str, accuracies: Sequence[float]) -> str:
    return f"| {name} | {' | '.join(f'{100 * each:.1f}' for each in accuracies)} |"


def _cell(score: Score) -> str:
    low, high = (f"{100 * end:.1f}" for end in score.accuracy_interval)
    return f"{_pair(score.auroc, score.accuracy)} ({low} to {high})"


def _pair(area: float, accuracy: float) -> str:
    return f"{area:.3f} / {100 * accuracy:.1f}".removeprefix("0")


def write_tables(page: Path, text: str) -> None:
    """Replace the tables of a page.

    Raises:
        ConfigurationError: The file has no place for them.
    """
    before, begin, rest = page.read_text(encoding="utf-8").partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise ConfigurationError(
            f"{page.name} has no place for the tables: it needs the lines {_BEGIN.strip()} "
            f"and {_END.strip()}"
        )
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
