"""`ragaliq evaluate FILE`: score the cases of a file, and show the results."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ragaliq.cli.asking import ask_application
from ragaliq.cli.console import (
    INPUT,
    LIMITS,
    RESULTS,
    SCORES,
    ExitCode,
    errors,
    escape_for_terminal,
    exports_telemetry,
    output,
    progress,
    say_what_is_left,
    stopped_by_sigterm,
)
from ragaliq.cli.options import (
    BaseUrl,
    CalibrationFile,
    ChosenJudge,
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
    given_options,
    imported,
    names_of,
    opened_cases,
)
from ragaliq.cli.outputs import Outputs
from ragaliq.core.annexes import annex
from ragaliq.core.files import replace_file
from ragaliq.datasets import CaseReader
from ragaliq.datasets.cases import ProductRuns, recognised
from ragaliq.datasets.opening import is_backend
from ragaliq.errors import BudgetExceeded, ConfigurationError, DatasetError
from ragaliq.evaluators.evaluator import Evaluator
from ragaliq.offline.app import NoAnswer
from ragaliq.offline.goals import Goal
from ragaliq.offline.job import EvaluationJob
from ragaliq.offline.journal import CaseIndex, EvaluationJournal
from ragaliq.records.sinks import Sink, SinkLimits, SinkStats, resolve_sink
from ragaliq.records.summary import Summary
from ragaliq.reports.wording import (
    METRIC_COLUMNS,
    BadAnswer,
    cost_of,
    figures_of,
    markdown_of,
    metric_rows,
    others_of,
    pass_line,
)
from ragaliq.scoring.scorer import CostCap, Scorer
from ragaliq.telemetry import ContentPolicy

_WORTH_A_PROCESS = 200

Out = Annotated[
    list[Path] | None,
    typer.Option(
        "--out",
        "-o",
        help="File for the results: .jsonl, .csv, .html or .xml (JUnit); repeatable.",
        rich_help_panel=RESULTS,
    ),
]


_FOR_PENDING = frozenset(
    "sources pending judge model base_url metrics rubric threshold policy decline strategy sink "
    "concurrency timeout fail_under summary_files".split()
)


def evaluate(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA",
            help="Files of cases (.jsonl, .json, .csv, .tsv, .parquet) or traces "
            "(OTLP, Phoenix's exports), also .gz; - for standard input; "
            "phoenix://PROJECT, mlflow://EXPERIMENT or langfuse:// for the runs there "
            "without a score; with --pending a file of runs, sqlite:///runs.db.",
        ),
    ],
    *,
    context: typer.Context,
    pending: Annotated[
        bool,
        typer.Option(
            "--pending",
            help="Evaluate the runs that Monitor(executor='sqlite:///runs.db') stored. "
            "--judge claude-batch costs half and takes minutes to hours.",
            rich_help_panel=INPUT,
        ),
    ] = False,
    app: Annotated[
        str | None,
        typer.Option(
            help="DATA holds questions: ask this LangChain runnable or LlamaIndex engine first.",
            metavar="MODULE:NAME",
            rich_help_panel=INPUT,
        ),
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option(
            help="With --app: the .jsonl file that keeps the answers. Default: next to --out.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    out: Out = None,
    summary_files: Annotated[
        list[Path] | None,
        typer.Option(
            "--summary",
            help="File for the figures: .json, or .md for a pull request; repeatable.",
            rich_help_panel=RESULTS,
        ),
    ] = None,
    judge: Judge = None,
    model: Model = None,
    base_url: BaseUrl = None,
    calibration: CalibrationFile = None,
    metrics: Metrics = None,
    rubric: Rubrics = None,
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            help="The score that an answer must reach to pass a metric; repeatable.",
            metavar="METRIC=SCORE",
            rich_help_panel=SCORES,
        ),
    ] = None,
    policy: Policy = PolicyName.LIVE,
    decline: Annotated[
        list[str] | None,
        typer.Option(
            help="How the application declines: the text, or /a regular expression/; repeatable.",
            rich_help_panel=SCORES,
        ),
    ] = None,
    strategy: Strategy = None,
    field: Fields = None,
    split_context: SplitContext = None,
    encoding: Encoding = None,
    mapping: MappingFile = None,
    resolve: Resolve = None,
    skip_bad_rows: SkipBadRows = False,
    max_skipped: Annotated[
        int | None,
        typer.Option(
            min=0, help="Exit with code 3 if more rows are skipped.", rich_help_panel=INPUT
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Continue an existing results file.", rich_help_panel=RESULTS
        ),
    ] = False,
    retry_failed: Annotated[
        bool,
        typer.Option(
            "--retry-failed",
            help="With --resume: also evaluate again where the judge failed.",
            rich_help_panel=RESULTS,
        ),
    ] = False,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(
            help="Exit with code 1 if less than this share of the answers (such as 0.9) "
            "passes every metric, or if a metric's mean is worse; repeatable.",
            metavar="SHARE|METRIC=MEAN",
            rich_help_panel=SCORES,
        ),
    ] = None,
    sink: Annotated[
        list[str] | None,
        typer.Option(
            help="Also store results in sqlite:///path, or as scores in phoenix://localhost:6006, "
            "langfuse, langsmith or mlflow; repeatable.",
            rich_help_panel=RESULTS,
        ),
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Start no further case after this many US dollars.",
            rich_help_panel=LIMITS,
        ),
    ] = None,
    concurrency: Annotated[
        int,
        typer.Option(
            min=1, help="Cases evaluated at the same time, in each process.", rich_help_panel=LIMITS
        ),
    ] = 8,
    processes: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Processes of the embedded judge. Default: one a core, 0 for few cases.",
            rich_help_panel=LIMITS,
        ),
    ] = None,
    repeats: Annotated[
        int,
        typer.Option(min=1, help="How many times to evaluate each case.", rich_help_panel=LIMITS),
    ] = 1,
    timeout: Annotated[
        float, typer.Option(min=0.001, help="Seconds for each metric.", rich_help_panel=LIMITS)
    ] = 300,
    no_text: Annotated[
        bool,
        typer.Option(
            "--no-text",
            help="Store and emit no questions, answers, chunks or claims.",
            rich_help_panel=RESULTS,
        ),
    ] = False,
) -> int:
    """Score the answers of files. Rerun with --resume to continue an interrupted run."""
    measured = partial(
        evaluators_of,
        metrics,
        policy=policy,
        strategy=strategy,
        thresholds=threshold,
        declines=decline or (),
        rubrics=rubric or (),
    )
    if pending:
        _require_options_of_pending(context)
        job, chosen, total = annex("worker.pending").pending_job(
            sources,
            measured,
            choice=(judge, model, base_url),
            sinks=sink or (),
            concurrency=concurrency,
            timeout=timeout,
            goals=fail_under or (),
        )
        outputs = Outputs([], reads=[], resume=False, summary=summary_files or ())
        exports_telemetry()
        code = _run(job, chosen, outputs, None, total=total)
        job.report()
        return code
    chosen = choose_judge(judge, model=model, base_url=base_url, calibration=calibration)
    cap = CostCap(max_cost, option="--max-cost")
    cap.require_price(chosen.judge)  # before an application is asked
    evaluators = measured(chosen.judge)
    for evaluator in evaluators:
        evaluator.require(chosen.judge)
    names = [each.name for each in evaluators]
    goals = [Goal.of(text, names, option="--fail-under") for text in fail_under or ()]
    _require_partners(context)
    shown = [each.partition("?")[0] if is_backend(each) else each for each in sources]
    files = [Path("stdin" if each == "-" else each) for each in shown]
    kept = answers or (out[0] if out else files[0]).with_suffix(".answers.jsonl")
    reads = [("the calibration", chosen.calibration), ("--model", model)]
    reads.append(("the answers", kept if app is not None else None))
    outputs = Outputs(
        out or [],
        reads=[*(("the cases", source) for source in sources), *reads],
        resume=resume,
        summary=summary_files or (),
    )
    sinks = [resolve_sink(each) for each in sink or ()]
    unanswered: list[NoAnswer] = []
    if app is not None:
        unanswered = ask_application(
            imported("--app", app),
            sources,
            kept,
            fields=names_of(field),
            encoding=encoding,
            resume=resume,
            concurrency=concurrency,
        )
        opened = opened_cases([str(kept)])
    else:
        opened = opened_cases(
            sources,
            field,
            skip_bad_rows=skip_bad_rows,
            encoding=encoding,
            split_context=split_context,
            mapping=mapping,
            resolve=resolve,
        )
    with opened as reader:
        _refuse_sinks_of_spans(sinks, reader, shown)
        if isinstance(reader, ProductRuns):
            reader.skip_scored(names)
            if not reader.unscored:
                line = f"{shown[0]}: no run without a score; {reader.scored:,} have one"
                output.print(line)
                show_skipped_runs(reader)
                return ExitCode.OK
            sinks.append(reader.sink)
        index = _read_through(
            reader, evaluators, repeats=repeats, max_skipped=max_skipped, asked=app is not None
        )
        at_once = processes
        if at_once is None:
            # Starting a process takes half a second, in which the embedded judge decides some
            # hundred cases.
            at_once = (os.cpu_count() or 1) if len(index) >= _WORTH_A_PROCESS else 0
        exports_telemetry()
        journal = None
        if outputs.results_path is not None:
            journal = EvaluationJournal(
                outputs.results_path,
                about={"data": ", ".join(file.name for file in files)},
                keeps_text=not no_text,
                retry_failed=retry_failed,
            )
        job = EvaluationJob(
            reader,
            Scorer(
                chosen.judge,
                evaluators,
                deadline=timeout,
                executor=None if at_once else "thread",
                processes=max(1, at_once),
                content=ContentPolicy() if no_text else None,  # or else what the environment says
                sinks=sinks,
                sink_limits=SinkLimits(max_queue=max(1, len(index)), max_characters=sys.maxsize),
            ),
            journal=journal,
            max_cost=cap,
            repeats=repeats,
            goals=goals,
            concurrency=concurrency,
            pipeline=", ".join(dict.fromkeys(map(_pipeline_of, sources))),
            index=index,
        )
        code = _run(job, chosen, outputs, reader, total=len(index))
        return code or (ExitCode.DATA if unanswered else ExitCode.OK)


def _pipeline_of(source: str) -> str:
    """Name of a source without its ending, with its folder, since stores know rows by this name.

    Of an absolute path, only the last folder: the rest differs from machine to machine.
    """
    if source == "-":
        return "stdin"
    if is_backend(source):
        return Path(source.partition("?")[0]).stem
    path = Path(source)
    folder = path.parent.name if path.is_absolute() else path.parent
    return Path(folder, path.stem).as_posix()


def _refuse_sinks_of_spans(
    sinks: Sequence[Sink], reader: CaseReader, sources: Sequence[str]
) -> None:
    """Refuse sinks that put scores on spans before anything is spent on cases without spans."""
    for sink in sinks:
        if getattr(sink, "needs_span", False) and not reader.has_spans:
            raise ConfigurationError(
                f"--sink: {sink.name} keeps scores on the spans of answers, and "
                f"{', '.join(sources)} has no traces. Store results in "
                "--sink sqlite:///results.db, or score traces"
            )


_NOT_FOR_QUESTIONS = ("skip_bad_rows", "max_skipped", "split_context", "mapping", "resolve")


def _require_partners(context: typer.Context) -> None:
    """Refuse options that mean nothing, or are not kept, without or with another one."""
    options = context.params
    app, answers = options["app"], options["answers"]
    for name, option in given_options(context).items():
        if app is not None and name in _NOT_FOR_QUESTIONS:
            raise ConfigurationError(f"{option} does not go with --app; remove it")
    if options["retry_failed"] and not options["resume"]:
        raise ConfigurationError("--retry-failed goes with --resume")
    if answers is not None and app is None:
        raise ConfigurationError("--answers goes with --app")
    if app is not None and options["no_text"] and answers is None:
        raise ConfigurationError(
            "--no-text: --app keeps the answers, with their texts, in a file; name it with "
            "--answers if it may be written"
        )


def _require_options_of_pending(context: typer.Context) -> None:
    for name, option in given_options(context).items():
        if name not in _FOR_PENDING:  # a cap on money, for one, is never ignored silently
            raise ConfigurationError(f"{option} does not go with --pending; remove it")


def _run(
    job: EvaluationJob,
    chosen: ChosenJudge,
    outputs: Outputs,
    reader: CaseReader | None,
    *,
    total: int,
) -> int:
    """Run a job, and show and write its results however it ends."""
    job.start()
    summary, journal = job.summary, job.journal
    earlier = summary.records
    if journal is not None:
        _show_held(journal)
    causes: dict[str, str] = {}
    lost, is_writable = 0, True

    async def run() -> None:
        with stopped_by_sigterm():
            async with aclosing(aiter(job)) as evaluations:
                async for evaluation in evaluations:
                    judged(evaluation.usage)
                    for result in evaluation.results.values():
                        if result.status.is_failure and result.error_type and result.error:
                            causes.setdefault(result.error_type, result.error)

    chosen.announce()
    try:
        with progress(total, earlier) as judged:
            asyncio.run(run())
    except (KeyboardInterrupt, typer.Exit, DatasetError) as error:  # Ctrl-C, SIGTERM, a full disk
        is_writable = not isinstance(error, DatasetError)
        option = "--resume" if outputs.results_path else "--out results.jsonl"
        if reader is not None:  # else every run that is done has left the file
            say_what_is_left(summary.records, total, outputs.results_path, option=option)
        raise
    finally:
        # However the run ended, show and write the results so far.
        if summary.records:
            show_summary(summary, causes, job.worst, earlier=earlier)
            output.print(chosen.title)
            if job.scorer.judge.kind == "code":
                output.print(
                    "The embedded judge compares words, not meaning: check what surprises you, "
                    "or use --judge claude."
                )
            if reader is not None:
                show_skipped_runs(reader)
            lost = _show_sinks(job.scorer.sinks.stats())
            if is_writable:  # else another file's error would hide the first one
                _write_files(job, chosen, outputs, reader)
    if job.is_cut:
        raise BudgetExceeded(
            f"{job.cap.reached}; rerun with --resume and a higher --max-cost to continue"
        )
    return _code(summary, job.goals) or (ExitCode.DATA if lost else ExitCode.OK)


def _show_held(journal: EvaluationJournal) -> None:
    """Print the counts of a journal's earlier results."""
    for count, what, became in (
        (journal.held.changed, "case", "changed since: evaluated again"),
        (journal.held.moved, "case", "under another id or row now: result kept"),
        (
            journal.held.gone,
            "result",
            f"of cases that are gone: not counted, kept in {journal.path}",
        ),
    ):
        if count:
            errors.print(f"{count:,} {what}{'s' if count > 1 else ''} {became}")
    if journal.failed:
        errors.print(
            f"the judge failed on {journal.failed:,} earlier cases; --retry-failed evaluates them "
            "again"
        )


def _show_sinks(stats: Mapping[str, SinkStats]) -> int:
    """Print the counts of each sink; return the most results that one did not store."""
    unstored = 0
    for name, counts in stats.items():
        lost = counts.failed + counts.dropped + counts.pending
        fates = {"written": counts.written, "passed over": counts.passed_over, "not stored": lost}
        unstored += lost + counts.passed_over
        fate = ", ".join(f"{number:,} {what}" for what, number in fates.items() if number)
        errors.print(f"sink {name}: {fate or 'nothing'}")
    return unstored


def _write_files(
    job: EvaluationJob,
    chosen: ChosenJudge,
    outputs: Outputs,
    reader: CaseReader | None,
) -> None:
    """Write the other formats of the results, and the figures."""
    problems = [(goal.text, problem) for goal, problem in job.problems]
    for path in outputs.summary:
        text = markdown_of(job.summary, job.worst)
        if path.suffix.lower() == ".json":
            figures = figures_of(job.summary) | {
                "judge": chosen.title,
                "goals": [{"goal": goal, "problem": text} for goal, text in problems],
                "skipped_rows": reader.skipped if reader is not None else 0,
                "worst": [bad._asdict() for bad in job.worst],
            }
            text = json.dumps(figures, indent=2, ensure_ascii=False) + "\n"
        replace_file(path, text)
    files = list(outputs.summary)
    if job.journal is not None:  # after the figures, which fit on a disk that is nearly full
        with errors.status("writing files"):
            files = [*outputs.write(job.journal, problems), *files]
    if files:
        errors.print(f"written: {', '.join(map(str, files))}")
    if job.journal is None and reader is not None:
        errors.print("claim by claim: add --out report.html or --out results.csv")


def _read_through(
    reader: CaseReader,
    metrics: Sequence[Evaluator],
    *,
    repeats: int,
    max_skipped: int | None,
    asked: bool,
) -> CaseIndex:
    """Read all cases first, which finds a bad row before anything is spent."""
    index, present = CaseIndex(repeats), set[str]()
    with errors.status("reading"):
        for number, case in enumerate(reader, start=1):
            index.add(case, reader.row or number)
            if case.has_context:
                present.add("context")
            if any(text.strip() for text in (case.expected_answer or "", *case.expected_facts)):
                present.add("expected_answer")
    for row in reader.skipped_rows[:_SHOWN]:
        errors.print(f"skipped: {row.where}: {row.problem}")
    if reader.skipped > _SHOWN:
        errors.print(f"skipped: {reader.skipped - _SHOWN:,} more rows")
    if max_skipped is not None and reader.skipped > max_skipped:
        raise DatasetError(
            f"{reader.skipped:,} rows are skipped, more than --max-skipped {max_skipped:,}"
        )
    if not len(index):
        raise DatasetError(f"{reader.path}: no row is left to evaluate")
    for field, other in (("context", "relevance"), ("expected_answer", "faithfulness")):
        names = [each.name for each in metrics if field in each.needs]
        if names and field not in present:
            if asked and field == "context":
                raise DatasetError(
                    f"the application's answers have no context for {', '.join(names)}; have it "
                    f"return what it retrieved, or choose other metrics, such as --metrics {other}"
                )
            _complain_of_a_lack(reader, field, names, other)
    return index


def _complain_of_a_lack(reader: CaseReader, field: str, names: list[str], other: str) -> None:
    """Refuse a file without the column that these metrics need; say where it is blank throughout.

    Raises:
        DatasetError: The file has columns, and none of them is the field.
    """
    blank = next((name for name in reader.columns if recognised(name) == field), None)
    problem = f"no case has any {field.replace('_', ' ')} for {', '.join(names)}"
    if reader.columns and blank is None:
        raise DatasetError(
            f"{reader.path}: {problem}: the columns are {reader.named_columns}. Add --field "
            f"{field}=COLUMN, or choose other metrics, such as --metrics {other}"
        )
    errors.print(f"{problem}: {blank!r} is blank in every row" if blank else problem)


def _code(summary: Summary, goals: list[Goal]) -> int:
    if not summary.records:  # no run was pending
        return ExitCode.OK
    failed = summary.failed_throughout
    # An outage of the judge is not a bad answer: ignore the goals of its metrics.
    fair = [goal for goal in goals if not failed or goal.metric not in ("", *failed)]
    problems = [goal.problem(summary) for goal in fair]
    for problem in filter(None, problems):
        errors.print(problem)
    if failed:
        errors.print(f"the judge failed on every case: {', '.join(failed)}")
        return ExitCode.JUDGE
    return ExitCode.BELOW_THRESHOLD if any(problems) else ExitCode.OK


_MOST_OF_A_CAUSE = 300  # characters


def show_summary(
    summary: Summary, causes: Mapping[str, str], worst: Iterable[BadAnswer], *, earlier: int
) -> None:
    """Print one line for each metric, the worst answers, the cost, and the judge's failures.

    `causes` maps each class of error to a message; `earlier` counts evaluations of an earlier run.
    """
    table = Table(box=None, pad_edge=False)
    for column in METRIC_COLUMNS[:-1]:
        table.add_column(column, overflow="fold")
    for row in metric_rows(summary):
        table.add_row(*row[:-1])
    output.print(table)
    for name, metric in summary.metrics.items():
        if others := others_of(metric.statuses, metric.passing):
            scored = metric.statuses.get("scored", 0)
            output.print(f"{name}: {scored:,} scored, {others}")
        if metric.spread is not None:
            output.print(f"{name}: a case's score spreads by {metric.spread:.3f} when repeated")
        if metric.unscored_repeats:
            lost = others_of(metric.unscored_repeats, ())
            output.print(f"{name}: no score at some repeats of a scored case: {lost}")
    shown = list(worst)
    if shown:
        output.print()
        output.print("lowest scores")
    for bad in shown:
        output.print(escape_for_terminal(f"  {bad.id}  {bad.question}", limit=100))
        for reason in bad.reasons:
            output.print(f"    {reason}")
    output.print()
    output.print(pass_line(*summary.passing, summary.cases))
    judged = f"{summary.records:,} judged"
    if summary.cases < summary.records:
        judged = f"{summary.cases:,} cases, {judged}"
    if earlier:
        judged += f" ({'all' if earlier == summary.records else f'{earlier:,}'} in earlier runs)"
    output.print(f"{judged}, {summary.usage.total_tokens:,} tokens, {cost_of(summary.usage)}")
    found = summary.errors
    for kind, count in found.most_common(1):
        of_all = "" if len(found) == 1 else f" of {found.total():,}"
        cause = f": {causes[kind]}" if kind in causes else ""
        line = f"failures of the judge: {count:,}{of_all} with {kind}{cause}"
        errors.print(escape_for_terminal(line, limit=_MOST_OF_A_CAUSE))


_SHOWN = 5


def show_skipped_runs(reader: CaseReader) -> None:
    """Print the runs of a file of traces without a case, by reason."""
    for line in reader.remarks():
        errors.print(line)
