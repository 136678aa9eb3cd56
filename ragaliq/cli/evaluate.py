"""`ragaliq evaluate FILE`: score the cases of a file, and say what came out."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import aclosing, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

import typer
from rich.table import Table

from ragaliq.cli.console import (
    ExitCode,
    RunProgress,
    errors,
    output,
    plain,
    say_what_is_left,
    stopped_by_sigterm,
)
from ragaliq.cli.options import (
    BaseUrl,
    CalibrationFile,
    Encoding,
    Fields,
    Judge,
    Metrics,
    Model,
    Policy,
    PolicyName,
    SkipBadRows,
    Strategy,
    StrategyName,
    choose_judge,
    evaluators_of,
    policy_of,
    reader_of,
)
from ragaliq.cli.outputs import Outputs
from ragaliq.cli.pending import evaluate_runs
from ragaliq.cli.resume import Wanted, case_digest, input_digest
from ragaliq.core.evaluator import Evaluator
from ragaliq.core.results import Evaluation
from ragaliq.datasets import CaseReader, TraceReader
from ragaliq.errors import BudgetExceeded, ConfigurationError
from ragaliq.evaluators.metrics import (
    ClaimEvaluator,
    ContextRecallEvaluator,
    RelevanceEvaluator,
)
from ragaliq.judges.unsent import RequestWriter, reads_replies, writes_requests
from ragaliq.records import EvaluationRecord, MetricSummary, evaluation_record
from ragaliq.records.sinks import SinkLimits
from ragaliq.records.summary import TOLERANCE, Summary
from ragaliq.scoring.scorer import CostCap, Scorer
from ragaliq.telemetry import ContentPolicy, configure_from_environment
from ragaliq.traces.cases import REASONS

__all__ = [
    "Goal",
    "evaluate",
    "missed",
    "show_bad_rows",
    "show_no_context",
    "show_skipped_runs",
    "show_summary",
]

_WORTH_A_PROCESS = 200

Out = Annotated[
    list[Path] | None,
    typer.Option(help="Where results go: .jsonl, .csv, .html, .xml (JUnit); repeatable."),
]


def evaluate(  # noqa: PLR0915 - the command, from top to bottom
    source: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="Cases (.jsonl, .json, .csv, .tsv, .yaml, .parquet) or traces (OTLP, Phoenix's "
            "exports), also .gz; with --pending a file of runs, sqlite:///runs.db.",
        ),
    ],
    *,
    pending: Annotated[
        bool,
        typer.Option(
            "--pending",
            help="Judge the runs that Monitor(executor='sqlite:///runs.db') stored; --judge "
            "claude-batch does so at half price, in minutes to hours.",
        ),
    ] = False,
    out: Out = None,
    judge: Judge = None,
    model: Model = None,
    base_url: BaseUrl = None,
    calibration: CalibrationFile = None,
    metrics: Metrics = "faithfulness,relevance",
    policy: Policy = PolicyName.LIVE,
    strategy: Strategy = None,
    field: Fields = None,
    skip_bad_rows: SkipBadRows = False,
    encoding: Encoding = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the results file that is there.")
    ] = False,
    retry_failed: Annotated[
        bool,
        typer.Option("--retry-failed", help="With --resume: judge again what the judge failed on."),
    ] = False,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(help="METRIC=MEAN: end with code 1 when the mean is worse; repeatable."),
    ] = None,
    sink: Annotated[
        list[str] | None, typer.Option(help="Where results go too: sqlite:///path; repeatable.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0.0, help="US dollars after which no case is begun.")
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, help="Cases judged at the same time, in each process.")
    ] = 8,
    processes: Annotated[
        int | None,
        typer.Option(min=0, help="For the embedded judge; by default one a core, 0 for few cases."),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="How often each case is judged.")] = 1,
    timeout: Annotated[float, typer.Option(min=0.001, help="Seconds each metric may take.")] = 300,
    no_text: Annotated[
        bool, typer.Option("--no-text", help="Keep no questions, answers or claims in results.")
    ] = False,
    render: Annotated[
        Path | None, typer.Option(help="Write the requests here, a line each, and send none.")
    ] = None,
    replies: Annotated[
        Path | None, typer.Option(help="Replies to rendered requests, a line each; asks nobody.")
    ] = None,
) -> int:
    """Score the cases of a file. Rerun with --resume to continue an interrupted run."""
    data, scoring = Path(source), policy_of(policy)
    if pending:
        return _code(
            evaluate_runs(
                source,
                evaluators_of(metrics, policy=scoring, strategy=strategy),
                choice=(judge, model, base_url),
                sinks=sink or (),
                concurrency=concurrency,
                timeout=timeout,
                show=lambda summary: show_summary(summary, {}),
            ),
            [],
        )
    offline = render is not None or replies is not None
    asked = choose_judge(
        judge, model=model, base_url=base_url, calibration=calibration, is_asked=not offline
    )
    decider = asked.judge if replies is None else reads_replies(asked.judge, replies)
    chosen = evaluators_of(metrics, policy=scoring, strategy=strategy)
    for evaluator in chosen:
        evaluator.require(decider)
        if offline:
            _require_known_requests(evaluator, strategy)
    goals = [Goal.of(text, [each.name for each in chosen]) for text in fail_under or ()]
    reads = [("the cases", data), ("the calibration", asked.calibration), ("--model", model)]
    outputs = Outputs(out or [], reads=reads)
    outputs.require_a_choice(resume=resume)
    if retry_failed and not resume:
        raise ConfigurationError("--retry-failed goes with --resume")

    reader = reader_of(data, field, skip_bad_rows=skip_bad_rows, encoding=encoding)
    if render is not None:
        return asyncio.run(_render(writes_requests(decider, render), render, chosen, reader))
    wanted = Wanted(repeats) if resume else None
    total = _count(reader, chosen, wanted) * repeats
    settings: dict[str, Any] = {
        "data": data.name,
        "judge": decider.name,
        "model": decider.model,
        "calibration": decider.calibration,
        "metrics": {each.name: each.threshold for each in chosen},
        "policy": scoring.name,
        "strategy": strategy.value if strategy else None,
        "repeats": repeats,
        "text": not no_text,
    }
    summary, done = Summary(), set[str]()
    journal = outputs.open(settings, summary, done=done, wanted=wanted, retry_failed=retry_failed)
    left = total - summary.records
    at_once = processes
    if at_once is None:
        # Starting one takes half a second, in which the embedded judge decides some hundred cases.
        at_once = (os.cpu_count() or 1) if left >= _WORTH_A_PROCESS else 0
    try:
        configure_from_environment("ragaliq")
    except ConfigurationError as error:  # the exporter is not installed
        errors.print(plain(f"no telemetry is exported: {error}"))
    scorer = Scorer(
        decider,
        chosen,
        deadline=timeout,
        executor=None if at_once else "thread",
        processes=max(1, at_once),
        sinks=sink or (),
        sink_limits=SinkLimits(max_queue=max(1, left), max_characters=sys.maxsize),
    )
    cap = CostCap(max_cost, spent=summary.usage, option="--max-cost")
    work = scorer.stream(
        reader,
        concurrency=concurrency,
        pipeline=data.stem,
        repeats=repeats,
        skip=done,
        cap=cap,
    )
    content = ContentPolicy(on_spans=not no_text, on_events=not no_text)
    causes: dict[str, str] = {}

    async def run() -> None:
        with closing(journal) if journal else nullcontext(), stopped_by_sigterm():
            async with scorer, aclosing(work):
                async for evaluation in work:
                    record = _record_of(evaluation, content)
                    if journal is not None:
                        journal.append(record)
                    summary.add(record)
                    progress.judged(record.usage)
                    for result in evaluation.results.values():
                        if result.status.is_failure and result.error_type and result.error:
                            causes.setdefault(result.error_type, result.error)

    asked.announce()
    try:
        with RunProgress(total, summary.records) as progress:
            asyncio.run(run())
    except (KeyboardInterrupt, typer.Exit):  # Ctrl-C, SIGTERM
        option = "--resume" if outputs.journal else "--out results.jsonl"
        say_what_is_left(summary.records, total, outputs.journal, option=option)
        raise
    except BudgetExceeded as error:
        raise BudgetExceeded(
            f"{error}; rerun with --resume and a higher --max-cost to continue"
        ) from None
    finally:
        # Whatever ended the run, the results so far are shown and written.
        if summary.records:
            show_summary(summary, causes)
            output.print(plain(asked.title))
            show_skipped_runs(reader)
            outputs.write()
            if outputs.journal is None:
                errors.print("claim by claim: add --out report.html or --out results.csv")
    return _code(summary, goals)


def _require_known_requests(metric: Evaluator, strategy: StrategyName | None) -> None:
    """Refuse a metric whose later requests depend on the replies to earlier ones."""
    if isinstance(metric, ContextRecallEvaluator):
        raise ConfigurationError("--render and --replies: context_recall asks about its own claims")
    if isinstance(metric, ClaimEvaluator) and strategy is not StrategyName.SINGLE_PASS:
        raise ConfigurationError("--render and --replies need --strategy single_pass")


async def _render(
    writer: RequestWriter,
    path: Path,
    metrics: Sequence[Evaluator],
    cases: CaseReader | TraceReader,
) -> int:
    scorer = Scorer(writer, metrics)
    try:
        async with aclosing(scorer.stream(cases, concurrency=1)) as stream:
            async for _ in stream:
                pass
    finally:
        await scorer.aclose()
    errors.print(f"{path}: {writer.count} requests; nothing was sent")
    return ExitCode.OK


def _record_of(evaluation: Evaluation, content: ContentPolicy) -> EvaluationRecord:
    digests = {
        "case_digest": case_digest(evaluation.case),
        "input_digest": input_digest(evaluation.case),
    }
    return evaluation_record(evaluation, content=content).model_copy(update=digests)


def _count(reader: CaseReader, chosen: Sequence[Evaluator], wanted: Wanted | None) -> int:
    """How many cases there are. Reading all first finds a bad row before anything is spent."""
    count, has_context = 0, False
    for case in reader:
        count += 1
        has_context = has_context or case.has_context
        if wanted is not None:
            wanted.add(case)
    show_bad_rows(reader)
    if count and not has_context:
        show_no_context(reader, chosen)
    return count


def _code(summary: Summary, goals: list[Goal]) -> int:
    failed = summary.failed_throughout
    problems = [missed(goal, summary) for goal in goals if goal.metric not in failed]
    for problem in filter(None, problems):
        errors.print(plain(problem))
    # An outage of the judge is not a bad answer, whatever mean was asked for.
    if failed:
        errors.print(plain(f"the judge failed on every case: {', '.join(failed)}"))
        return ExitCode.JUDGE
    return ExitCode.BELOW_THRESHOLD if any(problems) else ExitCode.OK


@dataclass(frozen=True)
class Goal:
    """A mean that a metric must reach."""

    metric: str
    mean: float

    @classmethod
    def of(cls, text: str, metrics: Sequence[str]) -> Self:
        """Read `METRIC=MEAN`.

        Raises:
            ConfigurationError: It is something else, or the metric is not measured.
        """
        metric, _, number = text.partition("=")
        try:
            mean = float(number)
        except ValueError:
            mean = -1.0
        if not 0.0 <= mean <= 1.0:
            raise ConfigurationError(
                f"--fail-under {text!r}: write it as METRIC=MEAN, with a mean within [0, 1]"
            )
        if metric not in metrics:
            raise ConfigurationError(
                f"--fail-under {text!r}: {metric} is not measured; --metrics has "
                f"{', '.join(metrics)}"
            )
        return cls(metric, mean)


def missed(goal: Goal, summary: Summary) -> str:
    """What is wrong, or an empty text where the goal is reached.

    A metric without a single score has not reached anything.
    """
    found = summary.metrics.get(goal.metric)
    if found is None or found.mean is None:
        return f"{goal.metric} has no score at all; asked for a mean of {goal.mean:g}"
    if not found.higher_is_better:
        if found.mean <= goal.mean + TOLERANCE:
            return ""
        return f"{goal.metric} has a mean of {found.mean:.4f}, above {goal.mean:g} (low is good)"
    if found.mean >= goal.mean - TOLERANCE:
        return ""
    return f"{goal.metric} has a mean of {found.mean:.4f}, below {goal.mean:g}"


_MOST_OF_A_CAUSE = 300  # characters


def show_summary(summary: Summary, causes: Mapping[str, str]) -> None:
    """Print means with intervals, the counts with every mean, the cost, and why a judge failed.

    Args:
        summary: What was added up.
        causes: What an error of each class said, as far as known.
    """
    table = Table(box=None, pad_edge=False)
    for column in ("metric", "mean", "good", "95 % interval", "scored", "passed", "others"):
        table.add_column(column, overflow="fold")
    for name, metric in summary.metrics.items():
        mean, *others = _cells(metric)
        table.add_row(name, mean, "high" if metric.higher_is_better else "low", *others)
    output.print(table)
    cost = summary.usage.cost_usd
    price = "cost unknown" if cost is None else f"${cost:,.4f}"
    if cost is not None and summary.usage.saved_usd:
        saved = summary.usage.saved_usd
        price += f" (batch price: ${saved:,.4f} less than the list price, ${cost + saved:,.4f})"
    judged = f"{summary.records:,} judged"
    if summary.cases < summary.records:
        judged = f"{summary.cases:,} cases, {judged}"
    output.print(f"{judged}, {summary.usage.total_tokens:,} tokens, {price}")
    for name, metric in summary.metrics.items():
        if metric.spread is not None:
            output.print(f"{name}: a case's score spreads by {metric.spread:.3f} when repeated")
        if metric.unscored_repeats:
            lost = _counted(metric.unscored_repeats)
            output.print(f"{name}: no score at some repeats of a scored case: {lost}")
    found = summary.errors
    for kind, count in found.most_common(1):
        of = "" if len(found) == 1 else f" of {found.total():,}"
        cause = f": {causes[kind]}" if kind in causes else ""
        line = f"failures of the judge: {count:,}{of} with {kind}{cause}"
        errors.print(plain(line, limit=_MOST_OF_A_CAUSE))


def _cells(metric: MetricSummary) -> tuple[str, ...]:
    statuses = metric.statuses
    passing = dict.fromkeys(metric.passing, " (pass)")
    others = _counted({s: n for s, n in statuses.items() if s != "scored"}, passing)
    scored = f"{metric.measured:,} of {metric.cases:,}"
    passed = f"{metric.passed:,}"
    if metric.mean is None or metric.interval is None:
        return "none", "", scored, passed, others
    low, high = metric.interval
    interval = f"{low:.3f} to {high:.3f} ({metric.interval_method})"
    return f"{metric.mean:.3f}", interval, scored, passed, others


def _counted(counts: Mapping[str, int], notes: Mapping[str, str] | None = None) -> str:
    return ", ".join(
        f"{count:,} {status}{(notes or {}).get(status, '')}"
        for status, count in sorted(counts.items())
    )


_SHOWN = 5


def show_bad_rows(reader: CaseReader) -> None:
    """The first rows that could not be read, and how many more there are."""
    for row in reader.skipped_rows[:_SHOWN]:
        errors.print(plain(f"skipped: {row.where}: {row.problem}"))
    if reader.skipped > _SHOWN:
        errors.print(f"skipped: {reader.skipped - _SHOWN:,} more rows")


def show_no_context(reader: CaseReader, evaluators: Sequence[Evaluator]) -> None:
    """That no case has any context, where a metric goes by it: its scores say nothing then."""
    names = [each.name for each in evaluators if not isinstance(each, RelevanceEvaluator)]
    if not names:
        return
    found = f": the rows have {reader.named_columns}" if reader.columns else ""
    errors.print(
        plain(
            f"no case has any context for {', '.join(names)}{found}; say where it is "
            "with --field context=NAME"
        )
    )


def show_skipped_runs(reader: CaseReader) -> None:
    """The runs of a file of traces that gave no case, by reason."""
    if not isinstance(reader, TraceReader):
        return
    if reader.skipped_runs:
        errors.print(f"runs skipped, of {reader.traces:,} traces:")
    for reason, count in reader.skipped_runs.most_common():
        errors.print(plain(f"  {count:,} {reason}: {REASONS.get(reason, reason)}"))
    if reader.late_spans:
        errors.print(f"  {reader.late_spans:,} spans came too late for their trace; sort the file")
