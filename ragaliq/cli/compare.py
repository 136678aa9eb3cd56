"""`ragaliq compare A B`: changes of scores between two results files."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.table import Table

from ragaliq.cli.console import Command, ExitCode, errors, escape_for_terminal, output
from ragaliq.cli.outputs import require_writable
from ragaliq.datasets.rows import is_place
from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.records import EvaluationRecord
from ragaliq.records.results_file import read_results_file
from ragaliq.records.summary import joint_score
from ragaliq.reports.comparison import Change, Comparison, MetricChange, columns_of
from ragaliq.reports.wording import number_of
from ragaliq.statistics import hajek_mean, paired_difference

_MOST_OF_A_QUESTION = 80  # characters
_MOST_SIDE_BY_SIDE = 200
_ENDINGS = (".html", ".htm", ".json", ".md", ".xml")
_EVERY = "all"
_INTERVAL = len("-0.23 to -0.04")


@dataclass
class _Case:
    """A case of one file: its question, if the file holds texts, and its scores by metric.

    `chance` is the inclusion probability that `ragaliq cases` writes.
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
        """Mean of its repeats, which are one observation."""
        return joint_score(self.repeats[metric]) if metric in self.repeats else None


class _Results:
    """Cases of a results file.

    Attributes:
        cases: The cases in the order of their rows.
        low_is_good: Whether a low score is good, by metric.
        epochs: The judges that made the scores, by metric and fingerprint.
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
        # "line 9" before "line 10"; the results are in the order they finished.
        self.cases = sorted(cases.values(), key=lambda case: (len(case.id), case.id))


class _CasePair(NamedTuple):
    first: _Case
    second: _Case
    by: str

    @property
    def asks_something_else(self) -> bool:
        """True if the two questions are known and differ."""
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
    """A pair with a score in both files; `gain` is below 0 if the second is worse."""

    pair: _CasePair
    before: float
    after: float
    gain: float


class _Metric(NamedTuple):
    name: str
    low_is_good: bool
    scored: list[_Scored]

    def changed(self) -> list[_Scored]:
        """Pairs whose score changed, the largest losses first."""
        changed = [each for each in self.scored if each.before != each.after]
        return sorted(changed, key=lambda each: each.gain)


class _Gate(NamedTuple):
    """Gate of `--fail-if-worse`: for one metric or all, with the allowed loss."""

    metric: str
    margin: float = 0.0

    @classmethod
    def of(cls, text: str) -> _Gate:
        metric, is_given, margin = text.partition("=")
        try:
            allowed = float(margin) if is_given else 0.0
        except ValueError:
            allowed = math.nan
        if not metric or not 0.0 <= allowed < 1.0:
            raise ConfigurationError(
                f"--fail-if-worse {text!r}: write METRIC or METRIC=MARGIN, with a margin within "
                "[0, 1), such as faithfulness=0.02"
            )
        return cls(metric, allowed)

    def problem(self, change: MetricChange) -> str:
        """Objection to a change: a clear loss of more than the margin; empty if none."""
        if self.metric not in (_EVERY, change.name) or change.word != "worse":
            return ""
        if change.loss <= self.margin or change.pairs is None:
            return ""
        return (
            f"{change.name} is worse: {change.before:.2f} -> {change.after:.2f} over "
            f"{change.pairs.difference.n:,} cases"
        ) + (f", a loss above {self.margin:g}" if self.margin else "")


class CompareCommand(Command):
    """`compare`, whose `--fail-if-worse` may have no value, which means every metric."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the value if none follows: another option, a file, or nothing."""
        given: list[str] = []
        for place, arg in enumerate(args):
            given.append(arg)
            following = args[place + 1] if place + 1 < len(args) else "-"
            if arg == "--fail-if-worse" and (following.startswith("-") or Path(following).exists()):
                given.append(_EVERY)
        found: list[str] = super().parse_args(ctx, given)
        return found


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
    fail_if_worse: Annotated[
        list[str] | None,
        typer.Option(
            help="End with code 1 if SECOND is clearly worse: in this metric, by more than the "
            "margin (default 0); without a value, in any metric. Repeatable.",
            metavar="[METRIC[=MARGIN]]",
        ),
    ] = None,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out",
            "-o",
            help="A file for the comparison: .html (changed answers side by side), .json, .md for "
            "a pull request, .xml (JUnit). Repeatable.",
        ),
    ] = None,
) -> int:
    """Compare two runs over the same cases. Pairs them by id, else by question and context."""
    for path in out or ():
        if path.suffix.lower() not in _ENDINGS:
            raise ConfigurationError(f"--out {path}: end the name in .html, .json, .md or .xml")
    gates = [_Gate.of(text) for text in fail_if_worse or ()]
    require_writable(
        [("--out", path) for path in out or ()], read=[("results", first), ("results", second)]
    )
    before, after = _Results(first), _Results(second)
    if not across_judges:
        _require_one_epoch(before, after)
    pairs = _paired(before, after)
    metrics = [
        _metric(name, low_is_good, pairs)
        for name, low_is_good in before.low_is_good.items()
        if name in after.low_is_good
    ]
    _require_scores(metrics, gates, (first, second))
    found = Comparison(
        _titles(first, second),
        _pairs_line(before, after, pairs),
        [_change_of(metric, gates) for metric in metrics],
    )
    _show(found, metrics, before, after, pairs, show=show)
    if out:
        changes, more = _changes(before, after, metrics)
        for path in out:
            found.write(path, changes, more)
        errors.print(f"written: {', '.join(map(str, out))}")
    problems = [each.problem for each in found.metrics if each.problem]
    for problem in problems:
        errors.print(problem, style="bold")
    return ExitCode.BELOW_THRESHOLD if problems else ExitCode.OK


def _require_scores(
    metrics: Sequence[_Metric], gates: Sequence[_Gate], files: tuple[Path, Path]
) -> None:
    scored = [metric.name for metric in metrics if metric.scored]
    if not scored:
        first, second = files
        raise DatasetError(f"{first} and {second} have no metric with a score for the same case")
    for gate in gates:
        if gate.metric not in (_EVERY, *scored):
            raise DatasetError(
                f"--fail-if-worse {gate.metric}: no case has a score for it in both files; they "
                f"have {', '.join(scored)}"
            )


def _titles(first: Path, second: Path) -> tuple[str, str]:
    """Titles of the runs: their files, with a folder if both have one name."""
    if first.stem != second.stem:
        return first.stem, second.stem
    names = tuple(str(Path(path.parent.name, path.stem)) for path in (first, second))
    return (names[0], names[1]) if names[0] != names[1] else ("first", "second")


def _show(
    found: Comparison,
    metrics: Sequence[_Metric],
    before: _Results,
    after: _Results,
    pairs: Sequence[_CasePair],
    *,
    show: int,
) -> None:
    output.print(found.lead)
    table = Table(box=None, pad_edge=False)
    for column in columns_of(found.runs):
        # Figures and words must not wrap; titles may.
        table.add_column(
            escape_for_terminal(column),
            overflow="fold",
            min_width=_INTERVAL if column == "95 % interval" else None,
            no_wrap=column in ("metric", "change", "up", "down", "verdict"),
        )
    for metric in found.metrics:
        table.add_row(*map(escape_for_terminal, metric.cells()))
    output.print(table)
    if changed := sum(pair.asks_something_else for pair in pairs):
        errors.print(f"{changed:,} pairs have the same id and another question")
    for each in metrics:
        _list_changes(each, show)
    for name in sorted(before.low_is_good.keys() ^ after.low_is_good.keys()):
        errors.print(f"{name} is in one of the two files only")
    for each in metrics:
        scores = sum(each.name in case.repeats for case in (*before.cases, *after.cases))
        if alone := scores - 2 * len(each.scored):
            errors.print(f"{each.name}: scores without a partner in the other file: {alone:,}")


def _changes(
    before: _Results, after: _Results, metrics: Iterable[_Metric]
) -> tuple[list[Change], int]:
    """Cases whose score changed, the largest losses first, and the number beyond the limit."""
    losses: dict[str, _Scored] = {}
    for each in (each for metric in metrics for each in metric.changed()):
        held = losses.setdefault(each.pair.first.id, each)
        if each.gain < held.gain:
            losses[each.pair.first.id] = each
    changed = sorted(losses.values(), key=lambda each: each.gain)
    shown = [each.pair for each in changed[:_MOST_SIDE_BY_SIDE]]
    ours = _records(before.path, {pair.first.id for pair in shown})
    theirs = _records(after.path, {pair.second.id for pair in shown})
    found = [Change(pair.label, (ours[pair.first.id], theirs[pair.second.id])) for pair in shown]
    return found, len(changed) - len(shown)


def _records(path: Path, ids: set[str]) -> dict[str, EvaluationRecord]:
    """Records of these cases; of a repeated one, the last."""
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


def _paired(before: _Results, after: _Results) -> list[_CasePair]:
    """Pair the cases of two files.

    Rows without ids are named by their line, which means nothing in another file: such cases are
    paired by question and context. If the contexts differ, as with another retriever, the question
    alone decides, if each file asks it once.
    """
    pairs: list[_CasePair] = []
    left, right = before.cases, after.cases
    for by, key, repeated in _WAYS:
        ours, theirs = _by(key, left), _by(key, right)
        for value in ours.keys() & theirs.keys():
            one, two = ours[value], theirs[value]
            if repeated or len(one) == len(two) == 1:
                pairs += [_CasePair(*both, by) for both in zip(one, two, strict=False)]
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


def _metric(name: str, low_is_good: bool, pairs: Iterable[_CasePair]) -> _Metric:  # noqa: FBT001
    scored = []
    for pair in pairs:
        before, after = pair.first.score(name), pair.second.score(name)
        if before is not None and after is not None:
            gain = before - after if low_is_good else after - before
            scored.append(_Scored(pair, before, after, gain))
    return _Metric(name, low_is_good, scored)


def _pairs_line(before: _Results, after: _Results, pairs: list[_CasePair]) -> str:
    ways = ", ".join(f"{n:,} by {by}" for by, n in Counter(pair.by for pair in pairs).items())
    alone = len(before.cases) - len(pairs), len(after.cases) - len(pairs)
    line = f"{number_of(len(pairs), 'case')} paired ({ways})"
    if any(alone):
        line += f"; no partner: {alone[0]:,} in {before.path}, {alone[1]:,} in {after.path}"
    return line


def _change_of(metric: _Metric, gates: Sequence[_Gate]) -> MetricChange:
    change = MetricChange(name=metric.name, higher_is_better=not metric.low_is_good)
    if not metric.scored:
        return change
    sides = [each.before for each in metric.scored], [each.after for each in metric.scored]
    chances = [each.pair.first.chance for each in metric.scored]
    before, after = (hajek_mean(side, chances).value for side in sides)
    pairs = paired_difference(*sides, chances)
    change = replace(change, before=before, after=after, pairs=pairs)
    problems = filter(None, (gate.problem(change) for gate in gates))
    return replace(change, problem=next(problems, ""))


def _list_changes(metric: _Metric, show: int) -> None:
    changed = metric.changed()
    for pair, before, after, _ in changed[:show]:
        output.print(f"{metric.name} {before:.2f} -> {after:.2f}  {pair.label}")
    if len(changed) > show:
        more = len(changed) - show
        output.print(f"{metric.name}: {more:,} more {'case' if more == 1 else 'cases'} changed")
