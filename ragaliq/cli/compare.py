"""`ragaliq compare A B`: which scores moved between two results files, and how far."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
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


@dataclass
class _Case:
    """A case of one file: what was asked, as far as the file holds it, and its scores by metric.

    `chance` is the one it had of being drawn, as `ragaliq cases` writes it.
    """

    id: str
    question: str | None
    input_digest: str | None
    chance: float = 1.0
    repeats: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    @property
    def given_id(self) -> str | None:
        return None if is_place(self.id) else self.id

    def score(self, metric: str) -> float | None:
        """The mean of its repeats, which are one observation."""
        return joint_score(self.repeats[metric]) if metric in self.repeats else None


class _Results:
    """The cases of a results file.

    Attributes:
        cases: In the order of their places.
        low_is_good: Of each metric, whether a low score is good.
        epochs: Of each metric, what made its scores: a judge in words by the fingerprint.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        cases: dict[str, _Case] = {}
        self.low_is_good: dict[str, bool] = {}
        self.epochs: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for record in read_results_file(path):
            question = record.case.query if record.case else None
            new = _Case(record.observation, question, record.input_digest)
            case = cases.setdefault(record.observation, new)
            case.chance = record.run.sampling_probability
            for name, result in record.results.items():
                self.low_is_good[name] = not result.higher_is_better
                if result.fingerprint:
                    judge = f"{result.judge} ({result.model})" if result.model else result.judge
                    self.epochs[name][result.fingerprint] = (
                        f"{judge} with threshold {result.threshold:g}, "
                        f"epoch {result.fingerprint[:6]}"
                    )
                if result.is_measured and result.score is not None:
                    case.repeats[name].append(result.score)
        # "line 9" before "line 10"; a file holds its results in the order they were finished.
        self.cases = sorted(cases.values(), key=lambda case: (len(case.id), case.id))


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


class _Scored(NamedTuple):
    """A pair that has a score in both files; `gain` is below 0 where the second is worse."""

    pair: _Pair
    before: float
    after: float
    gain: float


class _Metric(NamedTuple):
    name: str
    low_is_good: bool
    scored: list[_Scored]

    def changed(self) -> list[_Scored]:
        """Those with another score, the largest losses first: those are what one looks for."""
        changed = [each for each in self.scored if each.before != each.after]
        return sorted(changed, key=lambda each: (each.gain, each.pair.label))


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
    metrics = [
        _metric(name, low_is_good, pairs)
        for name, low_is_good in before.low_is_good.items()
        if name in after.low_is_good
    ]
    if not any(metric.scored for metric in metrics):
        raise DatasetError(f"{first} and {second} have no metric with a score for the same case")
    lead = _pairs_line(before, after, pairs)
    output.print(plain(lead))
    if changed := sum(pair.asks_something_else for pair in pairs):
        errors.print(f"{changed:,} pairs have the same id and another question")
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
    for name in sorted(before.low_is_good.keys() ^ after.low_is_good.keys()):
        errors.print(plain(f"{name} is in one of the two files only"))
    for metric in metrics:
        scores = sum(metric.name in case.repeats for case in (*before.cases, *after.cases))
        if alone := scores - 2 * len(metric.scored):
            errors.print(f"{metric.name}: scores without a partner in the other file: {alone:,}")
    if out is not None:
        changes, more = _changes(before, after, metrics)
        write_comparison(
            out,
            runs=(first.name, second.name),
            lead=lead,
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
    losses: dict[str, _Scored] = {}
    for each in (each for metric in metrics for each in metric.changed()):
        held = losses.setdefault(each.pair.first.id, each)
        if each.gain < held.gain:
            losses[each.pair.first.id] = each
    changed = sorted(losses.values(), key=lambda each: (each.gain, each.pair.label))
    shown = [each.pair for each in changed[:_MOST_SIDE_BY_SIDE]]
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


def _metric(name: str, low_is_good: bool, pairs: Iterable[_Pair]) -> _Metric:  # noqa: FBT001
    scored = []
    for pair in pairs:
        before, after = pair.first.score(name), pair.second.score(name)
        if before is not None and after is not None:
            gain = before - after if low_is_good else after - before
            scored.append(_Scored(pair, before, after, gain))
    return _Metric(name, low_is_good, scored)


def _pairs_line(before: _Results, after: _Results, pairs: list[_Pair]) -> str:
    ways = ", ".join(f"{n:,} by {by}" for by, n in Counter(pair.by for pair in pairs).items())
    alone = len(before.cases) - len(pairs), len(after.cases) - len(pairs)
    line = f"{number_of(len(pairs), 'case')} paired ({ways})"
    if any(alone):
        line += f"; no partner: {alone[0]:,} in {before.path}, {alone[1]:,} in {after.path}"
    return line


def _cells(metric: _Metric) -> tuple[str, ...]:
    if not metric.scored:
        return ("0", "", "", "", "", "", "")
    sides = [each.before for each in metric.scored], [each.after for each in metric.scored]
    chances = [each.pair.first.chance for each in metric.scored]
    pairs = paired_difference(*sides, chances)
    change = pairs.difference
    clear = "" if pairs.is_clear else ", not clear"
    method = METHOD_NAMES[change.method]
    return (
        f"{len(metric.scored):,}",
        *(f"{hajek_mean(side, chances).value:.3f}" for side in sides),
        f"{change.value:+.3f}",
        f"{change.low:+.3f} to {change.high:+.3f} ({method}{clear})",
        f"{pairs.higher:,}",
        f"{pairs.lower:,}",
    )


def _list_changes(metric: _Metric, show: int) -> None:
    changed = metric.changed()
    for pair, before, after, _ in changed[:show]:
        output.print(plain(f"{metric.name} {before:.3f} -> {after:.3f}  {pair.label}"))
    if len(changed) > show:
        output.print(f"{metric.name}: {len(changed) - show:,} more cases changed")
