"""`ragaliq quality`: figures of each week as people would judge them."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from ragaliq.cli.console import (
    ExitCode,
    errors,
    escape_for_terminal,
    exports_telemetry,
    output,
    progress,
)
from ragaliq.cli.options import (
    BaseUrl,
    CalibrationFile,
    Judge,
    Model,
    Pipeline,
    PolicyName,
    Since,
    Until,
    choose_judge,
)
from ragaliq.cli.outputs import require_writable
from ragaliq.core.files import replace_file
from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.results import JudgeUsage
from ragaliq.errors import ConfigurationError, DatasetError
from ragaliq.evaluators import get_evaluator
from ragaliq.judges.base import LLMJudge
from ragaliq.lab.alarm import QualityChange, emit_change
from ragaliq.lab.emit import QualityEmitter, QualityOf
from ragaliq.lab.labels import (
    AnchorFile,
    Labels,
    SelectedAnswer,
    draw_answers,
    read_labels,
)
from ragaliq.lab.quality import JudgeChange, QualitySeries, QualityWeek, quality_of
from ragaliq.lab.quality_svg import quality_svg
from ragaliq.offline.run import evaluate
from ragaliq.records.reading import is_store
from ragaliq.records.sqlite_file import companion_file, parse_location
from ragaliq.records.store import read_scores
from ragaliq.reports.wording import cost_of
from ragaliq.statistics import Estimate
from ragaliq.telemetry import TelemetryOptions
from ragaliq.telemetry.providers import flush_providers

_DAY = 86_400.0
_LABELLED = "labelled (claims)"
_TO_FLUSH = 10.0  # seconds


def quality(
    store: Annotated[
        str, typer.Argument(help="A store: sqlite:///PATH or its file.", metavar="STORE")
    ],
    *,
    labels: Annotated[
        Path | None,
        typer.Option(help="The labels from `ragaliq label`. Default: STORE.labels.jsonl."),
    ] = None,
    since: Since = None,
    until: Until = None,
    pipeline: Pipeline = None,
    metric: Annotated[str | None, typer.Option(help="This metric only.", metavar="NAME")] = None,
    plan: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=0.5,
            help="Print how many labels an interval of this half-width takes, such as 0.02.",
        ),
    ] = None,
    rejudge: Annotated[
        int | None,
        typer.Option(
            min=8,
            help="Have --judge score this many answers that another judge has scored, to "
            "tell a new judge from a changed application.",
        ),
    ] = None,
    judge: Judge = None,
    model: Model = None,
    base_url: BaseUrl = None,
    calibration: CalibrationFile = None,
    policy: Annotated[
        PolicyName, typer.Option(help="The policy of the stored scores; for --rejudge.")
    ] = PolicyName.LIVE,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A .json file for the figures.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="An .svg file for a picture of the weeks.")
    ] = None,
) -> int:
    """Print quality by week as reviewers judge it. Shows intervals, and what moved."""
    for option, path, ending in (("--out", out, ".json"), ("--plot", plot, ".svg")):
        if path is not None and path.suffix.lower() != ending:
            raise ConfigurationError(f"{option} {path}: name a {ending} file")
    if rejudge is None and (judge or model or base_url or calibration):
        raise ConfigurationError("--judge, --model, --base-url and --calibration need --rejudge")
    if Path(store).exists() and not is_store(store):
        raise DatasetError(
            f"{store} is not a store; write one with `ragaliq evaluate --sink sqlite:///live.db` "
            "or Monitor(sinks=['sqlite:///live.db'])"
        )
    file = labels or companion_file(store, "labels")
    if labels is not None and not labels.exists():
        raise DatasetError(f"{labels}: there is no such file")
    anchors = AnchorFile(companion_file(file, "anchors"))
    require_writable(
        [("--out", out), ("--plot", plot)],
        read=[("the store", parse_location(store)), ("the labels", file)],
    )
    if rejudge is not None:
        chosen = choose_judge(judge, model=model, base_url=base_url, calibration=calibration)
        chosen.announce()
        drawn = draw_answers(store, rejudge, since=since, until=until, pipeline=pipeline)
        _rejudge(drawn.answers, chosen.judge, anchors, policy=policy)
    scores = read_scores(store, since=since, until=until, pipeline=pipeline, metric=metric)
    known = read_labels(file) if file.exists() else None
    found = quality_of(scores, known, anchors.anchors)
    if not found:
        raise DatasetError(f"{store} holds no scores within the time, pipeline and metric asked")
    for series in found:
        _show(series, store)
        if plan is not None:
            _show_plan(series, plan)
    _show_labels(known, store)
    if out is not None:
        rows: list[dict[str, Any]] = [asdict(series) for series in found]
        replace_file(out, json.dumps(rows, indent=1) + "\n")
    if plot is not None:
        replace_file(plot, quality_svg(found))
    _emit(found)
    return ExitCode.OK


def _show_labels(labels: Labels | None, store: str) -> None:
    if labels is None:
        errors.print(f"no labels: `ragaliq label {store}` draws answers for you to label")
        return
    for count, what in (
        (labels.unfinished, "drawn answers are not labelled whole, and do not count yet"),
        (labels.undrawn, "labels are of claims that were not drawn, and do not count"),
    ):
        if count:
            errors.print(f"{count:,} {what}")


def _show(series: QualitySeries, store: str) -> None:
    output.print(series.title, style="bold")
    is_joined = bool(series.judge_changes)
    columns = ["week of", "reviewers would say", "judge alone", "answers", _LABELLED]
    if is_joined:
        columns.insert(3, "by today's judge")
    table = Table(box=None, pad_edge=False)
    for column in columns:  # intervals break at a blank; dates and counts would be cut off
        table.add_column(column, no_wrap=column in ("week of", "answers"))
    for week in series.weeks:
        epochs = f" ({week.epochs} judges)" if week.epochs > 1 else ""
        cells = [
            week.title,
            _interval(week.people),
            _interval(week.judge_alone) + epochs,
            f"{week.answers:,}",
            f"{week.labelled:,} ({week.labels:,})" if week.labels else "0",
        ]
        if is_joined:
            cells.insert(3, _interval(week.joined))
        table.add_row(*map(escape_for_terminal, cells))
    output.print(table)
    if (latest := series.labelled) is not None:
        alone = latest.judge_alone.value
        output.print(
            f"{series.metric.replace('_', ' ').capitalize()} as your reviewers would judge it: "
            f"{_interval(latest.people)} in the week of {latest.title}, from "
            f"{latest.answers - latest.uncovered:,} judged answers, {latest.labelled:,} of them "
            f"labelled ({latest.labels:,} claims); the judge alone says {alone:.2f}."
        )
    for week in series.weeks:
        if week.uncovered:
            output.print(
                f"week of {week.title}: {week.uncovered:,} answers came after the last draw, and "
                "no label speaks for them; label again"
            )
    for change in series.judge_changes:
        _show_change(change, store, series.pipeline)
    for alarm in series.alarms:
        output.print(_alarm(alarm))


def _show_change(change: JudgeChange, store: str, pipeline: str) -> None:
    day = datetime.fromtimestamp(change.time, UTC).strftime("%Y-%m-%d")
    output.print(
        f"judge changed on {day}: {_judges(change)}; the score moved {_signed(change.moved)}"
    )
    if change.by_judge is None or change.by_application is None:
        command = ["ragaliq", "quality", store, "--rejudge", "60", "--judge", change.judge_after]
        command += ["--model", change.model_after] if change.model_after else []
        command += ["--pipeline", pipeline] if pipeline else []
        output.print(
            f"  both judges scored {change.pairs:,} answers: too few to say which moved; "
            "to have the new judge score answers of before, run"
        )
        output.print(f"  {shlex.join(command)}", soft_wrap=True)
        return
    output.print(
        f"  judge moved {_signed(change.by_judge)}, application moved "
        f"{_signed(change.by_application)}, by {change.pairs:,} answers that both scored"
    )


def _judges(change: JudgeChange) -> str:
    """The judges by name; two of one name also by their epochs."""
    before, after = change.judge_before, change.judge_after
    if before == after:
        before, after = f"{before} {change.before[:8]}", f"{after} {change.after[:8]}"
    return f"{before} -> {after}"


def _alarm(alarm: QualityChange) -> str:
    day = datetime.fromtimestamp(alarm.time, UTC).strftime("%Y-%m-%d %H:%M")
    release = f" in release {alarm.release}" if alarm.release else ""
    return (
        f"{alarm.metric} {alarm.shift.direction} by {day} UTC{release}: "
        f"{_signed(alarm.shift.difference)} against {alarm.reference}"
    )


def _show_plan(series: QualitySeries, half_width: float) -> None:
    week = series.labelled or series.weeks[-1]
    if week.anchored is None:
        # People's verdicts are not known yet: assume the judge's scores.
        spread = _spread(week)
        needed: int | None = math.ceil((1.96 / half_width) ** 2 * spread)
        basis = "without labels yet; a judge that agrees with you needs fewer"
    else:
        needed = week.anchored.labels_for(half_width)
        basis = f"as in the week of {week.title}"
    if needed is None:
        output.print(
            f"plan: +-{half_width:g} cannot be reached by labels: {week.answers:,} judged answers "
            "are too few; sample more traffic"
        )
        return
    more = max(0, needed - week.labelled)
    output.print(
        f"plan: +-{half_width:g} takes {needed:,} labelled answers a week, {more:,} more than "
        f"there are ({basis})"
    )


def _spread(week: QualityWeek) -> float:
    mean = week.judge_alone
    return min(mean.value * (1.0 - mean.value), (mean.width / 3.92) ** 2 * mean.effective_n)


def _interval(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def _signed(estimate: Estimate) -> str:
    return f"{estimate.value:+.2f} [{estimate.low:+.2f}, {estimate.high:+.2f}]"


def _rejudge(
    answers: Sequence[SelectedAnswer], judge: LLMJudge, anchors: AnchorFile, *, policy: PolicyName
) -> None:
    """Let a judge score answers again, with the same metrics and thresholds."""
    metrics = {
        anchor.metric: answer.record.results[anchor.metric].threshold
        for answer in answers
        for anchor in answer.anchors()
    }
    scoring: ScoringPolicy = getattr(ScoringPolicy, policy.name)
    evaluators = [
        get_evaluator(metric)(threshold, policy=scoring) for metric, threshold in metrics.items()
    ]
    epochs = {each.name: each.fingerprint(judge) for each in evaluators}
    for answer in answers:
        anchors.add(answer.anchors())
    todo = {
        answer.record.run.run_id: answer
        for answer in answers
        if not all(
            anchors.has(answer.record.run.run_id, epochs[anchor.metric])
            for anchor in answer.anchors()
        )
    }
    cases = []
    for run_id, answer in todo.items():
        assert answer.record.case is not None  # noqa: S101 - only answers with texts are drawn
        cases.append(answer.record.case.model_copy(update={"id": run_id}))
    with progress(len(cases), 0) as show:
        run = evaluate(
            cases,
            judge=judge,
            metrics=evaluators,
            telemetry=TelemetryOptions.silent(),
            on_progress=lambda done, total: show(JudgeUsage()),  # noqa: ARG005 - it is a callback
        )
    for evaluation in run:
        anchors.add(todo[evaluation.case.id].anchors(evaluation.results))
    errors.print(
        f"{judge.name} scored {len(cases):,} answers ({cost_of(run.usage)}), in {anchors.path}"
    )


def _emit(found: Sequence[QualitySeries]) -> None:
    """Send gauges of the latest week, and events of a day, where the environment says so."""
    if not exports_telemetry():
        return
    emitter = QualityEmitter()
    for series in found:
        week = series.weeks[-1]
        of = QualityOf(series.pipeline, series.metric, week.fingerprint, series.higher_is_better)
        if (labelled := series.labelled) is not None and labelled.people is not None:
            emitter.anchored(of, labelled.people, labels=labelled.labels)
        last = series.alarms[-1] if series.alarms else None
        is_new = last is not None and datetime.now(UTC).timestamp() - last.time < _DAY
        emit_change(emitter, series.fresh, last if is_new else None, of=of)
    flush_providers(_TO_FLUSH)
