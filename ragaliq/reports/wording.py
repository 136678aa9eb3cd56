"""Wording of results: the same on the terminal, in notebooks, test failures and Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

from ragaliq.core.printable import printable
from ragaliq.core.results import Evaluation, EvaluationResult, JudgeUsage, passing_scores
from ragaliq.records import EvaluationRecord
from ragaliq.records.record import observation_of
from ragaliq.records.summary import Summary
from ragaliq.reports.gathering import Badness, badness
from ragaliq.statistics import Estimate

METHOD_NAMES = {
    "wilson": "Wilson",
    "logit_t": "Student's t of log odds",
    "unseen_share": "all scores are equal",
}
"""How an interval was made, in words."""

_CLAIM = 100  # characters
_MOST = 5  # answers
_DRAWN_ID = re.compile("[0-9a-f]{32}")
_SAID = {
    "CONTRADICTED": "contradicts the context",
    "NOT_ENOUGH_INFO": "is not in the context",
    None: "has no verdict",
}


def number_of(count: int, noun: str) -> str:
    """Count with its noun, such as `1 case` or `1,200 cases`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def cost_of(usage: JudgeUsage) -> str:
    """Cost of a judge's requests, such as `$0.0123`; of a batch also their list price."""
    cost, saved = usage.cost_usd, usage.saved_usd
    if cost is None:
        return "cost unknown"
    listed = f" (batch price; ${cost + saved:,.4f} at list price)" if saved else ""
    return f"${cost:,.4f}{listed}"


def decimals_apart(figure: float, limit: float, *, least: int) -> int:
    """Decimals, at least `least`, that show two figures as different: never `0.67 < 0.67`."""
    more = (n for n in range(least, 10) if f"{figure:.{n}f}" != f"{limit:.{n}f}")
    return next(more, least)


def why(result: EvaluationResult) -> str:
    """Result in one line, such as `faithfulness 0.50 < 0.80: 'They are free.' is not in ...`."""
    if result.score is None:
        return f"{result.evaluator_name}: no score ({result.status.value})"
    good, bad = ("≥", "<") if result.higher_is_better else ("≤", ">")
    sign = good if result.passed else bad
    decimals = decimals_apart(result.score, result.threshold, least=2)
    score, threshold = (f"{each:.{decimals}f}" for each in (result.score, result.threshold))
    line = f"{result.evaluator_name} {score} {sign} {threshold}"
    claims = [claim for claim in result.claims if claim.verdict != "SUPPORTED"]
    # A contradicted claim is worse than one that is not covered.
    claims.sort(key=lambda claim: claim.verdict != "CONTRADICTED")
    if not claims:
        said = printable(result.reasoning, limit=_CLAIM)
        return f"{line}: {said}" if said and not result.passed else line
    text = printable(claims[0].claim, limit=_CLAIM)
    quoted = f"'{text}'" if text else "a claim"
    more = f" (and {len(claims) - 1:,} more)" if len(claims) > 1 else ""
    said = _SAID[claims[0].verdict]
    if result.evaluator_name == "correctness":  # the one metric that holds claims to another text
        said = said.replace("context", "reference")
    return f"{line}: {quoted} {said}{more}"


_FEWEST = 10
"""Answers, below which an interval says little more than that they are few."""


def interval_text(estimate: Estimate | None, *, signed: bool = False) -> str:
    """95 % interval such as `0.62 to 0.91`, or the reason why there is none."""
    if estimate is None:
        return ""
    if estimate.n < _FEWEST:
        return "too few for an interval"
    sign = "+" if signed else ""
    return f"{estimate.low:{sign}.2f} to {estimate.high:{sign}.2f}"


class BadAnswer(NamedTuple):
    """A low-scoring answer: its row or id, its question, and the reason of each failed metric."""

    id: str
    question: str
    reasons: list[str]


class WorstAnswers:
    """Keeps the five failing answers with the lowest scores.

    An answer that is evaluated several times is listed once, by its lowest evaluation.
    """

    def __init__(self) -> None:
        self._worst: dict[str, tuple[Badness, int, BadAnswer]] = {}

    def add(self, evaluated: Evaluation | EvaluationRecord) -> None:
        """Add an evaluation or its record."""
        failed = [result for result in evaluated.results.values() if result.passed is False]
        how_bad = badness(*failed)
        if how_bad is None:
            return
        case = evaluated.case
        if isinstance(evaluated, EvaluationRecord):
            name, place = evaluated.observation, evaluated.row or 0
        else:
            name = observation_of(evaluated.case.id, evaluated.run.run_id)
            place = evaluated.position
        rank = how_bad, -place  # of equals, the first ones stay
        is_known = name in self._worst
        if is_known or len(self._worst) == _MOST:
            # Most answers end here: putting reasons into words takes longer than the rest.
            least = (
                name if is_known else min(self._worst, key=lambda each: _rank(self._worst[each]))
            )
            if rank <= _rank(self._worst[least]):
                return
            del self._worst[least]
        reasons = [why(result) for result in failed]
        self._worst[name] = *rank, BadAnswer(name, case.query if case else "", reasons)

    def __iter__(self) -> Iterator[BadAnswer]:
        for _, _, bad in sorted(self._worst.values(), key=_rank, reverse=True):
            yield bad


_rank = itemgetter(0, 1)  # how bad it is, then its place


def figures_of(summary: Summary) -> dict[str, Any]:
    """Summary as JSON values: each metric's figures, the share of passing answers, the cost."""
    passed, of = summary.passing
    return {
        "answers": summary.cases,
        "evaluations": summary.records,
        "decided": of,
        "passed": passed,
        "pass_share": passed / of if of else None,
        "metrics": {
            name: {
                "mean": metric.mean,
                "interval": metric.interval,
                "interval_method": metric.interval_method,
                "scored": metric.measured,
                "passed": metric.passed,
                "threshold": metric.threshold,
                "higher_is_better": metric.higher_is_better,
                "statuses": dict(metric.statuses),
                "passing": sorted(metric.passing),
            }
            for name, metric in summary.metrics.items()
        },
        "tokens": summary.usage.total_tokens,
        "cost_usd": summary.usage.cost_usd,
    }


def pass_line(passed: int, decided: int, answers: int) -> str:
    """Sentence on passing answers, such as `5 of 8 answers pass every metric`.

    Answers on which the judge failed are not counted as decided.
    """
    if not answers:
        return "No answers were evaluated"
    line = f"{passed:,} of {decided:,} answers pass every metric"
    failed = answers - decided
    return f"{line}; the judge failed on {failed:,} more" if failed else line


def others_of(statuses: Mapping[str, int], passing: Collection[str]) -> str:
    """Answers that are not simply scored, such as `1 empty_answer (pass), 2 partial`."""
    return ", ".join(
        f"{count:,} {status} (pass)" if status in passing else f"{count:,} {status}"
        for status, count in sorted(statuses.items())
        if status != "scored"
    )


METRIC_COLUMNS = ("metric", "mean", "95 % interval", "scored", "passed", "threshold", "others")


def metric_rows(summary: Summary) -> list[tuple[str, ...]]:
    """Figures of each metric in words, in the order of `METRIC_COLUMNS`."""
    return [
        (
            name,
            "none" if metric.mean is None else f"{metric.mean:.2f}",
            interval_text(metric.estimate()),
            f"{metric.measured:,} of {metric.cases:,}",
            f"{metric.passed:,}",
            passing_scores(metric.threshold, higher_is_better=metric.higher_is_better),
            others_of(metric.statuses, metric.passing),
        )
        for name, metric in summary.metrics.items()
    ]


def metric_table(summary: Summary) -> list[tuple[str, ...]]:
    """Columns and rows of the metrics, without `others` where there are none."""
    table = [METRIC_COLUMNS, *metric_rows(summary)]
    return table if any(row[-1] for row in table[1:]) else [row[:-1] for row in table]


def markdown_of(summary: Summary, worst: Iterable[BadAnswer]) -> str:
    """Summary in Markdown, for a pull request or a CI job's page."""
    columns, *rows = metric_table(summary)
    table = [columns, ["---"] * len(columns), *rows]
    lines = [f"**{pass_line(*summary.passing, summary.cases)}.**", ""]
    lines += [f"| {' | '.join(row)} |" for row in table]
    shown = [f"- {_name(bad, _plain)}: {'; '.join(map(_plain, bad.reasons))}" for bad in worst]
    if shown:
        lines += ["", "Lowest scores:", "", *shown]
    return "\n".join(lines) + "\n"


def text_of(summary: Summary, worst: Iterable[BadAnswer]) -> str:
    """Summary in plain text, for `print`."""
    lines = [pass_line(*summary.passing, summary.cases)]
    for name, mean, interval, scored, passed, passes, others in metric_rows(summary):
        figures = ", ".join(filter(None, (mean, interval)))
        line = f"{name}: {figures}; {scored} scored, {passed} passed ({passes})"
        lines.append(f"{line}, {others}" if others else line)
    shown = [
        f"  {_name(bad, printable)}: {'; '.join(map(printable, bad.reasons))}" for bad in worst
    ]
    return "\n".join([*lines, *(["lowest scores:"] if shown else []), *shown])


def is_drawn(case_id: str) -> bool:
    """True if the id was generated, and so tells a reader nothing."""
    return _DRAWN_ID.fullmatch(case_id) is not None


def _name(bad: BadAnswer, escape: Callable[[str], str]) -> str:
    question = escape(printable(bad.question, limit=_CLAIM))
    if question and is_drawn(bad.id):
        return question
    return f"{escape(bad.id)} ({question})" if question else escape(bad.id)


def _plain(text: str) -> str:
    # Application texts are untrusted here too: their links, pictures and mark-up are escaped.
    escaped = printable(text, limit=300).replace("&", "&amp;").replace("<", "&lt;")
    for mark in "\\`*_[]|!":
        escaped = escaped.replace(mark, f"\\{mark}")
    return escaped
