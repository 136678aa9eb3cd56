"""`ragaliq compare A B`: which scores moved between two results files, and how far."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.table import Table

from ragaliq.cli.console import ExitCode, errors, output, plain
from ragaliq.cli.outputs import require_writable
from ragaliq.datasets.rows import is_place
from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.records import EvaluationRecord
from ragaliq.records.results_file import read_results_file
from ragaliq.records.summary import joint_score
from ragaliq.reports.comparison import Change, write_comparison
from ragaliq.reports.wording import METHOD_NAMES, number_of
from ragaliq.statistics import hajek_mean, paired_difference

_MOST_OF_A_QUESTION = 80  # characters
_MOST_SIDE_BY_SIDE = 200
_COLUMNS = ("metric", "good", "pairs", "first", "second", "change", "95 % interval", "up", "down")


class _Case(NamedTuple):
    """What is known of a case: its id, and what was asked as far as the file holds it."""

    id: str
    question: str | None
    input_digest: str | None

    @property
    def given_id(self) -> str | None:
        return None if is_place(self.id) else self.id


class _Results:
    """The cases of a results file and their scores.

    Attributes:
        cases: In the order of their places.
        scores: Of each metric by the case's id: the mean of repeats, which are one observation.
        epochs: Of each metric, what made its scores: a judge in words by the fingerprint.
        chances: The chance each case had of being drawn, as `ragaliq cases` writes it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        cases: dict[str, _Case] = {}
        scores: dict[str, dict[str, list[float]]] = {}
        self.low_is_good: set[str] = set()
        self.epochs: dict[str, dict[str, str]] = {}
        self.chances: dict[str, float] = {}
        for record in read_results_file(path):
            case = record.observation
            question = record.case.query if record.case else None
            cases.setdefault(case, _Case(case, question, record.input_digest))
            self.chances[case] = record.run.sampling_probability
            for name, result in record.results.items():
                found = scores.setdefault(name, {})
                if result.fingerprint:
                    judge = f"{result.judge} ({result.model})" if result.model else result.judge
                    epochs = self.epochs.setdefault(name, {})
                    epochs[result.fingerprint] = (
                        f"{judge} with threshold {result.threshold:g}, "
                        f"epoch {result.fingerprint[:6]}"
                    )
                if not result.higher_is_better:
                    self.low_is_good.add(name)
                if result.is_measured and result.score is not None:
                    found.setdefault(case, []).append(result.score)
        # "line 9" before "line 10"; a file holds its results in the order they were finished.
        self.cases = sorted(cases.values(), key=lambda case: (len(case.id), case.id))
        self.scores = {
            name: {case: joint_score(several) for case, several in found.items()}
            for name, found in scores.items()
        }


class _Pair(NamedTuple):
    first: _Case
    second: _Case
    by: str

    @property
    def asks_something_else(self) -> bool:
        """Whether the two questions are known and differ."""
        return None not in (self.first.question, self.second.question) and (
            self.first.question != self.second.question
        )

    @property
    def label(self) -> str:
        ids = dict.fromkeys((self.first.id, self.second.id))
        question = " ".join((self.first.question or "").split())
        if len(question) > _MOST_OF_A_QUESTION:
            question = f"{question[: _MOST_OF_A_QUESTION - 3]}..."
        return "  ".join(filter(None, (" / ".join(ids), question)))


class _Metric(NamedTuple):
    """The scores of the pairs that have one in both files."""

    name: str
    pairs: list[_Pair]
    before: list[float]
    after: list[float]
    chances: list[float]
    low_is_good: bool


def compare(
    first: Annotated[
        Path, typer.Argument(help="Results of `evaluate`, a .jsonl file.", metavar="FIRST")
    ],
    second: Annotated[Path, typer.Argument(help="Results over the same cases.", metavar="SECOND")],
    *,
    show: Annotated[int, typer.Option(min=0, help="Changed cases to list for each metric.")] = 10,
    across_judges: Annotated[
        bool,
        typer.Option(
            "--across-judges",
            help="Compare even if judge, model, prompts, thresholds or policy differ.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="An .html page with the changed answers side by side."),
    ] = None,
) -> int:
    """Compare two runs over the same cases: by their ids, else by question and context."""
    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise ConfigurationError(f"--out {out}: the page goes to an .html file")
    require_writable([("--out", out)], read=[("results", first), ("results", second)])
    before, after = _Results(first), _Results(second)
    if not across_judges:
        _require_one_epoch(before, after)
    pairs = _paired(before, after)
    metrics = list(_scored(before, after, pairs))
    if not any(metric.pairs for metric in metrics):
        raise DatasetError(f"{first} and {second} have no metric with a score for the same case")
    _show_pairs(before, after, pairs)
    table = Table(box=None, pad_edge=False)
    for column in _COLUMNS:
        table.add_column(column, overflow="fold")
    rows = [
        (metric.name, "low" if metric.low_is_good else "high", *_cells(metric))
        for metric in metrics
    ]
    for row in rows:
        table.add_row(*row)
    output.print(table)
    for metric in metrics:
        _list_changes(metric, show)
    for name in sorted(before.scores.keys() ^ after.scores.keys()):
        errors.print(plain(f"{name} is in one of the two files only"))
    for metric in metrics:
        scores = len(before.scores[metric.name]) + len(after.scores[metric.name])
        if alone := scores - 2 * len(metric.pairs):
            errors.print(f"{metric.name}: scores without a partner in the other file: {alone:,}")
    if out is not None:
        changes, more = _changes(before, after, metrics)
        write_comparison(
            out,
            runs=(first.name, second.name),
            lead=_pairs_line(before, after, pairs),
            columns=_COLUMNS,
            scores=rows,
            changes=changes,
            more=more,
        )
        errors.print(plain(f"written: {out}"))
    return ExitCode.OK


def _changes(
    before: _Results, after: _Results, metrics: Iterable[_Metric]
) -> tuple[list[Change], int]:
    """The cases with another score, the largest losses first, and how many there are beyond."""
    losses: dict[_Pair, float] = {}
    for metric in metrics:
        sign = -1.0 if metric.low_is_good else 1.0
        for pair, one, two in zip(metric.pairs, metric.before, metric.after, strict=True):
            if one != two:
                losses[pair] = min(losses.get(pair, 1.0), sign * (two - one))
    changed = sorted(losses, key=lambda pair: (losses[pair], pair.label))
    shown = changed[:_MOST_SIDE_BY_SIDE]
    ours = _records(before.path, {pair.first.id for pair in shown})
    theirs = _records(after.path, {pair.second.id for pair in shown})
    found = [Change(pair.label, (ours[pair.first.id], theirs[pair.second.id])) for pair in shown]
    return found, len(changed) - len(shown)


def _records(path: Path, ids: set[str]) -> dict[str, EvaluationRecord]:
    """The records of these cases; of one that is judged several times, the last."""
    return {each.observation: each for each in read_results_file(path) if each.observation in ids}


def _require_one_epoch(before: _Results, after: _Results) -> None:
    """Refuse scores that different judges made: their difference may be the judges'."""
    for name in before.epochs.keys() & after.epochs.keys():
        made = before.epochs[name] | after.epochs[name]
        if len(made) > 1:
            first, second, *_ = made.values()
            raise DatasetError(
                f"{name} was scored in two ways, by {first} and by {second}: a difference may be "
                "the judge's. Add --across-judges to compare all the same"
            )


def _paired(before: _Results, after: _Results) -> list[_Pair]:
    """Which case of one file is which of the other.

    Rows without ids are named after their line, which says nothing about another file: such cases
    are paired by what was asked. Where another retriever was tried the contexts differ, and the
    question alone decides, if each file asks it once.
    """
    pairs: list[_Pair] = []
    left, right = before.cases, after.cases
    for by, key, repeated in _WAYS:
        ours, theirs = _by(key, left), _by(key, right)
        for value in ours.keys() & theirs.keys():
            one, two = ours[value], theirs[value]
            if repeated or len(one) == len(two) == 1:
                pairs += [_Pair(*both, by) for both in zip(one, two, strict=False)]
        paired = {pair.first.id for pair in pairs}, {pair.second.id for pair in pairs}
        left = [case for case in left if case.id not in paired[0]]
        right = [case for case in right if case.id not in paired[1]]
    advice = (
        "compare two runs over the same questions; where questions were reworded, give each row "
        "an id"
    )
    if not pairs:
        raise DatasetError(
            f"{before.path} and {after.path} share no case, neither by an id nor by its question "
            f"and context; {advice}"
        )
    if all(pair.asks_something_else for pair in pairs):
        raise DatasetError(
            f"{before.path} and {after.path} share {len(pairs):,} ids and not one question: they "
            f"seem to be different data sets; {advice}"
        )
    return sorted(pairs, key=lambda pair: (len(pair.first.id), pair.first.id))


_WAYS: tuple[tuple[str, Callable[[_Case], str | None], bool], ...] = (
    ("id", lambda case: case.given_id, False),
    ("question and context", lambda case: case.input_digest, True),
    ("question", lambda case: case.question or None, False),
)
"""How cases are paired: the word for it, the key, and whether several may have the same one."""


def _by(key: Callable[[_Case], str | None], cases: Iterable[_Case]) -> dict[str, list[_Case]]:
    found: defaultdict[str, list[_Case]] = defaultdict(list)
    for case in cases:
        if value := key(case):
            found[value].append(case)
    return found


def _scored(before: _Results, after: _Results, pairs: list[_Pair]) -> Iterator[_Metric]:
    for name, ours in before.scores.items():
        if (theirs := after.scores.get(name)) is None:
            continue
        both = [pair for pair in pairs if pair.first.id in ours and pair.second.id in theirs]
        yield _Metric(
            name,
            both,
            [ours[pair.first.id] for pair in both],
            [theirs[pair.second.id] for pair in both],
            [before.chances[pair.first.id] for pair in both],
            low_is_good=name in before.low_is_good | after.low_is_good,
        )


def _show_pairs(before: _Results, after: _Results, pairs: list[_Pair]) -> None:
    output.print(plain(_pairs_line(before, after, pairs)))
    if changed := sum(pair.asks_something_else for pair in pairs):
        errors.print(f"{changed:,} pairs have the same id and another question")


def _pairs_line(before: _Results, after: _Results, pairs: list[_Pair]) -> str:
    ways = ", ".join(f"{n:,} by {by}" for by, n in Counter(pair.by for pair in pairs).items())
    alone = len(before.cases) - len(pairs), len(after.cases) - len(pairs)
    line = f"{number_of(len(pairs), 'case')} paired ({ways})"
    if any(alone):
        line += f"; no partner: {alone[0]:,} in {before.path}, {alone[1]:,} in {after.path}"
    return line


def _cells(metric: _Metric) -> tuple[str, ...]:
    if not metric.pairs:
        return ("0", "", "", "", "", "", "")
    pairs = paired_difference(metric.before, metric.after)
    if len(set(metric.chances)) > 1:
        changes = [
            after - before for before, after in zip(metric.before, metric.after, strict=True)
        ]
        weighted = hajek_mean(changes, metric.chances, bounds=(-1.0, 1.0))
        pairs = replace(pairs, difference=weighted)
    change = pairs.difference
    clear = "" if pairs.is_clear else ", not clear"
    method = METHOD_NAMES[change.method]
    return (
        f"{len(metric.pairs):,}",
        *(
            f"{hajek_mean(side, metric.chances).value:.3f}"
            for side in (metric.before, metric.after)
        ),
        f"{change.value:+.3f}",
        f"{change.low:+.3f} to {change.high:+.3f} ({method}{clear})",
        f"{pairs.higher:,}",
        f"{pairs.lower:,}",
    )


def _list_changes(metric: _Metric, show: int) -> None:
    changed = [
        (after - before, before, after, pair.label)
        for pair, before, after in zip(metric.pairs, metric.before, metric.after, strict=True)
        if before != after
    ]
    # The largest losses first: those are what one looks for.
    changed.sort(key=lambda row: (-row[0] if metric.low_is_good else row[0], row[3]))
    for _, before, after, label in changed[:show]:
        output.print(plain(f"{metric.name} {before:.3f} -> {after:.3f}  {label}"))
    if len(changed) > show:
        output.print(f"{metric.name}: {len(changed) - show:,} more cases changed")
