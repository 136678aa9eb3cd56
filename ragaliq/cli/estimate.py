"""`ragaliq estimate FILE` and `ragaliq metrics`: cost estimates, and the list of metrics."""

from __future__ import annotations

import inspect

from rich.table import Table

from ragaliq.cli.console import errors, output
from ragaliq.cli.evaluate import show_skipped_runs
from ragaliq.cli.options import (
    BaseUrl,
    Data,
    Encoding,
    Fields,
    Judge,
    MappingFile,
    Metrics,
    Model,
    Policy,
    PolicyName,
    Resolve,
    Rubrics,
    SkipBadRows,
    SplitContext,
    Strategy,
    choose_judge,
    evaluators_of,
    opened_cases,
)
from ragaliq.core.results import passing_scores
from ragaliq.evaluators import get_evaluator, list_evaluators
from ragaliq.offline.cost import estimate as estimate_cost
from ragaliq.reports.wording import cost_of, number_of


def estimate(
    data: Data,
    *,
    judge: Judge = None,
    model: Model = None,
    base_url: BaseUrl = None,
    metrics: Metrics = None,
    rubric: Rubrics = None,
    policy: Policy = PolicyName.LIVE,
    strategy: Strategy = None,
    field: Fields = None,
    split_context: SplitContext = None,
    skip_bad_rows: SkipBadRows = False,
    encoding: Encoding = None,
    mapping: MappingFile = None,
    resolve: Resolve = None,
) -> None:
    """Estimate what `evaluate` costs. No judge is called."""
    # Nothing is sent: users want to know the price before they have a key.
    asked = choose_judge(judge, model=model, base_url=base_url, default="claude", is_asked=False)
    evaluators = evaluators_of(
        metrics, asked.judge, policy=policy, strategy=strategy, rubrics=rubric or ()
    )
    with (
        opened_cases(
            data,
            field,
            skip_bad_rows=skip_bad_rows,
            encoding=encoding,
            split_context=split_context,
            mapping=mapping,
            resolve=resolve,
        ) as reader,
        errors.status("reading"),
    ):
        expected = estimate_cost(reader, judge=asked.judge, metrics=evaluators)
    usage = expected.usage
    output.print(
        f"{number_of(expected.cases, 'case')}, {number_of(usage.requests, 'request')}, "
        f"{usage.total_tokens:,} tokens: {cost_of(usage)}"
    )
    output.print(asked.title)
    if reader.skipped:
        errors.print(f"{reader.skipped} bad rows were skipped")
    show_skipped_runs(reader)


def metrics() -> None:
    """List the metrics with their thresholds."""
    table = Table("metric", "passes", "what it measures", box=None, pad_edge=False)
    for name in list_evaluators():
        kind = get_evaluator(name)
        summary = (inspect.getdoc(kind) or "").partition("\n")[0]
        evaluator = kind()
        passes = passing_scores(evaluator.threshold, higher_is_better=evaluator.higher_is_better)
        table.add_row(name, passes, summary)
    output.print(table)
