"""How well the embedded judge does on claims of families it was not trained on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ragaliq.judges.local.fitting import auroc, balanced_accuracy
from ragaliq.judges.local.frequencies import WordFrequencies
from ragaliq.judges.local.parameters import SupportModel, load_frequencies, load_model
from ragaliq.judges.local.training_data import FAMILIES, Data, Labelled, count_words
from ragaliq.judges.local.verification import examine
from ragaliq.statistics.bootstrap import percentile_interval

__all__ = [
    "SIX",
    "Figures",
    "Score",
    "Trained",
    "means",
    "measure",
    "measure_families",
    "reproduce",
]

SIX = tuple(name for family, names in FAMILIES.items() if family != "fever" for name in names)
"""The sets whose mean is reported."""

_RESAMPLES = 300
Trained = tuple[SupportModel, float]
Judged = tuple[float, bool, int]
"""Score, whether it was accepted, label."""


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
    """How well one set is told apart.

    Attributes:
        claims: Their number.
        supported: Share of them labelled supported.
        recall: Of idf-weighted recall in the best window of three sentences, alone.
        model: Of the support score and the verdict SUPPORTED.
        contradicted: Claims with the verdict CONTRADICTED.
        contradicted_right: Those of them that are labelled unsupported.
    """

    claims: int
    supported: float
    recall: Score
    model: Score
    contradicted: int
    contradicted_right: int


def measure_families(
    data: Data, train: Callable[[Data, Sequence[str], WordFrequencies], Trained]
) -> dict[str, Figures]:
    """Leave each family out in turn, train on the others, and test on its sets.

    Args:
        data: All sets.
        train: Gives a model, and the threshold of plain recall, from some of the sets.
    """
    figures = {}
    for names in FAMILIES.values():
        others = [name for name in data if name not in names]
        frequencies = count_words(data, others).frequencies()
        model, threshold = train(data, others, frequencies)
        for name in names:
            figures[name] = measure(data[name], frequencies, model, threshold=threshold)
    return figures


def measure(
    rows: Sequence[Labelled],
    frequencies: WordFrequencies,
    model: SupportModel,
    *,
    threshold: float,
) -> Figures:
    """Judge the claims of one set; `threshold` is that of plain recall."""
    recalls: list[Judged] = []
    scores: list[Judged] = []
    signed: list[int] = []
    for row in rows:
        match, sign, features = examine(row.claim, row.context, frequencies)
        recalls.append((match.window_cover, match.window_cover > threshold, row.label))
        score = model.support(features)
        scores.append((score, score >= 0.5 and sign is None, row.label))
        if sign:
            signed.append(row.label)
    contexts = [id(row.context) for row in rows]
    return Figures(
        claims=len(rows),
        supported=sum(row.label for row in rows) / len(rows),
        recall=_score(recalls, contexts),
        model=_score(scores, contexts),
        contradicted=len(signed),
        contradicted_right=signed.count(0),
    )


def reproduce(rows: Sequence[Labelled]) -> tuple[float, float]:
    """AUROC and balanced accuracy of the parameters in the package on one set.

    They were trained on it: this is no accuracy to expect, but tells whether they are the ones the
    figures belong to.
    """
    frequencies, model = load_frequencies(), load_model()
    judged: list[Judged] = []
    for row in rows:
        _, sign, features = examine(row.claim, row.context, frequencies)
        score = model.support(features)
        judged.append((score, score >= 0.5 and sign is None, row.label))
    return round(_area(judged), 4), round(_accuracy(judged), 4)


def _score(judged: Sequence[Judged], contexts: Sequence[int]) -> Score:
    def interval(figure: Callable[[Sequence[Judged]], float]) -> tuple[float, float]:
        def defined(rows: Sequence[Judged]) -> float | None:
            return figure(rows) if {0, 1} == {row[2] for row in rows} else None

        return percentile_interval(judged, defined, clusters=contexts, resamples=_RESAMPLES)

    return Score(_area(judged), interval(_area), _accuracy(judged), interval(_accuracy))


def _area(rows: Sequence[Judged]) -> float:
    return auroc([row[0] for row in rows], [row[2] for row in rows])


def _accuracy(rows: Sequence[Judged]) -> float:
    return balanced_accuracy([row[1] for row in rows], [row[2] for row in rows])


def means(figures: Mapping[str, Figures]) -> tuple[float, float, float, float]:
    """Means over the six sets: AUROC and balanced accuracy of recall, then of the judge."""

    def mean(values: Iterable[float]) -> float:
        return sum(values) / len(SIX)

    return (
        mean(figures[name].recall.auroc for name in SIX),
        mean(figures[name].recall.accuracy for name in SIX),
        mean(figures[name].model.auroc for name in SIX),
        mean(figures[name].model.accuracy for name in SIX),
    )
