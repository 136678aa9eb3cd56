"""`evaluate`: many cases in, their results and a summary out."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragaliq.core.checks import takes_only
from ragaliq.core.policy import ScoringPolicy
from ragaliq.core.results import Evaluation, JudgeUsage
from ragaliq.core.sync import synchronous
from ragaliq.core.test_case import RAGTestCase
from ragaliq.errors import ConfigurationError
from ragaliq.evaluators.registry import EvaluatorSpec
from ragaliq.judges.resolve import JudgeSpec
from ragaliq.offline.app import NoAnswer, answers, numbered
from ragaliq.offline.goals import Goal
from ragaliq.offline.job import EvaluationJob
from ragaliq.offline.journal import EvaluationJournal
from ragaliq.records import EvaluationRecord, evaluation_record
from ragaliq.records.record import run_id_of
from ragaliq.records.sinks import SinkLimits, SinkSpec, SinkStats
from ragaliq.records.summary import MetricSummary, Summary
from ragaliq.reports import write_report
from ragaliq.reports.views import failures_of, html_of, notebook_progress, row_of
from ragaliq.reports.wording import WorstAnswers, markdown_of, number_of, text_of
from ragaliq.scoring.scorer import CostCap, Scorer
from ragaliq.telemetry.content import ContentPolicy, Redactor
from ragaliq.telemetry.emit import TelemetryOptions

if TYPE_CHECKING:
    import pandas


logger = logging.getLogger(__name__)

Progress = Callable[[int, int], object]


@dataclass(frozen=True, kw_only=True)
class EvaluationRun(Sequence[Evaluation]):
    """Results in the order of the cases, with a summary.

    Attributes:
        cases: The results.
        totals: Summary of the results; intervals are computed on first use.
        usage: Tokens, requests and money of the whole run.
        sinks: Counts of each sink, by name.
        worst: The answers with the lowest scores.
        is_cut: Whether `max_cost` was reached, so that not every case was begun.
        problems: A sentence for each goal that was missed.
        unanswered: The questions that an application gave no answer to, with the reasons.
    """

    cases: tuple[Evaluation, ...]
    totals: Summary
    usage: JudgeUsage
    worst: WorstAnswers = field(repr=False)
    sinks: Mapping[str, SinkStats] = field(default_factory=dict)
    is_cut: bool = False
    problems: tuple[str, ...] = ()
    unanswered: tuple[NoAnswer, ...] = ()

    def __len__(self) -> int:
        return len(self.cases)

    def __getitem__(self, index: int) -> Evaluation:  # type: ignore[override]
        return self.cases[index]

    def __iter__(self) -> Iterator[Evaluation]:
        return iter(self.cases)

    def __str__(self) -> str:
        return text_of(self.totals, self.worst)

    def __repr__(self) -> str:
        # `asyncio.run` formats its result once: texts or intervals would take long.
        metrics = dict.fromkeys(key.metric for key in self.totals.series)
        return f"EvaluationRun({number_of(len(self.cases), 'case')}; {', '.join(metrics)})"

    def _repr_html_(self) -> str:
        return html_of(self.cases, self.totals)

    @property
    def metrics(self) -> Mapping[str, MetricSummary]:
        """Summary of each metric, by name."""
        return self.totals.metrics

    @property
    def failures(self) -> list[Evaluation]:
        """Evaluations with a metric that does not pass, the lowest score first."""
        return failures_of(self.cases)

    def summary(self) -> str:
        """The figures and the lowest answers, as Markdown."""
        return markdown_of(self.totals, self.worst)

    def to_pandas(self) -> pandas.DataFrame:
        """Table of results: texts, `METRIC.score`, `.passed`, `.status`, `.reason`, metadata.

        Raises:
            ConfigurationError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise ConfigurationError("to_pandas needs pandas: pip install pandas") from None
        return pandas.DataFrame(
            [row_of(each.run.run_id, each.case, each.results) for each in self.cases]
        )

    def write_report(self, path: str | PathLike[str], *, title: str = "RAG answer quality") -> Path:
        """Write one HTML page that holds everything it shows and loads nothing; see the CLI's.

        Returns:
            Where it is.

        Raises:
            ConfigurationError: jinja2 is not installed.
            DatasetError: There are no results, or the page cannot be written.
        """
        return write_report(self._records(), path, title=title, source_name="evaluate()").path

    def _records(self) -> Iterator[EvaluationRecord]:
        everything = ContentPolicy(on_spans=True, on_events=True)
        return (evaluation_record(each, content=everything) for each in self.cases)


async def evaluate_async(
    cases: Any,
    questions: Iterable[str | RAGTestCase] | None = None,
    *,
    metrics: Iterable[EvaluatorSpec] | None = None,
    judge: JudgeSpec | str = "local",
    concurrency: int = 8,
    processes: int = 0,
    policy: ScoringPolicy = ScoringPolicy.LIVE,
    declines: Iterable[str] = (),
    deadline: float | None = None,
    repeats: int = 1,
    journal: EvaluationJournal | str | PathLike[str] | None = None,
    max_cost: float | None = None,
    goals: Iterable[Goal | str | float] | Goal | str | float = (),
    on_progress: Progress | None = None,
    sinks: Iterable[SinkSpec] = (),
    pipeline: str = "",
    capture_content: bool | None = None,
    redact: Redactor | None = None,
    redact_for_judge: Redactor | None = None,
    telemetry: TelemetryOptions | None = None,
) -> EvaluationRun:
    """Score many cases, or the answers of an application to many questions.

        evaluate([RAGTestCase(query=..., context=[...], response=...)], judge="claude")
        evaluate(chain, ["How long do refunds take?"], judge="claude")

    An application is asked first, `concurrency` questions at a time, and its runs are captured as a
    handler does. Questions without an answer are in the result's `unanswered`.

    A case whose evaluation fails gets results with the status of the failure and no score, also
    under policies that raise for a single case: the other cases' results are never lost.
    Evaluations are emitted as spans, events and metrics if the process has OpenTelemetry providers,
    as for live runs.

    Args:
        cases: A list of `RAGTestCase`; with `questions`, the application: a LangChain runnable, a
            LlamaIndex engine or agent, or a function of a question's text that returns a
            `RAGTestCase`.
        questions: Texts, or cases with a question and perhaps an expected answer.
        metrics: Metrics: names, classes or instances; by default faithfulness, and relevance if the
            judge is a language model.
        judge: `local`, `claude`, or a judge. `RAGALIQ_JUDGE` is ignored here, so that the script
            shows what it costs.
        concurrency: Cases evaluated concurrently, in each process.
        processes: Child processes for the embedded judge, which is CPU-bound; 0 to use this one.
        policy: Policy of metrics without their own; by default an answer with nothing to verify has
            no score and does not pass.
        declines: The application's own ways to decline: texts, or regular expressions between
            slashes. Such an answer has the status `answer_refused` and no score.
        deadline: Most seconds for each metric of a case; no limit by default.
        repeats: Evaluations of each case; the summary counts it once.
        journal: A results file (`results.jsonl`), to which each evaluation is added at once, with
            its texts, or an `EvaluationJournal`. An existing one is continued: its valid results
            are not evaluated again. An application's answers are kept next to a file with texts
            (`results.answers.jsonl`), and those questions are not asked again.
        max_cost: US dollars, including the journal's earlier evaluations, after which no further
            case is begun; cases in progress are finished, and the result's `is_cut` is true.
        goals: Goals of the results, such as `"faithfulness=0.8"`, or the share of answers that must
            pass; missed ones are in the result's `problems`.
        on_progress: Called with (cases done, cases in all) after each case; by default a notebook
            shows a bar.
        sinks: Additional stores of results: `sqlite:///path`, or sink objects. Their counts are in
            the result's `sinks`; a failing sink never fails the run.
        pipeline: Name of the pipeline in sinks and telemetry.
        capture_content: Whether the texts may enter sinks and telemetry; by default from the
            environment, else no.
        redact: Called with each text, and its kind, before it enters a sink or telemetry.
        redact_for_judge: Called with each text of a case, and its kind (`question`, `answer`,
            `chunk`), before the judge sees it; results show what it returns.
        telemetry: Shape and providers of the telemetry; see `TelemetryOptions`.

    Raises:
        ConfigurationError: A setting or a case is wrong, or there is a `max_cost` but the judge's
            price is not known.
    """
    for name, value, least in (
        ("concurrency", concurrency, 1),
        ("processes", processes, 0),
        ("repeats", repeats, 1),
    ):
        if value < least:
            raise ConfigurationError(f"evaluate: {name} must be at least {least}, got {value}")
    unanswered: list[NoAnswer] = []
    asked = None if questions is None else numbered(questions)
    todo = _cases(cases) if asked is None else []
    # Room for all: no request waits here, so nothing needs to be dropped.
    room = max(len(asked or todo) * repeats, SinkLimits().max_queue)
    scorer = Scorer(
        judge,
        metrics,
        policy=policy.with_declines(declines),
        deadline=deadline,
        executor=None if processes else "thread",
        processes=max(1, processes),
        telemetry=telemetry,
        redact_for_judge=redact_for_judge,
        content=ContentPolicy.resolve(capture_content=capture_content, redact=redact),
        sinks=sinks,
        sink_limits=SinkLimits(max_queue=room, max_characters=sys.maxsize),
        keeps_judge=not isinstance(judge, str),
    )
    job = EvaluationJob(
        todo,
        scorer,
        journal=Path(journal) if isinstance(journal, str | PathLike) else journal,
        max_cost=CostCap(max_cost, option="evaluate: max_cost"),
        repeats=repeats,
        goals=goals,
        concurrency=concurrency,
        pipeline=pipeline,
        ended_at=time.time(),  # evaluated a second time, a case is another run in a store
    )
    if asked is not None:  # only now: a wrong setting must not cost the application's answers
        kept = None
        if job.journal is not None and job.journal.keeps_text:
            kept = job.journal.path.with_suffix(".answers.jsonl")
        answered: dict[str, RAGTestCase] = {}
        async for answer in answers(cases, asked, concurrency=concurrency, kept=kept):
            if isinstance(answer, NoAnswer):
                unanswered.append(answer)
            else:
                answered[answer.id] = answer
        todo += [answered[question.id] for question in asked if question.id in answered]
    job.start()
    done = [*_earlier(job.journal, todo, repeats)] if job.journal is not None else []
    on_progress = on_progress or notebook_progress()
    async with aclosing(aiter(job)) as evaluations:
        async for evaluation in evaluations:
            done.append(evaluation)
            if on_progress is not None:
                try:
                    on_progress(len(done), len(todo) * repeats)
                except Exception as error:  # noqa: BLE001 - paid results must not be lost
                    logger.warning("on_progress raised %s", type(error).__name__)
    done.sort(key=lambda each: (each.position, len(each.run.run_id), each.run.run_id))
    return EvaluationRun(
        cases=tuple(done),
        totals=job.summary,
        worst=job.worst,
        usage=job.summary.usage,
        sinks=scorer.sinks.stats(),
        is_cut=job.is_cut,
        problems=tuple(problem for _, problem in job.problems if problem),
        unanswered=tuple(unanswered),
    )


evaluate = takes_only()(synchronous(evaluate_async))
"""`evaluate_async` for scripts and notebooks; works inside a running event loop too."""


def _cases(cases: Iterable[RAGTestCase]) -> list[RAGTestCase]:
    if isinstance(cases, str | PathLike):
        raise ConfigurationError(
            f"evaluate: cases must be RAGTestCase objects, not {type(cases).__name__}; read a "
            "file by read_cases(path)"
        )
    if isinstance(cases, RAGTestCase):
        raise ConfigurationError("evaluate: cases must be a list; give [case] for a single one")
    if not isinstance(cases, Iterable):
        raise ConfigurationError(
            f"evaluate: cases must be RAGTestCase objects, not {type(cases).__name__}; to ask an "
            "application, give its questions: evaluate(app, questions)"
        )
    todo = list(cases)
    for position, case in enumerate(todo):
        if not isinstance(case, RAGTestCase):
            raise ConfigurationError(
                f"evaluate: cases[{position}] must be a RAGTestCase, not {type(case).__name__}; "
                "make one by RAGTestCase(query=..., context=[...], response=...), or read a file "
                "by read_cases(path)"
            )
    return todo


def _earlier(
    journal: EvaluationJournal, cases: Iterable[RAGTestCase], repeats: int
) -> Iterator[Evaluation]:
    """Earlier evaluations of a journal that are still valid."""
    positions = {
        run_id_of(case.id, repeat): (position, case)
        for position, case in enumerate(cases)
        for repeat in range(repeats)
    }
    lacking = journal.lacking
    for record in journal.results():
        run_id = record.run.run_id
        if run_id not in lacking:
            position, case = positions[run_id]
            in_run = case.model_copy(update={"run": record.run})
            yield Evaluation(case=in_run, results=record.results, position=position)
